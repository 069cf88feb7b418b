// A chart of bars over time: rows of lanes, zoomed and panned along the axis.
//
// Bars keep their elements. While the window moves, all of them are stretched together, and only names are placed
// anew; once it rests, each bar gets its place. Those outside the window, or narrower than a pixel next to another,
// are not displayed then.
import { scaleLinear, type ScaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import type { Selection } from "../state";
import { drawAxis, drawNames, type Sizes } from "./frame";
import { KeyboardWalk } from "./keyboard";
import { morph, motion, type Place } from "./morph";
import { drawHandshakes, drawLinks } from "./links";
import { DARK, type Bar, type ChartSpec, type Lighting, type Row, type Tip } from "./spec";
import { fitting, freshId, make } from "./svg";
import { wheelPower } from "./wheel";

/** Pixels of the axis, with and without names of bands above it. */
const TOP = 38;
const TOP_WITHOUT_BANDS = 24;
const ROW_GAP = 5;
const PART_GAP = 13;
/** Milliseconds after which a window that has not moved rests. */
const REST = 120;
/** Pixels from a bar within which a finger hits it. */
const FINGER = 14;
/** Pixels that a cycle may take at most. */
const CLOSEST = 40;

/** A bar with its elements and where it is now. */
export interface Drawn {
  bar: Bar;
  row: number;
  top: number;
  height: number;
  element: SVGGElement;
  rect: SVGRectElement;
  text: SVGTextElement | null;
  /** The current text. */
  label: string;
  shown: boolean;
  left: number;
  width: number;
}

/** The events of a chart. */
export interface ChartEvents {
  tip(tip: Tip | null, of?: Element): void;
  pick(selection: Selection): void;
  clear(): void;
}

/** Draws a chart into an element and keeps it up to date. */
export class Chart {
  readonly svg = make("svg", { class: "chart", tabindex: 0, role: "group" });
  readonly drawn: Drawn[] = [];
  private readonly lanes: Drawn[][] = [];
  private readonly byElement = new WeakMap<Element, Drawn>();
  private readonly anchors = new Map<string, Drawn>();
  private readonly back = make("g", {}, this.svg);
  private readonly names = make("g", { class: "names" }, this.svg);
  private readonly axis = make("g", { class: "axis" }, this.svg);
  private readonly plot = make("g", {}, this.svg);
  private readonly bars = make("g", {}, this.plot);
  private readonly labels = make("g", { class: "labels", "aria-hidden": "true" }, this.plot);
  private readonly links = make("g", { class: "links", "aria-hidden": "true" }, this.plot);
  private readonly handshakes = make("g", { class: "handshakes", "aria-hidden": "true" }, this.plot);
  private readonly handshakeTips = new WeakMap<Element, () => Tip>();
  private readonly clip: SVGRectElement;
  private readonly zoom: ZoomBehavior<SVGSVGElement, unknown>;
  private readonly keyboard: KeyboardWalk;
  private readonly resize: ResizeObserver;
  private transform: ZoomTransform = zoomIdentity;
  private lighting: Lighting = DARK;
  private placed: ScaleLinear<number, number> | null = null;
  /** True if the pointer is a finger. */
  private isTouched = false;
  private frame = 0;
  private rest = 0;
  private width = 0;
  private gutter = 132;
  private height = 0;
  private readonly top: number;
  private rowTops: number[] = [];

  constructor(
    private readonly host: HTMLElement,
    private readonly spec: ChartSpec,
    private readonly events: ChartEvents,
  ) {
    this.top = spec.bands.length > 0 ? TOP : TOP_WITHOUT_BANDS;
    this.svg.classList.add(`chart-${spec.view}`);
    this.svg.dataset.view = spec.view;
    this.svg.setAttribute("aria-label", spec.label);
    const id = freshId("clip");
    this.clip = make("rect", {}, make("clipPath", { id }, make("defs", {}, this.svg)));
    this.plot.setAttribute("clip-path", `url(#${id})`);
    this.build();
    this.zoom = zoom<SVGSVGElement, unknown>()
      .filter((event: MouseEvent | WheelEvent) => this.takes(event))
      .wheelDelta(wheelPower)
      .clickDistance(4)
      .on("zoom", (event: { transform: ZoomTransform }) => {
        this.transform = event.transform;
        this.move();
      });
    select(this.svg).call(this.zoom).on("dblclick.zoom", null);
    this.keyboard = new KeyboardWalk(this, events);
    this.listen();
    host.replaceChildren(this.svg);
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(host);
    this.fit();
  }

  /** Takes the chart away. */
  destroy(): void {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    this.svg.remove();
  }

  /** Where the bars that are shown are, by the name that they keep from schedule to schedule. */
  places(): Map<string, Place> {
    const shown = this.drawn.filter((drawn) => drawn.shown && drawn.width > 0);
    return new Map(shown.map((drawn) => [this.keyOf(drawn), drawn]));
  }

  /** Moves its bars from where they were in another chart; those that are new appear. */
  moveFrom(places: Map<string, Place>): void {
    if (motion.milliseconds === 0) return;
    for (const drawn of this.drawn) {
      if (!drawn.shown) continue;
      const from = places.get(this.keyOf(drawn));
      if (from) morph(drawn.element, from, drawn);
      else drawn.element.animate([{ opacity: 0 }, { opacity: 1 }], motion.milliseconds);
    }
    this.labels.animate([{ opacity: 0 }, { opacity: 0 }, { opacity: 1 }], motion.milliseconds);
  }

  /** Zooms by a factor around the middle, or around a cycle. */
  zoomBy(factor: number): void {
    select(this.svg).call(this.zoom.scaleBy, factor);
  }

  /** Pans by a part of the window; positive: to later cycles. */
  panBy(part: number): void {
    const pixels = part * (this.width - this.gutter);
    select(this.svg).call(this.zoom.translateBy, -pixels / this.transform.k, 0);
  }

  /** Shows everything again. */
  reset(): void {
    select(this.svg).call(this.zoom.transform, zoomIdentity);
  }

  /** The axis as it is now. */
  scale(): ScaleLinear<number, number> {
    const base = scaleLinear()
      .domain(this.spec.domain)
      .range([this.gutter, this.width - 6]);
    return this.transform.rescaleX(base);
  }

  /** Lights up instances, with arrows between them. */
  light(lighting: Lighting): void {
    const { chosen, lit } = lighting;
    this.svg.classList.toggle("has-chain", lit !== null);
    for (const { bar, element, text } of this.drawn) {
      const own = chosen !== null && bar.instance === chosen;
      const bright = lit !== null && bar.instance !== null && lit.has(bar.instance);
      element.classList.toggle("selected", own);
      element.classList.toggle("lit", bright);
      text?.classList.toggle("lit", bright);
      if (own) element.setAttribute("aria-pressed", "true");
      else element.removeAttribute("aria-pressed");
    }
    this.lighting = lighting;
    this.redraw();
  }

  /** The bar of an element. */
  barOf(target: EventTarget | null): Drawn | undefined {
    const element = target instanceof Element ? target.closest(".bar") : null;
    return element ? this.byElement.get(element) : undefined;
  }

  /** Moves the window, so that a bar is in it, and shows it however small it is. */
  reveal(drawn: Drawn): void {
    const scale = this.scale();
    const [left, right] = [scale(drawn.bar.start), scale(drawn.bar.end)];
    if (left < this.gutter || right > this.width) {
      const base = scaleLinear()
        .domain(this.spec.domain)
        .range([this.gutter, this.width - 6]);
      const middle = (drawn.bar.start + drawn.bar.end) / 2;
      select(this.svg).call(this.zoom.translateTo, base(middle), 0);
    }
    this.redraw(drawn);
  }

  /** A bar of a unit, or of a warp group, whichever that is. */
  private keyOf({ bar }: Drawn): string {
    return `${bar.attributes["unit"] ?? ""} ${bar.instance ?? bar.label}`;
  }

  private takes(event: MouseEvent | WheelEvent): boolean {
    if (event.type !== "wheel") return !event.ctrlKey && !event.button;
    const wheel = event as WheelEvent;
    if (wheel.shiftKey || Math.abs(wheel.deltaX) > Math.abs(wheel.deltaY)) return false;
    // Without focus, the wheel scrolls the page.
    return wheel.ctrlKey || wheel.metaKey || this.svg.contains(document.activeElement);
  }

  private listen(): void {
    const { svg, events } = this;
    const handshake = (target: EventTarget | null) => (target instanceof Element ? target.closest(".handshake") : null);
    svg.addEventListener("pointerdown", (event) => (this.isTouched = event.pointerType === "touch"));
    svg.addEventListener("pointerover", (event) => {
      // A finger that scrolls passes over bars; one that taps clicks.
      if (event.pointerType === "touch") return;
      const drawn = this.barOf(event.target);
      const over = drawn?.element ?? handshake(event.target);
      const tip = drawn?.bar.tip ?? (over && this.handshakeTips.get(over));
      events.tip(tip?.() ?? null, over ?? undefined);
    });
    svg.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && events.tip(null));
    svg.addEventListener("focusin", (event) => {
      const drawn = this.barOf(event.target);
      if (drawn) events.tip(drawn.bar.tip(), drawn.element);
    });
    svg.addEventListener("focusout", () => events.tip(null));
    svg.addEventListener("click", (event) => {
      const barrier = handshake(event.target);
      const near = this.isTouched && !barrier ? this.near(event) : undefined;
      const drawn = this.barOf(event.target) ?? near;
      if (drawn?.bar.selection) events.pick(drawn.bar.selection);
      else if (!drawn && !barrier) events.clear();
      const over = drawn?.element ?? barrier;
      const tip = drawn?.bar.tip ?? (barrier && this.handshakeTips.get(barrier));
      if (this.isTouched && over && tip) events.tip(tip(), over);
      // The window moves with arrows, and the wheel zooms, from here on.
      if (!svg.contains(document.activeElement)) svg.focus({ preventScroll: true });
    });
    svg.addEventListener("dblclick", () => this.reset());
    svg.addEventListener(
      "wheel",
      (event) => {
        const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
        if (!event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
        event.preventDefault();
        select(svg).call(this.zoom.translateBy, -sideways / this.transform.k, 0);
      },
      { passive: false },
    );
    svg.addEventListener("keydown", (event) => this.keyboard.key(event));
  }

  /** The bar next to a finger in its lane: many are narrower than a finger is wide. */
  private near(event: MouseEvent): Drawn | undefined {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const away = ({ left, width }: Drawn) => Math.max(left - x, x - left - width, 0);
    return this.drawn
      .filter((drawn) => drawn.shown && drawn.top <= y && y < drawn.top + drawn.height && away(drawn) <= FINGER)
      .sort((a, b) => away(a) - away(b))[0];
  }

  private build(): void {
    let top = this.top;
    this.spec.rows.forEach((row, index) => {
      if (index > 0) top += row.first ? PART_GAP : ROW_GAP;
      this.rowTops.push(top);
      this.buildRow(row, index, top);
      top += row.lanes * row.laneHeight;
    });
    this.height = top + 6;
  }

  private buildRow(row: Row, index: number, top: number): void {
    const lanes: Drawn[][] = Array.from({ length: row.lanes }, () => []);
    for (const bar of row.bars) {
      const height = row.laneHeight - 2;
      const y = top + bar.lane * row.laneHeight + 1;
      const element = make("g", { class: `bar ${bar.tone} ${bar.style ?? ""}`, tabindex: -1, role: "button" });
      element.setAttribute("aria-label", bar.aria);
      for (const [name, value] of Object.entries(bar.attributes)) element.setAttribute(`data-${name}`, String(value));
      const rect = make("rect", { y, height, rx: 2 }, element);
      const drawn = {
        bar,
        row: index,
        top: y,
        height,
        element,
        rect,
        text: null,
        label: "",
        shown: true,
        left: NaN,
        width: NaN,
      };
      this.byElement.set(element, drawn);
      this.drawn.push(drawn);
      lanes[bar.lane]?.push(drawn);
      if (bar.anchor && bar.instance !== null) this.anchors.set(bar.instance, drawn);
      this.bars.append(element);
    }
    for (const lane of lanes) lane.sort((a, b) => a.bar.start - b.bar.start);
    this.lanes.push(...lanes);
  }

  private fit(): void {
    const width = Math.max(240, Math.floor(this.host.clientWidth));
    if (width === this.width) return;
    this.width = width;
    this.gutter = width < 560 ? 82 : 132;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    const [from, to] = this.spec.domain;
    const room = width - this.gutter;
    this.zoom
      .extent([
        [this.gutter, 0],
        [width - 6, this.height],
      ])
      .translateExtent([
        [this.gutter, -Infinity],
        [width - 6, Infinity],
      ])
      .scaleExtent([1, Math.max(2, (CLOSEST * (to - from)) / room)]);
    for (const [name, value] of Object.entries({ x: this.gutter, y: 0, width: room, height: this.height })) {
      this.clip.setAttribute(name, String(value));
    }
    drawNames(this.names, this.spec.rows, this.rowTops, this.sizes());
    this.redraw();
  }

  private move(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.stretch();
    });
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.redraw(), REST);
  }

  /** Shows the window as it is now by moving all bars from where they were placed. */
  private stretch(): void {
    const from = this.placed;
    if (!from) return;
    const scale = this.scale();
    const [a = 0, b = 1] = this.spec.domain;
    const factor = (scale(b) - scale(a)) / (from(b) - from(a));
    // Edges are stretched too: not by much.
    if (factor > 2 || factor < 0.5) return this.redraw();
    const shift = scale(a) - factor * from(a);
    this.bars.setAttribute("transform", `matrix(${factor} 0 0 1 ${shift} 0)`);
    for (const drawn of this.drawn) {
      if (drawn.shown) this.placeText(drawn, scale(drawn.bar.start), scale(drawn.bar.end));
    }
    drawAxis(this.axis, this.back, this.spec, scale, this.sizes());
    this.drawLit(scale);
  }

  private redraw(always?: Drawn): void {
    const scale = this.scale();
    clearTimeout(this.rest);
    this.placed = scale;
    this.bars.removeAttribute("transform");
    drawAxis(this.axis, this.back, this.spec, scale, this.sizes());
    const focused = always ?? this.barOf(document.activeElement);
    for (const lane of this.lanes) {
      let last = -Infinity;
      for (const drawn of lane) {
        const left = scale(drawn.bar.start);
        const right = scale(drawn.bar.end);
        const outside = right < this.gutter || left > this.width;
        const merged = right - left < 1 && right <= last + 0.5;
        const shown = drawn === focused || !(outside || merged);
        if (shown) last = Math.max(last, this.place(drawn, left, right));
        if (shown !== drawn.shown) {
          drawn.shown = shown;
          drawn.element.style.display = shown ? "" : "none";
          if (!shown) this.setText(drawn, "");
        }
      }
    }
    this.drawLit(scale);
  }

  private drawLit(scale: ScaleLinear<number, number>): void {
    const { links, handshakes } = this.lighting;
    drawLinks(this.links, links, this.anchors, scale);
    drawHandshakes(this.handshakes, handshakes, this.anchors, scale, this.handshakeTips);
  }

  private sizes(): Sizes {
    return { top: this.top, gutter: this.gutter, width: this.width, height: this.height };
  }

  private place(drawn: Drawn, left: number, right: number): number {
    const width = Math.max(1, right - left - (right - left > 3 ? 0.75 : 0));
    if (left !== drawn.left || width !== drawn.width) {
      drawn.left = left;
      drawn.width = width;
      drawn.rect.setAttribute("x", left.toFixed(2));
      drawn.rect.setAttribute("width", width.toFixed(2));
    }
    this.placeText(drawn, left, left + width);
    return left + width;
  }

  private placeText(drawn: Drawn, left: number, right: number): void {
    const from = Math.max(left, this.gutter);
    const room = Math.min(right, this.width) - from - 7;
    const text = drawn.height < 11 || room < 10 ? "" : fitting(drawn.bar.label, room);
    this.setText(drawn, text);
    if (text !== "") drawn.text?.setAttribute("x", (from + 4).toFixed(1));
  }

  private setText(drawn: Drawn, text: string): void {
    if (drawn.label === text) return;
    drawn.label = text;
    if (!drawn.text) {
      const bright = drawn.element.classList.contains("lit") ? "lit" : "";
      const y = drawn.top + drawn.height / 2 + 4;
      drawn.text = make("text", { class: `bar-name ${drawn.bar.tone} ${bright}`, y }, this.labels);
    }
    drawn.text.textContent = text;
  }
}
