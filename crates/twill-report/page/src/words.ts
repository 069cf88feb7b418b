// Numbers in words, as the terminal report writes them.

/** A number with thousands set apart by a thin space; at most one decimal. */
export function grouped(value: number): string {
  const rounded = Math.round(value * 10) / 10;
  const [whole = "0", part] = Math.abs(rounded).toString().split(".");
  const spaced = whole.length <= 4 ? whole : whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return `${rounded < 0 ? "−" : ""}${spaced}${part ? `.${part}` : ""}`;
}

/** `1 warp`, `4 warps`. */
export function count(value: number, one: string): string {
  return `${grouped(value)} ${one}${value === 1 ? "" : "s"}`;
}

/** `part` of `whole` in percent. */
export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

/** A difference in percent with its sign. */
export function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} %`;
}

/** Seconds in a unit that suits them. */
export function seconds(value: number): string {
  if (!(value >= 0)) return "–";
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(1)} ms`;
  return `${value.toFixed(2)} s`;
}

/** An amount of bytes; whole kibibytes are said as such. */
export function bytes(value: number): string {
  return value >= 1024 && value % 1024 === 0 ? `${grouped(value / 1024)} KiB` : `${grouped(value)} B`;
}

/** `snake_case` of the files as words. */
export function spelled(name: string): string {
  return name.replaceAll("_", " ");
}

/** `file.py:41`. */
export function place(source: { file: string; line: number } | null | undefined): string {
  return source ? `${source.file.split("/").pop() ?? ""}:${source.line}` : "";
}

/** A name with a mark for how many iterations earlier it started. */
export function staged(name: string, stage: number): string {
  return stage <= 3 ? name + "′".repeat(stage) : `${name}′${stage}`;
}
