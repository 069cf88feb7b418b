// The cycles of an iteration: by the model, as simulated, as estimated from machine code, as measured; and the obstacles.
import type { Assembly, Loop, Page } from "../data";
import type { LoopModel } from "../model/loop";
import { grouped } from "../words";
import { Figure } from "./figure";

/** Intervals above which there is a warning. */
const FAR = 1.3;
/** Intervals that are next to nothing. */
const NEAR = 1.05;
/** The source of facts about machine code. */
const ASSEMBLE = "from twill compile, where Triton is";

/** TFLOP/s of the whole chip at its clock; null where that is not known. */
function rate(page: Page, data: Loop, cycles: number): string | null {
  const { chip } = page;
  if (!chip || !data.flop || data.schedule.normalisation) return null;
  const teraflops = (data.flop / cycles) * chip.clock_mhz * chip.multiprocessors * 1e-6;
  return `${grouped(teraflops >= 100 ? Math.round(teraflops) : teraflops)} TFLOP/s`;
}

function times(cycles: number, interval: number): string {
  return `${(cycles / interval).toFixed(2)} × I`;
}

interface Properties {
  page: Page;
  data: Loop;
  loop: LoopModel;
}

/** Registers that the assembler gave a thread, of all loops. */
export function Registers({ page }: { page: Page }) {
  const { assembly } = page;
  if (!assembly) return <Figure name="registers by ptxas" how={ASSEMBLE} />;
  const spilled = assembly.spill_stores + assembly.spill_loads;
  const more = spilled > 0 ? `${grouped(spilled)} bytes spilled` : "no spills";
  return <Figure name="registers by ptxas" value={grouped(assembly.registers)} note="a thread" more={more} />;
}

/** The interval, and next to it the cycles of an iteration outside the model. */
export function Cycles({ page, data, loop }: Properties) {
  const traced = page.trace?.loops.find((entry) => entry.loop === loop.index);
  const slowed =
    page.trace && page.trace.timestamps !== "iterations" ? `slowed by timestamps at ${page.trace.timestamps}` : null;
  const said = (cycles: number, more: (string | null)[]) => ({
    value: grouped(cycles),
    note: "cycles",
    more: more.filter(Boolean).join(", "),
  });
  const figure = (name: string, cycles: number | null | undefined, how: string, more: string | null = null) =>
    cycles == null ? (
      <Figure name={name} how={how} />
    ) : (
      <Figure name={name} {...said(cycles, [times(cycles, loop.interval), rate(page, data, cycles), more])} />
    );
  const hopper = "for Hopper alone";
  const most = rate(page, data, loop.interval);
  const estimate = page.assembly ? (data.simulated == null ? hopper : "ptxas left no such loop") : ASSEMBLE;
  return (
    <>
      <dl class="figures cycles">
        <Figure name="initiation interval I" {...said(loop.interval, [most && `at most ${most}`])} />
        {figure("simulated", data.simulated, page.code ? hopper : "from twill compile, for Hopper")}
        {figure("SASS estimate", data.sass_estimate, estimate)}
        {figure("measured", traced?.initiation_interval.measured, "from twill trace, after a run on the GPU", slowed)}
        {page.loops.length === 1 && <Registers page={page} />}
      </dl>
      {most && page.chip && (
        <p class="note">
          TFLOP/s are those of all {page.chip.multiprocessors} multiprocessors of {page.machine} at its clock,{" "}
          {grouped(page.chip.clock_mhz)} MHz.
        </p>
      )}
    </>
  );
}

/** The assembler's remarks that make an iteration longer. */
function found(assembly: Assembly): string[] {
  const has = (kind: string) => assembly.findings.some((finding) => finding.kind === kind);
  const { spill_stores: stores, spill_loads: loads } = assembly;
  const all = [
    stores + loads > 0 &&
      `${grouped(stores + loads)} bytes of registers are spilled (${grouped(stores)} of stores, ${grouped(loads)} of loads)`,
    has("serialised") && "ptxas made MMAs wait for each other",
    has("registers_refused") && "ptxas did not give the groups the registers that they ask for",
    has("added_wait") && "ptxas added waits for MMAs",
    has("hoisted_wait") && "ptxas moved a wait in front of exponentials that were to overlap MMAs",
  ];
  return all.filter((one) => one !== false);
}

/** Says what stands in the way where an iteration takes much longer than the interval. */
export function Warning({ page, data, loop }: Properties) {
  const { simulated, sass_estimate: estimate } = data;
  const cycles = estimate ?? simulated;
  if (cycles == null || cycles <= FAR * loop.interval) return null;
  const why = estimate != null && page.assembly ? found(page.assembly) : [];
  const outside = "waits on barriers and issue slots, which the model's interval does not contain";
  if (estimate == null) why.push(outside);
  else if (simulated != null && simulated > NEAR * loop.interval) {
    why.push(`the simulation of warp programs gives ${grouped(simulated)}: ${outside}`);
  }
  if (why.length === 0) why.push("the order of instructions that ptxas chose");
  return (
    <p class="warning" role="note">
      <strong>
        <span aria-hidden="true">⚠</span> {grouped(cycles)} cycles{" "}
        {estimate == null ? "simulated" : "estimated from machine code"}, {(cycles / loop.interval).toFixed(1)} × the
        interval:
      </strong>{" "}
      {why.join("; ")}.
    </p>
  );
}
