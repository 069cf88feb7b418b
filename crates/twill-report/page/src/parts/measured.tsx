// The measurement on the GPU versus the prediction.
import { useMemo } from "preact/hooks";
import type { Bar, ChartSpec, Row } from "../chart/spec";
import { ChartView } from "../chart/view";
import type { TraceFile, TraceLoop } from "../data";
import { pack } from "../model/fold";
import { keyOf } from "../model/chain";
import type { LoopModel } from "../model/loop";
import { grouped, signed } from "../words";
import { groupName, HUES } from "./bars";
import { useLighting } from "./lighting";
import { Sheet } from "./sheet";
import { groupRows } from "./timeline-spec";

/** Rows of what was measured, by group, and from where to where it was. */
function measuredRows(loop: LoopModel, trace: TraceLoop): { rows: Map<number, Row>; begin: number; end: number } {
  const rows = new Map<number, Row>();
  let [begin, last] = [0, 0];
  const bars = new Map<number, Bar[]>();
  for (const event of trace.events) {
    // Cycles are those of iteration 0 already; loads that run ahead may begin before it.
    const { iteration, start, end } = event;
    const operation = loop.byName.get(event.operation);
    begin = Math.min(begin, start);
    last = Math.max(last, end);
    const list = bars.get(event.group) ?? [];
    bars.set(event.group, list);
    list.push({
      start,
      end,
      lane: 0,
      label: `${iteration}:${event.operation}`,
      tone: `hue-${iteration % HUES}`,
      style: "measured",
      instance: operation ? keyOf(operation, iteration) : null,
      anchor: false,
      selection: operation ? { loop: loop.index, operation: operation.name, iteration } : null,
      attributes: { measured: event.operation, iteration, start, end },
      aria: `measured: ${event.operation}, iteration ${iteration}, cycles ${start} to ${end}, group ${event.group}`,
      tip: () => ({
        title: `${event.operation}, measured`,
        rows: [
          ["iteration", `${iteration}`],
          ["cycles", `${grouped(start)} to ${grouped(end)} (${grouped(end - start)})`],
          ["warp group", `${event.group}`],
        ],
      }),
    });
  }
  for (const [group, list] of bars) {
    rows.set(group, {
      name: `${groupName(group)} measured`,
      short: `g${group} meas.`,
      note: "",
      lanes: pack(list),
      laneHeight: 18,
      bars: list,
    });
  }
  return { rows, begin, end: last };
}

function measuredSpec(loop: LoopModel, trace: TraceLoop): { spec: ChartSpec; iterations: number } {
  const { rows: measured, begin, end } = measuredRows(loop, trace);
  // Those that were listed and no others: their numbers may be large.
  const numbers = [...new Set(trace.events.map((event) => event.iteration))].sort((a, b) => a - b);
  const gap = numbers.findIndex((iteration, k) => iteration !== k);
  const rows: Row[] = [];
  for (const group of loop.groups) {
    const predicted = groupRows({ ...loop, groups: [group] }, numbers);
    rows.push(...predicted.map((row) => ({ ...row, note: "predicted" })));
    const row = measured.get(group.id);
    if (row) rows.push(row);
  }
  const last = Math.max(end, (numbers.at(-1) ?? 0) * loop.interval + loop.length);
  const marks = numbers.map((k) => k * loop.interval);
  const label = `Predicted and measured operations of ${numbers.length} iterations on one axis.`;
  return {
    spec: { view: "measured", label, rows, domain: [begin, last], bands: [], marks },
    // Chains are followed through iterations without a gap.
    iterations: gap < 0 ? numbers.length : gap,
  };
}

/** Measured against predicted, for one loop. */
export function Measured({ loop, trace, of }: { loop: LoopModel; trace: TraceLoop; of: TraceFile }) {
  const { spec, iterations } = useMemo(() => measuredSpec(loop, trace), [loop, trace]);
  const lighting = useLighting(loop, iterations);
  const { predicted, measured } = trace.initiation_interval;
  // All timestamps but those of iterations keep operations apart.
  const slowed = of.timestamps === "iterations" ? "" : `, slowed by timestamps at ${of.timestamps}`;
  const error = predicted > 0 ? (100 * (measured - predicted)) / predicted : 0;
  return (
    <section id={`measured-${loop.index}`} class="part">
      <h3>Measured</h3>
      <p class="note">
        {of.gpu}, {of.date}
        {of.revision ? `, revision ${of.revision}` : ""}. One thread block in its steady state; iterations are numbered
        from the first that is shown. The first operation that is no load running ahead starts where it was predicted.
      </p>
      <p class="bound">
        Cycles per iteration: predicted {grouped(predicted)}, measured {grouped(measured)} ({signed(error)}){slowed}
      </p>
      {trace.events.length > 0 && (
        <ChartView spec={spec} lighting={lighting}>
          <span class="note">Dashed bars are measured; dashed lines are multiples of the predicted I.</span>
        </ChartView>
      )}
      <Sheet
        of="measured"
        tall
        caption="Within an iteration, in cycles; measured values are medians"
        heads={[
          "operation",
          { number: "group" },
          { number: "start predicted" },
          { number: "measured" },
          { number: "error" },
          { number: "duration predicted" },
          { number: "measured" },
          { number: "error" },
        ]}
      >
        {trace.operations.map((entry, index) => {
          const lasts = entry.predicted.end - entry.predicted.start;
          const lasted = entry.measured.end - entry.measured.start;
          const late = entry.measured.start - entry.predicted.start;
          return (
            <tr key={index} data-measured={entry.operation}>
              <td>{entry.operation}</td>
              <td class="number">{entry.group}</td>
              <td class="number">{grouped(entry.predicted.start)}</td>
              <td class="number">{grouped(entry.measured.start)}</td>
              <td class="number">{late > 0 ? `+${grouped(late)}` : grouped(late)}</td>
              <td class="number">{grouped(lasts)}</td>
              <td class="number">{grouped(lasted)}</td>
              <td class="number">{lasts > 0 ? signed((100 * (lasted - lasts)) / lasts) : "–"}</td>
            </tr>
          );
        })}
      </Sheet>
    </section>
  );
}
