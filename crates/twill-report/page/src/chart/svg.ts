// Small helpers for SVG elements and text in them.

const NAMESPACE = "http://www.w3.org/2000/svg";

/** Makes an SVG element with attributes. */
export function make<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
  parent?: Element,
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  parent?.append(element);
  return element;
}

/** Letters of a label below which it says nothing. */
const LEAST = 4;
/** Widths that are remembered. */
const MOST_WIDTHS = 50_000;

const widths = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;
let family: string | undefined;

/** Weight of a label's letters. */
export type Weight = 400 | 600;

/** Width in pixels of a label at 11 px. */
export function textWidth(text: string, weight: Weight = 400): number {
  const key = `${weight}${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  context ??= document.createElement("canvas").getContext("2d");
  if (context) context.font = `${weight} 11px ${(family ??= getComputedStyle(document.body).fontFamily)}`;
  const width = context?.measureText(text).width ?? text.length * 7;
  if (widths.size >= MOST_WIDTHS) widths.clear();
  widths.set(key, width);
  return width;
}

/** As much of a label as fits into `room` pixels; empty if that is next to nothing. */
export function fitting(text: string, room: number, weight: Weight = 400): string {
  if (room < 10) return "";
  const width = textWidth(text, weight);
  if (width <= room) return text;
  // Letters differ in width: what the mean allows is measured, and shortened until it fits.
  let letters = Math.min(text.length - 1, Math.floor((room / width) * text.length) + 1);
  while (letters >= LEAST && textWidth(`${text.slice(0, letters)}…`, weight) > room) letters -= 1;
  return letters >= LEAST ? `${text.slice(0, letters)}…` : "";
}

let clips = 0;

/** A name for an element of this page that others refer to. */
export function freshId(prefix: string): string {
  clips += 1;
  return `${prefix}-${clips}`;
}
