// Graphviz's `dot` for tests: DOT on standard input, a picture on standard output, `-T` and the format as in Graphviz.
import { readFileSync, writeSync } from "node:fs";
import { Graphviz } from "@hpcc-js/wasm-graphviz";

const [format, ...others] = process.argv.slice(2);
if (!format?.startsWith("-T") || others.length > 0) {
  console.error("usage: dot -Tsvg < graph.dot, or another format of text");
  process.exit(2);
}
try {
  const graphviz = await Graphviz.load();
  const drawn = Buffer.from(graphviz.layout(readFileSync(0, "utf8"), format.slice(2), "dot"));
  for (let at = 0; at < drawn.length; ) at += writeSync(1, drawn, at);
} catch (error) {
  console.error(`dot: ${error.message}`);
  process.exitCode = 1;
}
