// Builds the page elsewhere and compares it with the committed dist/: exit code 1 if they differ.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "./build.mjs";

const fresh = await mkdtemp(join(tmpdir(), "twill-page-"));
try {
  await bundle(fresh);
  for (const name of ["report.js", "report.css", "playground.js", "playground.css"]) {
    const committed = await readFile(new URL(`dist/${name}`, import.meta.url)).catch(() => Buffer.alloc(0));
    const built = await readFile(join(fresh, name));
    if (!committed.equals(built)) {
      console.error(`dist/${name} is not what its sources give: run "npm ci && npm run build" and commit it`);
      process.exitCode = 1;
    }
    const text = built.toString("utf8").toLowerCase();
    for (const end of ["</script", "</style", "<!--"]) {
      if (text.includes(end)) {
        console.error(`${name} has ${end} in it, which would end the element that it stands in`);
        process.exitCode = 1;
      }
    }
    console.log(`${name}: ${built.length} bytes`);
  }
} finally {
  await rm(fresh, { recursive: true });
}
