// Barriers that hand a value from group to group through a channel: who arrives at which, and who waits there.
import type { ChannelEntry } from "../data";
import type { Instance } from "./chain";
import { startOf, type Dependence, type LoopModel, type Operation } from "./loop";

/** An operation in an iteration, at a cycle. */
export interface Moment extends Instance {
  cycle: number;
}

/** An arrival at a barrier, and a wait that it lets go on. */
export interface Handshake {
  channel: ChannelEntry;
  /** `full`: the value is in its slot; `empty`: the slot is free for a later one. */
  barrier: "full" | "empty";
  slot: number;
  /** Parity of the phase that the arrival completes. */
  phase: number;
  /** Iteration that made the value. */
  iteration: number;
  arrives: Moment;
  waits: Moment;
}

/** Slot of a ring or channel that an iteration uses. */
export function slotOf(iteration: number, depth: number): number {
  return iteration % Math.max(1, depth);
}

/** Parity that its barrier completes with in that iteration. */
export function phaseOf(iteration: number, depth: number): number {
  return Math.floor(iteration / Math.max(1, depth)) % 2;
}

type Meeting = Pick<Handshake, "barrier" | "arrives" | "waits">;

function moment(loop: LoopModel, operation: Operation, iteration: number, after = 0): Moment {
  return { operation, iteration, cycle: startOf(loop, operation, iteration) + after };
}

/** When the value of iteration `made` is there for a reader. A load that runs ahead is in time for its first reader. */
function arrival(loop: LoopModel, { from, delay }: Dependence, made: number): number {
  const issued = startOf(loop, from, made);
  if (!from.streaming) return issued + delay;
  const readers = (loop.outgoing.get(from) ?? []).filter((dependence) => dependence.value);
  const reads = readers.map(({ to, distance }) => startOf(loop, to, made + distance));
  return Math.min(issued + Math.max(from.latency, from.transfer), ...reads);
}

/** The producer of the value of iteration `made` for `reader`. */
function full(loop: LoopModel, reader: Dependence, made: number): Meeting {
  return {
    barrier: "full",
    arrives: { operation: reader.from, iteration: made, cycle: arrival(loop, reader, made) },
    waits: moment(loop, reader.to, made + reader.distance),
  };
}

/** The operation that frees the slot of iteration `made` for the value `depth` iterations later: the last reader to be over. */
function empty(loop: LoopModel, readers: Dependence[], made: number, depth: number): Meeting[] {
  const over = readers.map((reader) => moment(loop, reader.to, made + reader.distance, reader.hold));
  const [arrives] = over.sort((a, b) => b.cycle - a.cycle);
  const from = readers[0]?.from;
  return from && arrives ? [{ barrier: "empty", arrives, waits: moment(loop, from, made + depth) }] : [];
}

/** The barriers of channels at which an instance waits or arrives. */
export function handshakesOf(loop: LoopModel, at: Instance): Handshake[] {
  const isIt = (other: Instance) => other.operation === at.operation && other.iteration === at.iteration;
  return loop.channels.flatMap((channel) => {
    const value = loop.byName.get(channel.buffer);
    const readers = (value && loop.outgoing.get(value))?.filter((d) => d.value && d.to.group === channel.to) ?? [];
    const depth = Math.max(1, channel.depth);
    const made = readers.filter((reader) => reader.to === at.operation).map((reader) => at.iteration - reader.distance);
    if (value === at.operation) made.push(at.iteration, at.iteration - depth);
    const values = [...new Set(made)].filter((iteration) => iteration >= 0).sort((a, b) => a - b);
    return values.flatMap((iteration) =>
      [...readers.map((reader) => full(loop, reader, iteration)), ...empty(loop, readers, iteration, depth)]
        .filter(({ arrives, waits }) => isIt(arrives) || isIt(waits))
        .map((found) => ({
          ...found,
          channel,
          iteration,
          slot: slotOf(iteration, depth),
          phase: phaseOf(iteration, depth),
        })),
    );
  });
}
