// A step function over the interval against its limits.
import { scaleLinear } from "d3-scale";
import { area, curveStepAfter, line } from "d3-shape";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { grouped } from "../words";

interface Properties {
  title: string;
  /** `[at, value]`, ascending; the last goes on to `end`. */
  steps: [number, number][];
  end: number;
  limits: { name: string; value: number }[];
  unit: string;
  axis: string;
  tone: string;
}

const HEIGHT = 132;
const MARGIN = { left: 58, right: 10, top: 10, bottom: 20 };

/** Width of an element, followed. */
export function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    if (!host.current) return;
    const element = host.current;
    const follow = new ResizeObserver(() => setWidth(Math.max(220, Math.floor(element.clientWidth))));
    follow.observe(element);
    return () => follow.disconnect();
  }, []);
  return [host, width];
}

/** Draws a step function, its peak in words, and its limits as lines with names. */
export function Curve({ title, steps, end, limits, unit, axis, tone }: Properties) {
  const [host, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const peak = Math.max(0, ...steps.map(([, value]) => value));
  const top = Math.max(peak, ...limits.map((limit) => limit.value), 1);
  const x = scaleLinear()
    .domain([0, Math.max(1, end)])
    .range([MARGIN.left, width - MARGIN.right]);
  const y = scaleLinear()
    .domain([0, top * 1.16])
    .range([HEIGHT - MARGIN.bottom, MARGIN.top]);
  const points: [number, number][] = [...steps, [end, steps.at(-1)?.[1] ?? 0]];
  const filled = area<[number, number]>()
    .x((p) => x(p[0]))
    .y0(y(0))
    .y1((p) => y(p[1]))
    .curve(curveStepAfter);
  const edge = line<[number, number]>()
    .x((p) => x(p[0]))
    .y((p) => y(p[1]))
    .curve(curveStepAfter);
  const here = at === null ? null : (steps.findLast(([start]) => start <= at)?.[1] ?? 0);
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const cycle = x.invert(((event.clientX - box.left) * width) / box.width);
    setAt(cycle >= 0 && cycle <= end ? Math.floor(cycle) : null);
  };
  const words = limits.map((limit) => `${limit.name} ${grouped(limit.value)}`).join(", ");
  const said = `${title}: at most ${grouped(peak)} ${unit}${words === "" ? "" : `; ${words}`}`;
  return (
    <figure class="curve">
      <figcaption>
        <strong>{title}</strong> peak {grouped(peak)} {unit}
        {words !== "" && ` · ${words}`}
        <span class="reading">{at !== null && here !== null && `${axis} ${grouped(at)}: ${grouped(here)}`}</span>
      </figcaption>
      <div ref={host}>
        <svg
          viewBox={`0 0 ${width} ${HEIGHT}`}
          role="img"
          aria-label={said}
          onPointerMove={follow}
          onPointerLeave={() => setAt(null)}
        >
          {y.ticks(4).map((tick) => (
            <g key={tick} class="axis">
              <line class="tick" x1={MARGIN.left} x2={width - MARGIN.right} y1={y(tick)} y2={y(tick)} />
              <text x={MARGIN.left - 6} y={y(tick) + 4} text-anchor="end">
                {grouped(tick)}
              </text>
            </g>
          ))}
          {x.ticks(Math.max(2, Math.floor(width / 110))).map((tick) => (
            <text key={tick} class="axis" x={x(tick)} y={HEIGHT - 5} text-anchor="middle">
              {grouped(tick)}
            </text>
          ))}
          <path class={`fill ${tone}`} d={filled(points) ?? ""} />
          <path class={`edge ${tone}`} d={edge(points) ?? ""} />
          {limits.map((limit) => (
            <g key={limit.name} class="limit">
              <text x={width - MARGIN.right} y={y(limit.value) - 3} text-anchor="end">
                {limit.name}
              </text>
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y(limit.value)} y2={y(limit.value)} />
            </g>
          ))}
          {at !== null && <line class="reader" x1={x(at)} x2={x(at)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} />}
        </svg>
      </div>
    </figure>
  );
}
