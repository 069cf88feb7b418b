// The data of a chart of bars over time.
import type { Selection } from "../state";

/** The text of the tooltip. */
export interface Tip {
  title: string;
  rows: [name: string, value: string][];
}

/** A stretch of time. */
export interface Bar {
  start: number;
  end: number;
  lane: number;
  label: string;
  /** Class of its colour. */
  tone: string;
  /** `faint`: outlined only; `open-left`, `open-right`: goes on there. */
  style?: string;
  /** Names the instance that lights up with it; bars of one instance share it. */
  instance: string | null;
  /** Arrows of the chain begin and end at this bar of its instance. */
  anchor: boolean;
  selection: Selection | null;
  attributes: Record<string, string | number>;
  aria: string;
  tip: () => Tip;
}

/** An arrow between the bars of two instances. */
export interface LinkSpec {
  from: string;
  to: string;
  direct: boolean;
  /** It leaves no room: the later operation could not be earlier. */
  tight: boolean;
}

/** An arrow from an arrival at a barrier to a wait there; each is at a cycle of an instance. */
export interface HandshakeSpec {
  kind: "full" | "empty";
  arrives: { instance: string; cycle: number };
  waits: { instance: string; cycle: number };
  attributes: Record<string, string | number>;
  tip: () => Tip;
}

/** The highlighted elements of a chart. */
export interface Lighting {
  /** The instance that is selected. */
  chosen: string | null;
  /** The instances that are lit; null: all alike. */
  lit: Set<string> | null;
  links: LinkSpec[];
  handshakes: HandshakeSpec[];
}

/** Nothing is lit. */
export const DARK: Lighting = { chosen: null, lit: null, links: [], handshakes: [] };

/** Bars side by side in lanes, with a name. */
export interface Row {
  name: string;
  /** The name where there is little room. */
  short?: string;
  note: string;
  lanes: number;
  laneHeight: number;
  /** A row that begins a new part of the chart. */
  first?: boolean;
  bars: Bar[];
}

/** A marked stretch of the axis. */
export interface Band {
  start: number;
  end: number;
  label: string;
  kind: "steady" | "ramp" | "measured";
}

/** A chart. */
export interface ChartSpec {
  /** For `data-view`, and as a class. */
  view: string;
  /** A description for screen readers. */
  label: string;
  rows: Row[];
  domain: [number, number];
  bands: Band[];
  /** Cycles with a line from top to bottom. */
  marks: number[];
}
