// Bars of operations, as all charts of a loop have them.
import type { Bar, Tip } from "../chart/spec";
import { keyOf } from "../model/chain";
import type { LoopModel, Operation } from "../model/loop";
import { startOf } from "../model/loop";
import { count, grouped, place } from "../words";

export const HUES = 6;

/** The tooltip of an operation in an iteration. */
export function operationTip(loop: LoopModel, operation: Operation, iteration: number): Tip {
  const start = startOf(loop, operation, iteration);
  const end = start + operation.span;
  const rows: [string, string][] = [
    ["kind", `${operation.kind}, ${operation.asynchronous ? "asynchronous" : "synchronous"}`],
    ["cycles", `${grouped(start)} to ${grouped(end)} (${grouped(operation.span)})`],
  ];
  if (operation.latency !== operation.span) rows.push(["result", `at ${grouped(start + operation.latency)}`]);
  rows.push(["iteration", `${iteration}, stage ${operation.stage}, slot ${grouped(operation.cycle % loop.interval)}`]);
  rows.push(["warp group", `${operation.group}`]);
  const units = operation.units.map((use) => `${use.unit} for ${grouped(use.cycles)}`);
  if (units.length > 0) rows.push(["holds", units.join(", ")]);
  if (operation.result !== "") rows.push(["gives", operation.result]);
  if (operation.source) rows.push(["source", place(operation.source)]);
  return { title: operation.name, rows };
}

/** An operation in an iteration in words. */
export function operationInWords(loop: LoopModel, operation: Operation, iteration: number): string {
  const start = startOf(loop, operation, iteration);
  const where = operation.source ? `, ${place(operation.source)}` : "";
  return (
    `${operation.name}, ${operation.kind}, iteration ${iteration}, cycles ${start} to ${start + operation.span}, ` +
    `stage ${operation.stage}, warp group ${operation.group}${where}`
  );
}

/** A bar of an operation in an iteration; `from` and `cycles` say which part of it. */
export function operationBar(
  loop: LoopModel,
  operation: Operation,
  iteration: number,
  from: number,
  cycles: number,
  looks: { label: string; tone: string; anchor: boolean; style?: string },
): Bar {
  const start = startOf(loop, operation, iteration) + from;
  return {
    start,
    end: start + cycles,
    lane: 0,
    ...looks,
    instance: keyOf(operation, iteration),
    selection: { loop: loop.index, operation: operation.name, iteration },
    attributes: {
      loop: loop.index,
      operation: operation.name,
      iteration,
      start,
      end: start + cycles,
    },
    aria: operationInWords(loop, operation, iteration),
    tip: () => operationTip(loop, operation, iteration),
  };
}

/** How a warp group is called. */
export function groupName(id: number): string {
  return `group ${id}`;
}

/** The role of a warp group. */
export function groupNote(role: string, warps: number): string {
  const names: Record<string, string> = { variable_latency: "loads", issue: "issues", compute: "compute" };
  return `${Object.hasOwn(names, role) ? names[role] : role}, ${count(warps, "warp")}`;
}
