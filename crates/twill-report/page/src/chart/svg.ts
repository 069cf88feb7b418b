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

const widths = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

/** Width in pixels of a label at 11 px. */
export function textWidth(text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  if (context === undefined) {
    context = document.createElement("canvas").getContext("2d");
    if (context) context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  }
  const width = context?.measureText(text).width ?? text.length * 6;
  widths.set(text, width);
  return width;
}

/** As much of a label as fits into `room` pixels; empty if that is next to nothing. */
export function fitting(text: string, room: number): string {
  if (room < 10) return "";
  const width = textWidth(text);
  if (width <= room) return text;
  const letters = Math.floor(((room - 6) / width) * text.length);
  return letters >= 4 ? `${text.slice(0, letters)}…` : "";
}

let clips = 0;

/** A name for an element of this page that others refer to. */
export function freshId(prefix: string): string {
  clips += 1;
  return `${prefix}-${clips}`;
}
