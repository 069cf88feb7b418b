// One interval of the steady state, folded: units and groups, with how busy they are.
import { useMemo } from "preact/hooks";
import { DARK, type Bar, type ChartSpec, type Lighting, type Row } from "../chart/spec";
import { ChartView } from "../chart/view";
import { fold, pack } from "../model/fold";
import type { LoopModel, Operation } from "../model/loop";
import { selection, useStore } from "../state";
import { grouped, percent, staged } from "../words";
import { groupName, HUES, operationInWords, operationTip } from "./bars";
import { Sheet } from "./sheet";
import { GroupSwatches } from "./swatches";

/** The parts of a stretch that begins `from` cycles after an operation; each is named by the stage that it is in. */
function folded(loop: LoopModel, operation: Operation, from: number, cycles: number): Bar[] {
  const begin = operation.cycle + from;
  const stage = Math.floor(begin / loop.interval);
  return fold(begin, cycles, loop.interval).map((piece, wraps) => ({
    start: piece.start,
    end: piece.end,
    lane: 0,
    label: staged(operation.name, stage + wraps),
    tone: `group-${operation.group % HUES}`,
    style: `${piece.fromLeft ? "open-left" : ""} ${piece.toRight ? "open-right" : ""}`,
    instance: operation.name,
    anchor: false,
    selection: { loop: loop.index, operation: operation.name, iteration: 0 },
    attributes: { name: operation.name, stage: stage + wraps, slot: piece.start, until: piece.end },
    aria: operationInWords(loop, operation, 0),
    tip: () => operationTip(loop, operation, 0),
  }));
}

function row(name: string, note: string, bars: Bar[], first: boolean): Row {
  return { name, note, bars, lanes: pack(bars), laneHeight: 20, first };
}

function steadySpec(loop: LoopModel): ChartSpec {
  const units = loop.units.map((unit, index) => {
    const uses = loop.operations.flatMap((operation) =>
      operation.units
        .filter((use) => use.unit === unit.name)
        .flatMap((use) => folded(loop, operation, use.start, use.cycles)),
    );
    const busy = percent(unit.busy, loop.interval * unit.capacity);
    return row(`${unit.name} ${busy}`, "", uses, index === 0);
  });
  const groups = loop.groups.flatMap((group, index) => {
    const work = loop.operations.filter((o) => o.group === group.id && !o.asynchronous);
    if (work.length === 0) return [];
    const busy = work.reduce((sum, operation) => sum + operation.span, 0);
    const bars = work.flatMap((operation) => folded(loop, operation, 0, operation.span));
    return [
      {
        ...row(`${groupName(group.id)} ${percent(busy, loop.interval)}`, "", bars, index === 0),
        short: `g${group.id} ${percent(busy, loop.interval)}`,
      },
    ];
  });
  const mostBusy = Math.max(0, ...loop.units.map((unit) => unit.busy / unit.capacity));
  return {
    view: "steady",
    label: `One interval of the steady state, ${loop.interval} cycles; the busiest unit is held ${mostBusy} of them.`,
    rows: [...units, ...groups],
    domain: [0, loop.interval],
    bands: [],
    marks: [],
  };
}

/** The folded interval and the table of units. */
export function Steady({ loop }: { loop: LoopModel }) {
  const spec = useMemo(() => steadySpec(loop), [loop]);
  const at = useStore(selection);
  const lighting: Lighting = useMemo(() => {
    if (at?.loop !== loop.index) return DARK;
    return { ...DARK, chosen: at.operation, lit: new Set([at.operation]) };
  }, [at, loop]);
  const primed = spec.rows.some((row) => row.bars.some((bar) => Number(bar.attributes["stage"]) > 0));
  return (
    <section id={`steady-${loop.index}`} class="part">
      <h3>Steady state</h3>
      <p class="note">
        Every interval does this, on units and warp groups.
        {primed && " x′ is of the iteration before that of x."} Percentages say how much of the interval is held.
      </p>
      <ChartView spec={spec} lighting={lighting}>
        <span class="legend">
          <GroupSwatches loop={loop} />
        </span>
      </ChartView>
      <Sheet
        caption="How busy the functional units are"
        heads={["unit", { number: "held" }, { number: "of" }, { number: "instances" }, { number: "share" }, null]}
      >
        {loop.busy.map((unit) => (
          <tr key={unit.name}>
            <td>{unit.name}</td>
            <td class="number">{grouped(unit.busy)}</td>
            <td class="number">{grouped(loop.interval * unit.capacity)}</td>
            <td class="number">{unit.capacity}</td>
            <td class="number">{percent(unit.busy, loop.interval * unit.capacity)}</td>
            <td class="wide" aria-hidden="true">
              <meter min={0} max={loop.interval * unit.capacity} value={unit.busy} />
            </td>
          </tr>
        ))}
      </Sheet>
    </section>
  );
}
