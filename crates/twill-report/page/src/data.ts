// The page's data as `twill report` writes them: docs/formats.md describes the schedule files, and
// crates/twill-report/src/page the rest. Times are clock cycles unless said otherwise.

export interface Source {
  file: string;
  line: number;
  column?: number | null;
}

export interface PlacedOperation {
  name: string;
  kind: string;
  source?: Source | null;
  cycle: number;
  stage: number;
  group: number;
  unit?: string | null;
}

export interface GroupEntry {
  id: number;
  role: string;
  warps: number;
  registers_per_thread: number;
}

export interface ChannelEntry {
  buffer: string;
  from: number;
  to: number;
  memory: string;
  bytes?: number | null;
  columns?: number | null;
  depth: number;
}

export interface RingEntry {
  buffer: string;
  bytes: number;
  depth: number;
}

export interface GraphOperation {
  name: string;
  kind?: string | null;
  source?: Source | null;
  units?: { unit: string; start?: number; cycles: number }[];
  cycles?: number | null;
  latency?: number | null;
  execution?: string;
  issue_width?: number;
  result?: { registers?: number; shared_memory?: number; tensor_memory?: number } | null;
  variable_latency?: boolean;
  streaming?: boolean;
  transfer_latency?: number;
  handoff?: number;
  sub_tile?: number | null;
  traffic?: { shared?: number };
}

export interface GraphDependence {
  from: string;
  to: string;
  delay?: number | null;
  distance?: number;
  value?: boolean | null;
  blocking?: boolean | null;
  tied?: boolean;
  hold?: number | null;
}

export interface LowerBound {
  interval: number;
  kind: string;
  witness?: { unit?: string; operations?: string[] } | null;
}

export interface Objective {
  level: string;
  loop?: number | null;
  value: number;
  proved: boolean;
}

export interface ScheduleFile {
  status: string;
  infeasible?: unknown;
  stopped_by?: string | null;
  initiation_interval?: number | null;
  length?: number | null;
  stages?: number | null;
  lower_bound: LowerBound;
  modulo?: { initiation_interval: number; length: number; length_proved: boolean } | null;
  normalisation?: { limit: number; error: number; distortion: number } | null;
  operations?: PlacedOperation[];
  groups?: GroupEntry[];
  channels?: ChannelEntry[];
  rings?: RingEntry[];
  objectives?: Objective[];
  rejections?: unknown[];
  seconds?: Record<string, number>;
  problem: {
    graph: { name: string; operations: GraphOperation[]; dependences?: GraphDependence[] };
    resources: {
      name: string;
      units: { name: string; capacity: number }[];
      shared_memory?: number;
      tensor_memory?: number;
      shared_bytes_per_cycle?: number | null;
    };
    options?: Record<string, unknown>;
  };
}

export interface ExplanationFile {
  rejections?: { interval: number; conflict: { members: { family: string }[] } }[];
  what_ifs?: { initiation_interval?: number | null; percent?: number | null }[];
}

export interface RegisterCurve {
  group: number;
  live: [cycle: number, words: number][];
  reserve: number;
  granted: number;
  limit: number;
}

export interface BufferLife {
  operation: string;
  amount: number;
  slots: number;
  start: number;
  end: number;
  ring: boolean;
}

export interface MemoryUse {
  memory: string;
  unit: string;
  capacity: number;
  reserved: number;
  live: [cycle: number, amount: number][];
  buffers: BufferLife[];
}

export interface Loop {
  schedule: ScheduleFile;
  bound: string;
  explanation?: ExplanationFile | null;
  rejected?: { intervals: string; why: string }[];
  what_ifs?: { change: string; answer: string }[];
  registers?: RegisterCurve[];
  memories?: MemoryUse[];
  flop?: number;
  simulated?: number | null;
  sass_estimate?: number | null;
}

export interface KernelFile {
  name: string;
  status: string;
  weights?: number[];
  cycles?: number | null;
  lower_bound?: number | null;
  ties?: { reason: string; operations: { loop: number; operation: string }[] }[];
  objectives?: Objective[];
  seconds?: Record<string, number>;
  stopped_by?: string | null;
}

export interface DataflowOperation {
  name: string;
  latency?: number;
  storage?: number;
  uses?: { resource: string; offset?: number; steps?: number; amount?: number }[];
}

export interface DataflowFile {
  graph: {
    name: string;
    resources?: { name: string; limit?: number | null }[];
    operations: DataflowOperation[];
    dependences?: { from: string; to: string; delay?: number | null; distance?: number }[];
  };
  objective: { kind: string; peak?: number; communication?: number };
  latency_bound?: number | null;
  interval?: number | null;
  steps: number[];
  summary?: {
    engine?: string;
    seed?: number;
    objective?: { kind: string; value: number; lower_bound: number };
    latency?: number;
    latency_bound?: number | null;
    interval?: number | null;
    peaks?: Record<string, number>;
    communication?: number;
    storage?: number;
    seconds?: Record<string, number>;
    trace?: [seconds: number, value: number][];
  } | null;
}

export interface Code {
  file: string;
  language: string;
  text: string;
  lines?: { loop: number; operation: string; line: number }[];
}

export interface Assembly {
  registers: number;
  spill_stores: number;
  spill_loads: number;
  findings: { kind: string; message: string }[];
}

export interface Chip {
  clock_mhz: number;
  multiprocessors: number;
}

export interface TraceLoop {
  loop: number;
  initiation_interval: { predicted: number; measured: number };
  operations: {
    operation: string;
    group: number;
    predicted: { start: number; end: number };
    measured: { start: number; end: number };
  }[];
  events: { operation: string; group: number; iteration: number; start: number; end: number }[];
}

export interface TraceFile {
  name: string;
  machine: string;
  gpu: string;
  date: string;
  revision?: string | null;
  timestamps: string;
  loops: TraceLoop[];
}

export interface Page {
  format: string;
  version: number;
  name: string;
  machine?: string | null;
  twill: string;
  headline: string;
  loops: Loop[];
  kernel?: KernelFile | null;
  dataflow?: DataflowFile | null;
  code?: Code | null;
  trace?: TraceFile | null;
  assembly?: Assembly | null;
  chip?: Chip | null;
}

/** Puts the texts of a list in the places of their numbers. */
function restored(value: unknown, strings: string[]): unknown {
  if (typeof value === "string") return strings[Number(value)];
  if (value !== null && typeof value === "object") {
    const fields = value as Record<string, unknown>;
    for (const key of Object.keys(fields)) fields[key] = restored(fields[key], strings);
  }
  return value;
}

/**
 * The data of this page: JSON in which every text stands once, compressed, in base64 (crates/twill-report/src/page/packed.rs).
 * Fails if they are missing or of another version.
 */
export async function readPage(): Promise<Page> {
  const packed = atob(document.getElementById("data")?.textContent ?? "");
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = (await new Response(json).json()) as { strings: string[]; page: unknown };
  const page = restored(data.page, data.strings) as Page | null;
  if (page?.format !== "twill-report" || page.version !== 1) {
    throw new Error("the data of this page are not a report of version 1");
  }
  return page;
}
