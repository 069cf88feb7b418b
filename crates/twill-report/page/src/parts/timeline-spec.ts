// The timeline: prologue, steady state and epilogue of a few iterations, by warp group and by unit.
import type { Band, Bar, ChartSpec, Row } from "../chart/spec";
import { pack } from "../model/fold";
import type { LoopModel, Operation } from "../model/loop";
import { groupName, groupNote, HUES, operationBar } from "./bars";

const LANE = 20;
const LOW_LANE = 14;
/** Lanes from which a row gets lower ones. */
const MANY_LANES = 4;
/** Bars that a timeline begins with at most. */
const MOST_BARS = 8000;

/** How many iterations are shown at first: a steady state of three intervals, or one on a phone. */
export function firstIterations(loop: LoopModel): number {
  const each = loop.operations.reduce((sum, operation) => sum + 1 + operation.units.length, 0);
  const affordable = Math.floor(MOST_BARS / Math.max(1, each));
  const steady = window.innerWidth < 720 ? 1 : 3;
  return Math.max(1, Math.min(loop.stages - 1 + steady, Math.max(affordable, 2)));
}

/** Prologue, steady state and epilogue of `iterations` iterations. */
export function phases(loop: LoopModel, iterations: number): Band[] {
  const { interval, stages, length } = loop;
  const end = (iterations - 1) * interval + length;
  const from = (stages - 1) * interval;
  const to = iterations * interval;
  const bands: Band[] = [];
  if (from > 0) bands.push({ start: 0, end: Math.min(from, end), label: "prologue", kind: "ramp" });
  if (to > from) {
    bands.push({ start: from, end: Math.min(to, end), label: "steady state", kind: "steady" });
  }
  const after = Math.max(from, to);
  if (end > after) bands.push({ start: after, end, label: "epilogue", kind: "ramp" });
  return bands;
}

function rowOf(names: { name: string; short?: string }, note: string, bars: Bar[], first: boolean): Row {
  const lanes = pack(bars);
  return { ...names, note, lanes, laneHeight: lanes >= MANY_LANES ? LOW_LANE : LANE, first, bars };
}

/** The class of a bar that has a part in what bounds the interval: of the unit that bounds it, or of a cycle of dependences. */
function bounds({ bound }: LoopModel, operation: Operation, unit: string | null): string {
  return bound.operations.has(operation.name) && bound.unit === unit ? "bounds" : "";
}

/** Rows of the warp groups: what they execute, and what they issue that runs by itself. */
export function groupRows(loop: LoopModel, iterations: number[]): Row[] {
  const rows: Row[] = [];
  for (const group of loop.groups) {
    const own = loop.operations.filter((operation) => operation.group === group.id);
    for (const asynchronous of [false, true]) {
      const here = own.filter((operation) => operation.asynchronous === asynchronous);
      if (here.length === 0) continue;
      const bars = here.flatMap((operation) =>
        iterations.map((iteration) =>
          operationBar(loop, operation, iteration, 0, operation.span, {
            label: `${iteration}:${operation.name}`,
            tone: `hue-${iteration % HUES}`,
            anchor: true,
            style: `${asynchronous ? "asynchronous" : ""} ${bounds(loop, operation, null)}`,
          }),
        ),
      );
      const does = asynchronous ? "async" : "work";
      const names = { name: `${groupName(group.id)} ${does}`, short: `g${group.id} ${does}` };
      const first = !asynchronous || own.every((operation) => operation.asynchronous);
      rows.push(rowOf(names, groupNote(group.role, group.warps), bars, first));
    }
  }
  return rows;
}

/** Rows of the functional units that are held. */
export function unitRows(loop: LoopModel, iterations: number[]): Row[] {
  return loop.units.map((unit, index) => {
    const bars = loop.operations.flatMap((operation) =>
      operation.units
        .filter((use) => use.unit === unit.name)
        .flatMap((use) =>
          iterations.map((iteration) => {
            const bar = operationBar(loop, operation, iteration, use.start, use.cycles, {
              label: `${iteration}:${operation.name}`,
              tone: `hue-${iteration % HUES}`,
              anchor: false,
              style: bounds(loop, operation, unit.name),
            });
            bar.attributes["unit"] = unit.name;
            return bar;
          }),
        ),
    );
    const note = unit.capacity > 1 ? `${unit.capacity} instances` : "unit";
    return rowOf({ name: unit.name }, note, bars, index === 0);
  });
}

/** The chart of the first `iterations` iterations. */
export function timelineSpec(loop: LoopModel, iterations: number): ChartSpec {
  const numbers = Array.from({ length: iterations }, (_, k) => k);
  const end = (iterations - 1) * loop.interval + loop.length;
  const marks = numbers.concat(iterations).map((k) => k * loop.interval);
  return {
    view: "timeline",
    label:
      `Timeline of ${iterations} iterations. Plus, minus and 0 zoom, arrows move, Enter goes to the operations; ` +
      "the table of operations has the same in text.",
    rows: [...groupRows(loop, numbers), ...unitRows(loop, numbers)],
    domain: [0, end],
    bands: phases(loop, iterations),
    marks: marks.length > 64 ? [] : marks.filter((mark) => mark <= end),
  };
}
