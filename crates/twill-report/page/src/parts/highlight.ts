// Colours for words of Python and CUDA: comments, strings, numbers, keywords.

/** A part of a line. */
export interface Token {
  text: string;
  kind: "" | "comment" | "string" | "keyword" | "number";
}

const KEYWORDS: Record<string, Set<string>> = {
  python: new Set(
    (
      "and as assert break class continue def del elif else except False finally for from global if import in is " +
      "lambda None nonlocal not or pass raise return True try while with yield"
    ).split(" "),
  ),
  cuda: new Set(
    (
      "asm auto bool break case char const constexpr continue default do else enum extern false float for goto half if " +
      "inline int long namespace nullptr return short sizeof static struct switch template true typedef typename " +
      "uint32_t uint64_t unsigned using void volatile while __device__ __global__ __shared__ __launch_bounds__"
    ).split(" "),
  ),
};

const WORDS: Record<string, RegExp> = {
  python: /#.*$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\d[\w.]*/g,
  cuda: /\/\/.*$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\d[\w.]*/g,
};

function kindOf(text: string, keywords: Set<string>): Token["kind"] {
  if (text.startsWith("#") || text.startsWith("//")) return "comment";
  if (text.startsWith('"') || text.startsWith("'")) return "string";
  if (/^\d/.test(text)) return "number";
  return keywords.has(text) ? "keyword" : "";
}

/** The lines of a text in parts; a string of Python may go over several lines. */
export function highlighted(text: string, language: string): Token[][] {
  let within = false;
  return text.split("\n").map((line) => {
    const ends = language === "python" ? line.split('"""').length - 1 : 0;
    const string = within || ends > 0;
    if (ends % 2 === 1) within = !within;
    return string ? [{ text: line, kind: "string" }] : tokens(line, language);
  });
}

/** The pieces of a line. */
function tokens(line: string, language: string): Token[] {
  const name = language === "cuda" ? "cuda" : "python";
  const keywords = KEYWORDS[name] ?? new Set<string>();
  const found: Token[] = [];
  let from = 0;
  for (const match of line.matchAll(WORDS[name] ?? /$^/g)) {
    const kind = kindOf(match[0], keywords);
    if (kind === "") continue;
    if (match.index > from) found.push({ text: line.slice(from, match.index), kind: "" });
    found.push({ text: match[0], kind });
    from = match.index + match[0].length;
  }
  if (from < line.length) found.push({ text: line.slice(from), kind: "" });
  return found;
}
