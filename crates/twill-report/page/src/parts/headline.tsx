// The result: a sentence, then figures.
import type { KernelFile, Loop, Page } from "../data";
import type { LoopModel } from "../model/loop";
import { count, grouped } from "../words";
import { Figure } from "./figure";

const STATUS: Record<string, { mark: string; words: string }> = {
  optimal: { mark: "✓", words: "optimal" },
  feasible: { mark: "≈", words: "feasible" },
  infeasible: { mark: "✕", words: "infeasible: proved" },
  unknown: { mark: "?", words: "unknown" },
};

/** A status with a mark, so that its colour is not all. What is optimal is so in the model of a machine. */
export function Status({ status, machine }: { status: string; machine?: string | null }) {
  const known = Object.hasOwn(STATUS, status) ? STATUS[status] : undefined;
  const optimal = machine ? `optimal in the model of ${machine}: proved` : "optimal: proved";
  return (
    <span class={`status ${known ? status : "unknown"}`}>
      <span aria-hidden="true">{known?.mark ?? "?"}</span> {status === "optimal" ? optimal : (known?.words ?? status)}
    </span>
  );
}

/** True if the interval is the bound, which then needs no mention. */
function atBound({ schedule }: Loop): boolean {
  return schedule.initiation_interval === schedule.lower_bound.interval;
}

/** The bound of the interval, in words. */
export function boundInWords(data: Loop): string {
  return atBound(data) ? data.bound.replace(/^[^:]*: /, "") : data.bound;
}

/** Figures of a loop's schedule, besides the interval. */
export function LoopFigures({ data, loop }: { data: Loop; loop: LoopModel | null }) {
  const { schedule } = data;
  const gap = loop && schedule.status === "feasible" ? loop.interval - schedule.lower_bound.interval : 0;
  return (
    <dl class="figures">
      {loop && <Figure name="iterations overlapped N" value={grouped(loop.stages)} />}
      {loop && <Figure name="length L" value={grouped(loop.length)} note="cycles" />}
      {loop && <Figure name="warp groups" value={grouped(loop.groups.length)} />}
      {!atBound(data) && (
        <Figure
          name="bound"
          value={`I ≥ ${grouped(schedule.lower_bound.interval)}`}
          note={gap > 0 ? `gap ${((100 * gap) / Math.max(1, schedule.lower_bound.interval)).toFixed(1)} %` : undefined}
        />
      )}
      {schedule.stopped_by && <Figure name="stopped by" value={schedule.stopped_by} />}
    </dl>
  );
}

/** The resources that all loops of a kernel share, in a list of figures. */
export function KernelFigures({ kernel }: { kernel: KernelFile }) {
  return (
    <>
      {kernel.cycles != null && <Figure name="sum of weight × I" value={grouped(kernel.cycles)} note="cycles" />}
      {kernel.lower_bound != null && <Figure name="bound of the sum" value={`≥ ${grouped(kernel.lower_bound)}`} />}
      {kernel.weights && <Figure name="weights of the loops" value={kernel.weights.map(grouped).join(", ")} />}
      {kernel.ties && <Figure name="ties" value={count(kernel.ties.length, "tie")} />}
    </>
  );
}

/** From the best to the worst. */
const BEST_FIRST = ["optimal", "feasible", "unknown", "infeasible"];

function badness(status: string): number {
  return BEST_FIRST.indexOf(BEST_FIRST.includes(status) ? status : "unknown");
}

/** The status of the whole page: the kernel's, or the worst of its loops. */
export function pageStatus(page: Page): string | null {
  if (page.kernel) return page.kernel.status;
  return page.loops.reduce<string | null>((worst, { schedule: { status } }) => {
    return worst === null || badness(status) > badness(worst) ? status : worst;
  }, null);
}
