// Paints the placed operations on a canvas: thousands of boxes, of which only those that are seen cost anything.
import { fitting } from "../chart/svg";
import { HUES } from "../parts/bars";
import type { DataflowModel, Placed } from "./model";

/** Where things are before zooming, in pixels. */
export interface Field {
  width: number;
  height: number;
  /** Pixels of a step, and of a lane. */
  step: number;
  lane: number;
  /** Top of each block. */
  tops: number[];
}

/** Zoom and pan. */
export interface View {
  k: number;
  x: number;
  y: number;
}

/** Colours of the theme, for what is painted. */
export interface Colours {
  text: string;
  dim: string;
  line: string;
  ground: string;
  strong: string;
  fills: string[];
  edges: string[];
}

const BLOCK_GAP = 18;
const TOP = 20;

/** Places the blocks in a field of a width. */
export function fieldOf(model: DataflowModel, width: number, most: number): Field {
  const lanes = model.blocks.reduce((sum, block) => sum + block.lanes, 0);
  const room = most - TOP - BLOCK_GAP * model.blocks.length;
  const lane = Math.max(0.5, Math.min(18, room / Math.max(1, lanes)));
  const tops: number[] = [];
  let top = TOP;
  for (const block of model.blocks) {
    tops.push(top + BLOCK_GAP - 4);
    top += BLOCK_GAP + block.lanes * lane;
  }
  return { width, height: Math.ceil(top + 8), step: width / model.end, lane, tops };
}

/** Colours as the style sheet has them now. */
export function coloursOf(host: HTMLElement): Colours {
  const probe = document.createElement("span");
  host.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const hues = Array.from({ length: HUES }, (_, k) => k);
  const colours = {
    text: read("--text"),
    dim: read("--dim"),
    line: read("--line"),
    ground: read("--panel"),
    strong: read("--accent"),
    fills: hues.map((k) => read(`--group-${k}`)),
    edges: hues.map((k) => read(`--group-${k}-edge`)),
  };
  probe.remove();
  return colours;
}

/** The box of an operation on the screen. */
export function boxOf(field: Field, view: View, block: number, placed: Placed): [number, number, number, number] {
  const x = view.x + view.k * placed.start * field.step;
  const y = view.y + view.k * ((field.tops[block] ?? 0) + placed.lane * field.lane);
  return [x, y, view.k * (placed.end - placed.start) * field.step, view.k * field.lane];
}

function label(
  pen: CanvasRenderingContext2D,
  placed: Placed,
  box: [number, number, number, number],
  colours: Colours,
): void {
  const [x, y, width, height] = box;
  const from = Math.max(x, 0);
  const text = fitting(placed.name, Math.min(x + width, pen.canvas.clientWidth) - from - 8);
  if (text === "") return;
  pen.fillStyle = colours.text;
  pen.fillText(text, from + 4, y + height / 2 + 4);
}

/** Paints what is in view. Boxes that fall on pixels already taken in their lane are left out. */
export function paint(
  pen: CanvasRenderingContext2D,
  model: DataflowModel,
  field: Field,
  view: View,
  colours: Colours,
  lit: Set<number> | null,
): number {
  const { width, height } = field;
  let painted = 0;
  pen.clearRect(0, 0, width, height);
  pen.lineWidth = 1;
  axis(pen, model, field, view, colours);
  model.blocks.forEach((block, index) => {
    const laneHeight = view.k * field.lane;
    // Lanes closer than a pixel are painted as one.
    const every = Math.max(1, Math.floor(1 / laneHeight));
    const last = new Float64Array(block.lanes).fill(-Infinity);
    const gap = laneHeight >= 4 ? 1 : 0;
    for (const placed of block.operations) {
      if (placed.lane % every !== 0 && lit?.has(placed.index) !== true) continue;
      const box = boxOf(field, view, index, placed);
      const [x, y, w, h] = box;
      if (x + w < 0 || x > width || y + h < 0 || y > height) continue;
      const before = last[placed.lane] ?? -Infinity;
      if (w < 1 && x + w <= before) continue;
      last[placed.lane] = x + Math.max(1, w);
      painted += 1;
      pen.globalAlpha = lit && !lit.has(placed.index) ? 0.25 : 1;
      pen.fillStyle = colours.fills[index % HUES] ?? colours.text;
      pen.fillRect(x, y, Math.max(1, w - gap), Math.max(1, h - gap));
      if (w > 4 && h > 6) {
        pen.strokeStyle = colours.edges[index % HUES] ?? colours.text;
        pen.strokeRect(x + 0.5, y + 0.5, w - gap - 1, h - gap - 1);
      }
      if (h >= 12) label(pen, placed, box, colours);
    }
    pen.globalAlpha = 1;
    const top = view.y + view.k * (field.tops[index] ?? 0);
    if (top > 12 && top < height + 10) {
      pen.fillStyle = colours.dim;
      pen.fillText(block.resource, 2, top - 4);
    }
  });
  return painted;
}

function axis(pen: CanvasRenderingContext2D, model: DataflowModel, field: Field, view: View, colours: Colours): void {
  const pixels = view.k * field.step;
  const raw = 70 / pixels;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const every = Math.max(1, [1, 2, 5, 10].map((f) => f * power).find((step) => step >= raw) ?? 10 * power);
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.dim;
  const first = Math.max(0, Math.floor(-view.x / pixels / every) * every);
  for (let step = first; step <= model.end; step += every) {
    const x = Math.round(view.x + step * pixels) + 0.5;
    if (x > field.width) break;
    pen.beginPath();
    pen.moveTo(x, 14);
    pen.lineTo(x, field.height);
    pen.stroke();
    pen.fillText(String(step), x + 3, 11);
  }
}

/** Lines from and to an operation. */
export function paintEdges(
  pen: CanvasRenderingContext2D,
  model: DataflowModel,
  field: Field,
  view: View,
  colours: Colours,
  at: number,
): void {
  const blockOf = new Map(
    model.blocks.flatMap((block, index) => block.operations.map((o) => [o.index, index] as const)),
  );
  const middle = (index: number, end: boolean): [number, number] | null => {
    const placed = model.operations[index];
    const block = blockOf.get(index);
    if (!placed || block === undefined) return null;
    const [x, y, w, h] = boxOf(field, view, block, placed);
    return [end ? x + w : x, y + h / 2];
  };
  pen.strokeStyle = colours.strong;
  pen.lineWidth = 1.5;
  for (const edge of [...(model.incoming[at] ?? []), ...(model.outgoing[at] ?? [])]) {
    const from = middle(edge.from, true);
    const to = middle(edge.to, false);
    if (!from || !to) continue;
    const half = (from[0] + to[0]) / 2;
    pen.setLineDash(edge.distance > 0 ? [5, 4] : []);
    pen.beginPath();
    pen.moveTo(...from);
    pen.bezierCurveTo(half, from[1], half, to[1], ...to);
    pen.stroke();
  }
  pen.setLineDash([]);
}
