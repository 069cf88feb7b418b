// Arrows from what an operation waits for to what waits for it.
import type { ScaleLinear } from "d3-scale";
import { linkHorizontal } from "d3-shape";
import type { Drawn } from "./chart";
import { make } from "./svg";

/** An arrow between the bars of two instances. */
export interface LinkSpec {
  from: string;
  to: string;
  direct: boolean;
  /** It leaves no room: the later operation could not be earlier. */
  tight: boolean;
}

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
