// Slots and phases of the barriers that hand a value from group to group.
import type { LoopModel, Operation } from "./loop";

/** A wait or an arrival of an operation in one iteration. */
export interface BarrierStep {
  buffer: string;
  memory: string;
  from: number;
  to: number;
  depth: number;
  slot: number;
  /** Of the barrier of full slots, in the iteration that made the value. */
  phase: number;
  /** Iteration that made the value. */
  iteration: number;
  does: "fills" | "reads";
  /** Iteration whose reader has to have freed the slot; null if the slot is fresh. */
  freed: number | null;
}

/** Slot of a ring or channel that an iteration uses. */
export function slotOf(iteration: number, depth: number): number {
  return iteration % Math.max(1, depth);
}

/** Parity that its barrier completes with in that iteration. */
export function phaseOf(iteration: number, depth: number): number {
  return Math.floor(iteration / Math.max(1, depth)) % 2;
}

/** What an operation has to do with channels in one iteration. */
export function barriersOf(loop: LoopModel, operation: Operation, iteration: number): BarrierStep[] {
  const steps: BarrierStep[] = [];
  for (const channel of loop.channels) {
    const step = (made: number, does: "fills" | "reads"): BarrierStep => ({
      buffer: channel.buffer,
      memory: channel.memory,
      from: channel.from,
      to: channel.to,
      depth: channel.depth,
      slot: slotOf(made, channel.depth),
      phase: phaseOf(made, channel.depth),
      iteration: made,
      does,
      freed: made >= channel.depth ? made - channel.depth : null,
    });
    if (channel.buffer === operation.name) steps.push(step(iteration, "fills"));
    if (channel.to !== operation.group) continue;
    const reads = (loop.incoming.get(operation) ?? []).filter((d) => d.value && d.from.name === channel.buffer);
    for (const dependence of reads) {
      const made = iteration - dependence.distance;
      if (made >= 0) steps.push(step(made, "reads"));
    }
  }
  return steps;
}
