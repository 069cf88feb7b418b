// The frame of a chart: names of rows, the axis, bands and marks.
import type { ScaleLinear } from "d3-scale";
import { grouped } from "../words";
import type { ChartSpec, Row } from "./spec";
import { fitting, make, textWidth } from "./svg";

/** Pixels of a chart: above its rows, left of its bars, in all. */
export interface Sizes {
  top: number;
  gutter: number;
  width: number;
  height: number;
}

/** Gutters below this have the short names. */
const NARROW = 100;

/** Writes the names of the rows next to their grounds. */
export function drawNames(into: SVGGElement, rows: Row[], tops: number[], sizes: Sizes): void {
  const { gutter, width } = sizes;
  into.replaceChildren();
  rows.forEach((row, index) => {
    const top = tops[index] ?? 0;
    const height = row.lanes * row.laneHeight;
    make("rect", { class: "row", x: gutter, y: top, width: width - gutter, height }, into);
    const both = row.note !== "" && height >= 30;
    const label = make("text", { x: 2, y: top + (both ? 12 : Math.min(height / 2, 14) + 4) }, into);
    label.textContent = fitting((gutter < NARROW && row.short) || row.name, gutter - 8);
    if (!both) return;
    const note = make("text", { class: "note", x: 2, y: top + 25 }, into);
    note.textContent = fitting(row.note, gutter - 8);
  });
}

/** Draws the axis with its bands into `axis`, and the background of the bars into `back`. */
export function drawAxis(
  axis: SVGGElement,
  back: SVGGElement,
  spec: ChartSpec,
  scale: ScaleLinear<number, number>,
  sizes: Sizes,
): void {
  axis.replaceChildren();
  back.replaceChildren();
  const { top, gutter: left, width: right, height } = sizes;
  for (const band of spec.bands) {
    const x0 = Math.max(left, scale(band.start));
    const x1 = Math.min(right, scale(band.end));
    if (x1 <= x0) continue;
    make("rect", { class: `band ${band.kind}`, x: x0, y: 2, width: x1 - x0, height: height - 4 }, back);
    const words = fitting(band.label, x1 - x0 - 8, band.kind === "steady" ? 600 : 400);
    if (words !== "") make("text", { class: `band-name ${band.kind}`, x: x0 + 4, y: 14 }, axis).textContent = words;
  }
  for (const tick of scale.ticks(Math.max(2, Math.floor((right - left) / 90)))) {
    if (!Number.isInteger(tick)) continue;
    const x = scale(tick);
    make("line", { class: "tick", x1: x, x2: x, y1: top - 4, y2: height - 4 }, back);
    const words = grouped(tick);
    // The last number ends where the chart does.
    const middle = Math.min(x, right - 1 - textWidth(words) / 2);
    make("text", { x: middle, y: top - 8, "text-anchor": "middle" }, axis).textContent = words;
  }
  for (const mark of spec.marks) {
    const x = scale(mark);
    if (x >= left && x <= right) make("line", { class: "mark", x1: x, x2: x, y1: 4, y2: height - 4 }, back);
  }
}
