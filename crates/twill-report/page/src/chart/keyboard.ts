// Keys on a chart: + - 0 and arrows move the window; Enter goes to the bars, and arrows from bar to bar.
import type { Chart, ChartEvents, Drawn } from "./chart";

/** Walks over the bars of a chart. */
export class KeyboardWalk {
  constructor(
    private readonly chart: Chart,
    private readonly events: ChartEvents,
  ) {}

  /** Does what a key is for. */
  key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.chart.barOf(event.target);
    if (this.window(event, at === undefined) || this.bars(event, at)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  private window(event: KeyboardEvent, arrows: boolean): boolean {
    const { chart } = this;
    if (event.key === "+" || event.key === "=") chart.zoomBy(1.5);
    else if (event.key === "-") chart.zoomBy(1 / 1.5);
    else if (event.key === "0" || event.key === "Home") chart.reset();
    else if ((arrows || event.shiftKey) && event.key === "ArrowLeft") chart.panBy(-0.2);
    else if ((arrows || event.shiftKey) && event.key === "ArrowRight") chart.panBy(0.2);
    else return false;
    return true;
  }

  private bars(event: KeyboardEvent, at: Drawn | undefined): boolean {
    if (event.key === "Escape") {
      this.events.clear();
      this.events.tip(null);
      if (at) this.chart.svg.focus();
      return true;
    }
    if (!at) {
      if (event.key !== "Enter") return false;
      return this.focus(this.chart.drawn.find((drawn) => drawn.shown));
    }
    switch (event.key) {
      case "Enter":
      case " ":
        if (at.bar.selection) this.events.pick(at.bar.selection);
        return true;
      case "ArrowRight":
        return this.along(at, 1);
      case "ArrowLeft":
        return this.along(at, -1);
      case "ArrowDown":
        return this.across(at, 1);
      case "ArrowUp":
        return this.across(at, -1);
      default:
        return false;
    }
  }

  private focus(drawn: Drawn | undefined): boolean {
    if (!drawn) return true;
    this.chart.reveal(drawn);
    drawn.element.focus({ preventScroll: false });
    return true;
  }

  private row(index: number): Drawn[] {
    return this.chart.drawn.filter((d) => d.row === index).sort((a, b) => a.bar.start - b.bar.start);
  }

  private along(at: Drawn, step: number): boolean {
    const row = this.row(at.row);
    return this.focus(row[row.indexOf(at) + step]);
  }

  private across(at: Drawn, step: number): boolean {
    const rows = Math.max(...this.chart.drawn.map((d) => d.row));
    for (let index = at.row + step; index >= 0 && index <= rows; index += step) {
      const distance = (d: Drawn) => Math.abs(d.bar.start - at.bar.start);
      const nearest = this.row(index).reduce<Drawn | undefined>(
        (best, d) => (best && distance(best) <= distance(d) ? best : d),
        undefined,
      );
      if (nearest) return this.focus(nearest);
    }
    return true;
  }
}
