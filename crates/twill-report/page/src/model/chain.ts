// The producers and consumers of an operation of one iteration, across iterations.
import type { Dependence, LoopModel, Operation } from "./loop";

/** An operation in an iteration. */
export interface Instance {
  operation: Operation;
  iteration: number;
}

/** A dependence between two instances. */
export interface Link {
  from: Instance;
  to: Instance;
  dependence: Dependence;
  /** One of its ends is the operation asked about. */
  direct: boolean;
}

/** Operations and dependences that lead to an operation and away from it. */
export interface Chain {
  /** By their names. */
  instances: Map<string, Instance>;
  links: Link[];
}

/** Names an instance. Operations are named by number, as names may hold anything. */
export function keyOf(operation: Operation, iteration: number): string {
  return `${operation.index}@${iteration}`;
}

/** The neighbours of an instance among the first `iterations`; with `whole`, also their neighbours in the same direction. */
export function chainOf(loop: LoopModel, at: Instance, iterations: number, whole: boolean): Chain {
  const instances = new Map([[keyOf(at.operation, at.iteration), at]]);
  const links: Link[] = [];
  for (const backward of [true, false]) {
    const seen = new Set([keyOf(at.operation, at.iteration)]);
    let frontier = [at];
    while (frontier.length > 0) {
      const next: Instance[] = [];
      for (const instance of frontier) {
        const edges = (backward ? loop.incoming : loop.outgoing).get(instance.operation) ?? [];
        for (const dependence of edges) {
          const iteration = instance.iteration + (backward ? -dependence.distance : dependence.distance);
          if (iteration < 0 || iteration >= iterations) continue;
          const other = { operation: backward ? dependence.from : dependence.to, iteration };
          const [from, to] = backward ? [other, instance] : [instance, other];
          links.push({ from, to, dependence, direct: instance === at });
          const key = keyOf(other.operation, iteration);
          if (seen.has(key)) continue;
          seen.add(key);
          instances.set(key, other);
          next.push(other);
        }
      }
      frontier = whole ? next : [];
    }
  }
  return { instances, links };
}
