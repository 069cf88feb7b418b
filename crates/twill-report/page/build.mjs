// Bundles the page of reports and the playground: `npm run build` writes dist/{report,playground}.{js,css}.
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// The authors of the script's parts, as their licences require.
const notice = [
  "/*! Twill's report (MIT OR Apache-2.0). In it:",
  "preact, (c) 2015-present Jason Miller (MIT);",
  "dagre and graphlib, (c) 2012-2014 Chris Pettitt (MIT);",
  "d3, (c) 2010-2026 Mike Bostock (ISC), its d3-ease with (c) 2001 Robert Penner (BSD-3-Clause).",
  "The licences: crates/twill-report/page/LICENCES */",
].join(" ");

/** Writes report.js and report.css to `outdir`; the same sources give the same bytes. */
export async function bundle(outdir) {
  await build({
    absWorkingDir: here,
    entryPoints: { report: "src/main.tsx", playground: "src/playground/main.tsx" },
    outdir,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    charset: "utf8",
    banner: { js: notice },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(join(here, "dist"));
