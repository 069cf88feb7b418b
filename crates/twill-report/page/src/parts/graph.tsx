// The dependence graph: warp groups by colour and number, back edges dashed with their distance.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { hideTip, showTip } from "../chart/tooltip";
import { freshId } from "../chart/svg";
import { wheelPower } from "../chart/wheel";
import { ZoomButtons } from "../chart/zoom-buttons";
import { chainOf } from "../model/chain";
import type { LoopModel } from "../model/loop";
import { selection, toggle, useStore } from "../state";
import { count, grouped } from "../words";
import { HUES, operationInWords, operationTip } from "./bars";
import { draw, type Drawing, MOST_OPERATIONS } from "./graph-layout";
import { Scroll } from "./scroll";
import { GroupSwatches } from "./swatches";

function useDrawing(loop: LoopModel): Drawing | null {
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  useEffect(() => {
    // After the first paint: laying out a large graph takes a while.
    const timer = setTimeout(() => setDrawing(draw(loop)), 60);
    return () => clearTimeout(timer);
  }, [loop]);
  return drawing;
}

/** Names that light up for the selection: it and its neighbours in the graph. */
function useLit(loop: LoopModel): { chosen: string | null; lit: Set<string> | null } {
  const at = useStore(selection);
  return useMemo(() => {
    const operation = at?.loop === loop.index ? loop.byName.get(at.operation) : undefined;
    if (!operation) return { chosen: null, lit: null };
    // Far enough from the first iteration that every back edge has its other end.
    const far = Math.max(0, ...loop.dependences.map((dependence) => dependence.distance));
    const chain = chainOf(loop, { operation, iteration: far }, 2 * far + 1, false);
    const lit = new Set([...chain.instances.values()].map((instance) => String(instance.operation.index)));
    return { chosen: String(operation.index), lit };
  }, [at, loop]);
}

function Picture({ loop, drawing }: { loop: LoopModel; drawing: Drawing }) {
  const svg = useRef<SVGSVGElement>(null);
  const inner = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | null>(null);
  const arrow = useMemo(() => freshId("arrow"), []);
  const { chosen, lit } = useLit(loop);
  useEffect(() => {
    if (!svg.current) return;
    const element = svg.current;
    behaviour.current = zoom<SVGSVGElement, unknown>()
      .scaleExtent([1, 8])
      .translateExtent([
        [0, 0],
        [drawing.width, drawing.height],
      ])
      .extent([
        [0, 0],
        [drawing.width, drawing.height],
      ])
      .wheelDelta(wheelPower)
      .clickDistance(4)
      .filter((event: MouseEvent) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button))
      .on("zoom", (event: { transform: { toString(): string } }) => {
        inner.current?.setAttribute("transform", event.transform.toString());
      });
    select(element).call(behaviour.current).on("dblclick.zoom", null);
  }, [drawing]);
  const scale = (factor: number) => svg.current && behaviour.current?.scaleBy(select(svg.current), factor);
  const reset = () => svg.current && behaviour.current?.transform(select(svg.current), zoomIdentity);
  const style = { maxWidth: `${Math.max(480, drawing.width * 1.15)}px` };
  return (
    <div class="chart-frame">
      <div class="tools">
        <span class="legend">
          <GroupSwatches loop={loop} />
          <span class="line-key back">back edge, with its distance in iterations</span>
        </span>
        <ZoomButtons label="Zoom of the graph" zoomBy={scale} reset={reset} />
      </div>
      <Scroll>
        <svg
          ref={svg}
          class={`graph ${lit ? "has-chain" : ""}`}
          style={style}
          viewBox={`0 0 ${drawing.width} ${drawing.height}`}
          role="group"
          aria-label={`Dependence graph of ${count(loop.operations.length, "operation")}`}
        >
          <defs>
            <marker
              id={arrow}
              viewBox="0 0 8 8"
              refX={7}
              refY={4}
              markerWidth={7}
              markerHeight={7}
              orient="auto-start-reverse"
            >
              <path d="M0,0.5L8,4L0,7.5z" />
            </marker>
          </defs>
          <g ref={inner}>
            {drawing.lines.map((line, index) => {
              const { from, to, distance } = line.dependence;
              const near = lit !== null && (String(from.index) === chosen || String(to.index) === chosen);
              return (
                <g
                  key={index}
                  class={`dependence ${distance > 0 ? "back" : ""} ${near ? "lit" : ""}`}
                  data-from={from.name}
                  data-to={to.name}
                  data-distance={distance}
                >
                  <path d={line.path} marker-end={`url(#${arrow})`} />
                  {distance > 0 && (
                    <text x={line.label.x} y={line.label.y}>
                      {distance}
                    </text>
                  )}
                </g>
              );
            })}
            {drawing.boxes.map((box) => {
              const { operation } = box;
              const key = String(operation.index);
              const pick = () => toggle({ loop: loop.index, operation: operation.name, iteration: 0 });
              const tip = (event: Event) => showTip(operationTip(loop, operation, 0), event.currentTarget as Element);
              return (
                <g
                  key={key}
                  class={`node group-${operation.group % HUES} ${lit?.has(key) ? "lit" : ""} ${chosen === key ? "selected" : ""}`}
                  data-node={operation.name}
                  role="button"
                  tabindex={0}
                  aria-label={operationInWords(loop, operation, 0)}
                  onClick={pick}
                  onKeyDown={(event) => {
                    if (event.key !== "Enter" && event.key !== " ") return;
                    event.preventDefault();
                    pick();
                  }}
                  onPointerEnter={tip}
                  onPointerLeave={hideTip}
                  onFocus={tip}
                  onBlur={hideTip}
                >
                  <rect
                    x={box.x - box.width / 2}
                    y={box.y - box.height / 2}
                    width={box.width}
                    height={box.height}
                    rx={4}
                  />
                  <text x={box.x} y={box.y - 2}>
                    {operation.name}
                  </text>
                  <text class="note" x={box.x} y={box.y + 11}>
                    {`g${operation.group} · ${grouped(operation.cycle)}`}
                  </text>
                </g>
              );
            })}
          </g>
        </svg>
      </Scroll>
    </div>
  );
}

/** The dependence graph of a loop, or its figures if it is too large to be looked at. */
export function DependenceGraph({ loop }: { loop: LoopModel }) {
  const large = loop.operations.length > MOST_OPERATIONS;
  const back = loop.dependences.filter((dependence) => dependence.distance > 0).length;
  const figures =
    `${count(loop.operations.length, "operation")}, ${count(loop.dependences.length, "dependence")}, ` +
    `${grouped(back)} of them between iterations.`;
  return (
    <section id={`graph-${loop.index}`} class="part">
      <h3>Dependence graph</h3>
      <p class="note">
        {figures}
        {large
          ? ` Graphs of more than ${MOST_OPERATIONS} operations are not drawn.`
          : " A box says its warp group and its issue cycle."}
      </p>
      {!large && <LaidOut loop={loop} />}
    </section>
  );
}

function LaidOut({ loop }: { loop: LoopModel }) {
  const drawing = useDrawing(loop);
  return drawing ? <Picture loop={loop} drawing={drawing} /> : <p class="note">The graph is being laid out.</p>;
}
