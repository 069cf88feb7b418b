// What is asked in the playground, and the link that holds it.
import type { Example } from "./offered";

/** What is asked. Sliders that stand where the machine has them are left out. */
export interface State {
  /** The file of an example; null: an input of the user's own. */
  example: string | null;
  /** The input, where it is the user's own. */
  text: string;
  machine: string;
  sharedBytes?: number;
  registers?: number;
  groups?: number;
  /** Factors of the units' rates. */
  rates: Record<string, number>;
  latencies?: number;
  subTiles?: number;
  step?: number;
}

/** The state to begin with. */
export const FIRST: State = { example: "attention_forward.ttir", text: "", machine: "h200", rates: {} };

/** A question as the engine reads it (crates/twill-playground/src/question.rs). */
export interface Question {
  name: string;
  text: string;
  machine: string;
  changes: { rates: Record<string, number>; latencies?: number; shared_bytes?: number };
  options: Record<string, number>;
  explain: boolean;
}

/** Leaves out what is not set. */
function present<T>(fields: Record<string, T | undefined>): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Record<string, T>;
}

/** The question of a state. */
export function questionOf(state: State, examples: Example[], explain: boolean): Question {
  const example = examples.find((one) => one.name === state.example);
  const text = example?.text ?? state.text;
  const options = { compute_groups: state.groups, registers_per_thread: state.registers };
  const ofKernels = { sub_tiles: state.subTiles, retile_loop: state.step };
  const changes = { rates: state.rates, ...present({ latencies: state.latencies, shared_bytes: state.sharedBytes }) };
  return {
    name: example?.name ?? "input",
    text,
    machine: state.machine,
    changes,
    options: present(isGraph(text) ? options : { ...options, ...ofKernels }),
    explain,
  };
}

/** True for a loop graph: JSON begins with a brace, and TTIR does not. */
export function isGraph(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** The state with another machine: what was changed of the old one is undone. */
export function onMachine(state: State, machine: string): State {
  return { example: state.example, text: state.text, machine, rates: {} };
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: GenericTransformStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** The part of the address that holds a state: compressed JSON in base64url. */
export async function linkOf(state: State): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(state)) as Uint8Array<ArrayBuffer>;
  const packed = await through(json, new CompressionStream("deflate"));
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  return `#s=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** The state of such an address; null if it holds none. */
export async function stateOf(hash: string): Promise<State | null> {
  if (!hash.startsWith("#s=")) return null;
  try {
    const letters = atob(hash.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const json = new TextDecoder().decode(await through(packed, new DecompressionStream("deflate")));
    return read(JSON.parse(json));
  } catch {
    return null; // Cut, or of something else.
  }
}

const NUMBERS = ["sharedBytes", "registers", "groups", "latencies", "subTiles", "step"] as const;

/** A state of what may be anything: links come from others. */
function read(value: unknown): State | null {
  if (typeof value !== "object" || value === null) return null;
  const given = value as Record<string, unknown>;
  const text = (name: string) => (typeof given[name] === "string" ? (given[name] as string) : undefined);
  const state: State = { ...FIRST, example: text("example") ?? null, text: text("text") ?? "", rates: {} };
  state.machine = text("machine") ?? FIRST.machine;
  for (const name of NUMBERS) {
    const number = given[name];
    if (typeof number === "number" && Number.isFinite(number)) state[name] = number;
  }
  for (const [unit, factor] of Object.entries(given["rates"] ?? {})) {
    if (typeof factor === "number" && Number.isFinite(factor)) state.rates[unit] = factor;
  }
  return state;
}
