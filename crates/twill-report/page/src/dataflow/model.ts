// The schedule of a dataflow graph, as its views read it. Times are steps.
import type { DataflowFile } from "../data";
import { pack } from "../model/fold";

/** An operation with its place; `lane` is its own among those of its resource. */
export interface Placed {
  index: number;
  name: string;
  start: number;
  end: number;
  lane: number;
  resource: string;
  latency: number;
  storage: number;
  uses: { resource: string; offset: number; steps: number; amount: number }[];
}

/** A dependence by the numbers of its operations. */
export interface Edge {
  from: number;
  to: number;
  distance: number;
  delay: number;
}

/** Operations of one resource, one above the other. */
export interface Block {
  resource: string;
  limit: number | null;
  operations: Placed[];
  lanes: number;
}

/** The schedule. */
export interface DataflowModel {
  operations: Placed[];
  byName: Map<string, Placed>;
  edges: Edge[];
  incoming: Edge[][];
  outgoing: Edge[][];
  blocks: Block[];
  /** The step by which everything is finished. */
  end: number;
  interval: number | null;
}

export const NO_RESOURCE = "no resource";

/** The model of a file. */
export function dataflowModel(file: DataflowFile): DataflowModel {
  const operations = file.graph.operations.map((operation, index): Placed => {
    const start = file.steps[index] ?? 0;
    const uses = (operation.uses ?? []).map((use) => ({
      resource: use.resource,
      offset: use.offset ?? 0,
      steps: use.steps ?? 1,
      amount: use.amount ?? 1,
    }));
    const latency = operation.latency ?? 1;
    const held = Math.max(0, ...uses.map((use) => use.offset + use.steps));
    return {
      index,
      name: operation.name,
      start,
      end: start + Math.max(1, latency, held),
      lane: 0,
      resource: uses[0]?.resource ?? NO_RESOURCE,
      latency,
      storage: operation.storage ?? 1,
      uses,
    };
  });
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const incoming: Edge[][] = operations.map(() => []);
  const outgoing: Edge[][] = operations.map(() => []);
  const edges: Edge[] = [];
  for (const entry of file.graph.dependences ?? []) {
    const from = byName.get(entry.from);
    const to = byName.get(entry.to);
    if (!from || !to) continue;
    const edge = { from: from.index, to: to.index, distance: entry.distance ?? 0, delay: entry.delay ?? from.latency };
    edges.push(edge);
    incoming[to.index]?.push(edge);
    outgoing[from.index]?.push(edge);
  }
  const names = [...(file.graph.resources ?? []).map((resource) => resource.name), NO_RESOURCE];
  const limits = new Map((file.graph.resources ?? []).map((resource) => [resource.name, resource.limit ?? null]));
  const blocks = names
    .map((resource): Block => {
      const own = operations.filter((operation) => operation.resource === resource);
      return { resource, limit: limits.get(resource) ?? null, operations: own, lanes: own.length > 0 ? pack(own) : 0 };
    })
    .filter((block) => block.operations.length > 0);
  const end = operations.reduce((most, operation) => Math.max(most, operation.end), 1);
  return { operations, byName, edges, incoming, outgoing, blocks, end, interval: file.interval ?? null };
}

/** A step function from what begins and ends; folded modulo the interval if there is one. */
function stepsOf(
  changes: [from: number, to: number, amount: number][],
  interval: number | null,
  end: number,
): [number, number][] {
  const horizon = interval ?? end;
  const change = new Array<number>(horizon + 1).fill(0);
  const add = (from: number, to: number, amount: number) => {
    change[from] = (change[from] ?? 0) + amount;
    change[to] = (change[to] ?? 0) - amount;
  };
  for (const [from, to, amount] of changes) {
    if (to <= from) continue;
    if (interval === null) {
      add(Math.min(from, horizon), Math.min(to, horizon), amount);
      continue;
    }
    const whole = Math.floor((to - from) / interval);
    if (whole > 0) add(0, interval, whole * amount);
    const rest = (to - from) % interval;
    const first = from % interval;
    add(first, Math.min(first + rest, interval), amount);
    if (first + rest > interval) add(0, first + rest - interval, amount);
  }
  const steps: [number, number][] = [[0, 0]];
  let now = 0;
  for (let step = 0; step < horizon; step++) {
    const by = change[step] ?? 0;
    now += by;
    if (step === 0) steps[0] = [0, now];
    else if (by !== 0) steps.push([step, now]);
  }
  return steps;
}

/** How much of a resource is in use, by step. */
export function occupancy(model: DataflowModel, resource: string): [number, number][] {
  const changes = model.operations.flatMap((operation) =>
    operation.uses
      .filter((use) => use.resource === resource)
      .map((use): [number, number, number] => {
        const from = operation.start + use.offset;
        return [from, from + use.steps, use.amount];
      }),
  );
  return stepsOf(changes, model.interval, model.end);
}

/** How much storage values take, by step: each from its start until its last use. */
export function storage(model: DataflowModel): [number, number][] {
  const changes = model.operations.map((operation): [number, number, number] => {
    const last = (model.outgoing[operation.index] ?? []).reduce((most, edge) => {
      // Without an interval there is one iteration, in which such a dependence does not count.
      if (edge.distance > 0 && model.interval === null) return most;
      const at = (model.operations[edge.to]?.start ?? 0) + edge.distance * (model.interval ?? 0);
      return Math.max(most, at);
    }, operation.start);
    return [operation.start, last, operation.storage];
  });
  return stepsOf(changes, model.interval, model.end);
}
