// The timeline with its tools, and what is selected on it.
import { useMemo, useState } from "preact/hooks";
import { ChartView } from "../chart/view";
import type { Code } from "../data";
import type { LoopModel } from "../model/loop";
import { count } from "../words";
import { HUES } from "./bars";
import { Details } from "./details";
import { useLighting } from "./lighting";
import { firstIterations, timelineSpec } from "./timeline-spec";

const MOST_ITERATIONS = 24;

/** The timeline of a loop. */
export function Timeline({ loop, code }: { loop: LoopModel; code: Code | null }) {
  const [iterations, setIterations] = useState(() => firstIterations(loop));
  const spec = useMemo(() => timelineSpec(loop, iterations), [loop, iterations]);
  const lighting = useLighting(loop, iterations);
  const streaming = loop.operations.some((operation) => operation.streaming);
  return (
    <section id={`timeline-${loop.index}`} class="part">
      <h3>Timeline</h3>
      <ChartView spec={spec} lighting={lighting}>
        <span class="buttons" role="group" aria-label="Iterations shown">
          <button
            type="button"
            aria-label="One iteration fewer"
            disabled={iterations <= 1}
            onClick={() => setIterations(iterations - 1)}
          >
            −
          </button>
          <output>{count(iterations, "iteration")}</output>
          <button
            type="button"
            aria-label="One iteration more"
            disabled={iterations >= MOST_ITERATIONS}
            onClick={() => setIterations(iterations + 1)}
          >
            +
          </button>
        </span>
        <span class="legend">
          {Array.from({ length: Math.min(iterations, HUES) }, (_, k) => (
            <span key={k} class={`swatch hue-${k}`}>
              {k}
            </span>
          ))}
          <span>iteration (k:name)</span>
        </span>
        <span class="hint">Ctrl + wheel or pinch zooms, drag pans; keys: + − 0 ← →, Enter, Esc</span>
      </ChartView>
      <p class="note">
        Outlined bars are asynchronous: the group only issues them, and they run by themselves.
        {streaming && " Streaming loads are shown at their latest; they run ahead as far as their rings allow."}
        {loop.channels.length > 0 &&
          " Barriers of the operation that is chosen: a disc arrives, a triangle waits; full lines say that a value is there, dotted ones that its slot is free again."}
      </p>
      <Details loop={loop} code={code} />
    </section>
  );
}
