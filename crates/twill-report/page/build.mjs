// Bundles the page: `npm run build` writes dist/report.js and dist/report.css.
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Writes report.js and report.css to `outdir`; the same sources give the same bytes. */
export async function bundle(outdir) {
  await build({
    absWorkingDir: here,
    entryPoints: { report: "src/main.tsx" },
    outdir,
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    charset: "utf8",
    banner: { js: "/* Twill's report. With preact and dagre (MIT) and modules of d3 (ISC); see page/LICENCES. */" },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(join(here, "dist"));
