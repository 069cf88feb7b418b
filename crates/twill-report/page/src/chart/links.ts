// Arrows from the producers of an operation to its consumers, and between those that share a barrier.
import type { ScaleLinear } from "d3-scale";
import { linkHorizontal } from "d3-shape";
import type { Drawn } from "./chart";
import type { HandshakeSpec, LinkSpec, Tip } from "./spec";
import { make } from "./svg";

/** More arrows than this show nothing. */
const MOST = 400;

const path = linkHorizontal<{ source: [number, number]; target: [number, number] }, [number, number]>();

/** Draws the arrows for the axis as it is. */
export function drawLinks(
  into: SVGGElement,
  links: LinkSpec[],
  anchors: Map<string, Drawn>,
  scale: ScaleLinear<number, number>,
): void {
  into.replaceChildren();
  for (const link of links.slice(0, MOST)) {
    const from = anchors.get(link.from);
    const to = anchors.get(link.to);
    if (!from || !to) continue;
    const middle = (drawn: Drawn) => drawn.top + drawn.height / 2;
    const source: [number, number] = [scale(from.bar.end), middle(from)];
    const target: [number, number] = [scale(to.bar.start), middle(to)];
    const kind = `link ${link.direct ? "direct" : ""} ${link.tight ? "tight" : ""}`;
    make("path", { class: kind, d: path({ source, target }) ?? "" }, into);
    if (link.direct) make("circle", { class: kind, cx: target[0], cy: target[1], r: 2.5 }, into);
  }
}

/** Draws who arrives at barriers (a disc) and who waits there (a triangle); `tips` gets what each says of itself. */
export function drawHandshakes(
  into: SVGGElement,
  handshakes: HandshakeSpec[],
  anchors: Map<string, Drawn>,
  scale: ScaleLinear<number, number>,
  tips: WeakMap<Element, () => Tip>,
): void {
  into.replaceChildren();
  for (const { kind, arrives, waits, attributes, tip } of handshakes.slice(0, MOST)) {
    const [from, to] = [anchors.get(arrives.instance), anchors.get(waits.instance)];
    if (!from || !to) continue;
    // Near the lower edge of the bars, below their names.
    const at = (drawn: Drawn, cycle: number): [number, number] => [scale(cycle), drawn.top + drawn.height - 3];
    const [source, target] = [at(from, arrives.cycle), at(to, waits.cycle)];
    const group = make("g", { class: `handshake ${kind}` }, into);
    for (const [name, value] of Object.entries(attributes)) group.setAttribute(`data-${name}`, String(value));
    const d = path({ source, target }) ?? "";
    make("path", { class: "reach", d }, group);
    make("path", { class: "way", d }, group);
    make("circle", { class: "arrives", cx: source[0], cy: source[1], r: 3.5 }, group);
    const [x, y] = target;
    make("path", { class: "waits", d: `M${x - 7} ${y - 4.5}L${x} ${y}L${x - 7} ${y + 4.5}Z` }, group);
    tips.set(group, tip);
  }
}
