// A loop's schedule with its problem, as the views read it.
import type { ChannelEntry, GraphDependence, GroupEntry, Loop, LowerBound, RingEntry, Source } from "../data";

/** An operation with its place in the schedule. */
export interface Operation {
  index: number;
  name: string;
  kind: string;
  source: Source | null;
  /** Issue cycle in its own iteration. */
  cycle: number;
  stage: number;
  group: number;
  unit: string | null;
  /** Cycles that it is shown for: rows of its reservation table, at least one. */
  span: number;
  /** Cycles until its result can be read. */
  latency: number;
  asynchronous: boolean;
  streaming: boolean;
  /** Cycles from the issue of a load until its data are there. */
  transfer: number;
  handoff: number;
  units: { unit: string; start: number; cycles: number }[];
  result: string;
  inRegisters: boolean;
}

/** A dependence between operations. */
export interface Dependence {
  from: Operation;
  to: Operation;
  distance: number;
  /** Cycles from issue to issue, with a handoff if there is one. */
  delay: number;
  blocking: boolean;
  value: boolean;
  /** Cycles from the reader's issue until it lets go of the value. */
  hold: number;
}

/** A functional unit and the cycles of an iteration for which it is held. */
export interface UnitUse {
  name: string;
  capacity: number;
  busy: number;
}

/** A loop that has a schedule. */
export interface LoopModel {
  index: number;
  interval: number;
  length: number;
  stages: number;
  operations: Operation[];
  byName: Map<string, Operation>;
  incoming: Map<Operation, Dependence[]>;
  outgoing: Map<Operation, Dependence[]>;
  dependences: Dependence[];
  groups: GroupEntry[];
  units: UnitUse[];
  /** The units, and shared memory as one where the bytes that it moves in a cycle are limited. */
  busy: UnitUse[];
  channels: ChannelEntry[];
  rings: RingEntry[];
  /** What bounds the interval: operations, on the unit that they hold or around a cycle of dependences. */
  bound: { unit: string | null; operations: Set<string> };
}

function resultInWords(result: { registers?: number; shared_memory?: number; tensor_memory?: number }): string {
  if (result.registers !== undefined) return `${result.registers} words in registers`;
  if (result.shared_memory !== undefined) return `${result.shared_memory} bytes in shared memory`;
  if (result.tensor_memory !== undefined) return `${result.tensor_memory} columns of tensor memory`;
  return "";
}

function dependenceOf(entry: GraphDependence, from: Operation, to: Operation): Dependence {
  const value = entry.value ?? from.result !== "";
  const isHandedOver = value && from.inRegisters && from.group !== to.group;
  const delay = (entry.delay ?? (from.streaming ? 0 : from.latency)) + (isHandedOver ? from.handoff : 0);
  const over = Math.max(to.span, to.latency);
  const hold = entry.hold ?? (to.asynchronous && !entry.tied ? over : 0);
  return {
    from,
    to,
    distance: entry.distance ?? 0,
    delay,
    blocking: entry.blocking ?? from.asynchronous,
    value,
    // Slots of rings and handoffs are kept until their reader is over.
    hold: from.streaming || isHandedOver ? over : hold,
  };
}

function boundOf({ witness }: LowerBound): LoopModel["bound"] {
  return { unit: witness?.unit ?? null, operations: new Set(witness?.operations ?? []) };
}

/** The model of a loop; null if it has no schedule. */
export function loopModel(loop: Loop, index: number): LoopModel | null {
  const { schedule } = loop;
  const placed = schedule.operations ?? [];
  const interval = schedule.initiation_interval;
  if (!interval || placed.length === 0) return null;
  const described = new Map(schedule.problem.graph.operations.map((operation) => [operation.name, operation]));
  const operations = placed.map((operation, at): Operation => {
    const entry = described.get(operation.name);
    const units = (entry?.units ?? []).map((use) => ({ unit: use.unit, start: use.start ?? 0, cycles: use.cycles }));
    const cycles = entry?.cycles ?? Math.max(0, ...units.map((use) => use.start + use.cycles));
    return {
      index: at,
      name: operation.name,
      kind: operation.kind,
      source: operation.source ?? entry?.source ?? null,
      cycle: operation.cycle,
      stage: operation.stage,
      group: operation.group,
      unit: operation.unit ?? null,
      span: Math.max(1, cycles),
      latency: entry?.latency ?? cycles,
      asynchronous: entry?.execution === "asynchronous",
      streaming: entry?.streaming ?? false,
      transfer: entry?.transfer_latency ?? 0,
      handoff: entry?.handoff ?? 0,
      units,
      result: entry?.result ? resultInWords(entry.result) : "",
      inRegisters: entry?.result?.registers !== undefined,
    };
  });
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const dependences: Dependence[] = [];
  for (const entry of schedule.problem.graph.dependences ?? []) {
    const from = byName.get(entry.from);
    const to = byName.get(entry.to);
    if (from && to) dependences.push(dependenceOf(entry, from, to));
  }
  const incoming = new Map<Operation, Dependence[]>(operations.map((operation) => [operation, []]));
  const outgoing = new Map<Operation, Dependence[]>(operations.map((operation) => [operation, []]));
  for (const dependence of dependences) {
    incoming.get(dependence.to)?.push(dependence);
    outgoing.get(dependence.from)?.push(dependence);
  }
  const units = schedule.problem.resources.units
    .map((unit) => {
      const uses = operations.flatMap((operation) => operation.units.filter((use) => use.unit === unit.name));
      return { name: unit.name, capacity: unit.capacity, busy: uses.reduce((sum, use) => sum + use.cycles, 0) };
    })
    .filter((unit) => unit.busy > 0);
  const moved = schedule.problem.graph.operations.reduce((sum, entry) => sum + (entry.traffic?.shared ?? 0), 0);
  const rate = schedule.problem.resources.shared_bytes_per_cycle;
  const shared = rate && moved > 0 ? [{ name: "smem", capacity: 1, busy: Math.ceil(moved / rate) }] : [];
  const ends = operations.map((operation) => operation.cycle + operation.span);
  const length = schedule.length ?? Math.max(...ends);
  return {
    index,
    interval,
    length,
    stages: schedule.stages ?? Math.max(1, Math.ceil(length / interval)),
    operations,
    byName,
    incoming,
    outgoing,
    dependences,
    groups: schedule.groups ?? [],
    units,
    busy: [...units, ...shared],
    channels: schedule.channels ?? [],
    rings: schedule.rings ?? [],
    bound: boundOf(schedule.lower_bound),
  };
}

/** Start of an operation in an iteration. */
export function startOf(loop: LoopModel, operation: Operation, iteration: number): number {
  return operation.cycle + iteration * loop.interval;
}

/** Cycles by which a dependence is met earlier than it has to be. */
export function slack(loop: LoopModel, dependence: Dependence): number {
  const { from, to, distance, delay } = dependence;
  return to.cycle + distance * loop.interval - from.cycle - delay;
}
