// Puts the commands `dot` and `chromium` into the `bin` of a virtual environment: node install.mjs .venv
import { createReadStream, createWriteStream } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
import { extract } from "tar-fs";

const environment = resolve(process.argv[2]);
const packed = (name) => join(import.meta.dirname, "node_modules/@sparticuz/chromium/bin", `${name}.br`);
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function command(name, lines) {
  const path = join(environment, "bin", name);
  await writeFile(path, ["#!/bin/sh", ...lines, ""].join("\n"));
  await chmod(path, 0o755);
}

// The package unpacks itself on Amazon's Lambda alone, into /tmp; what it would have there stands in a folder here.
async function unpackChromium(folder) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const unpack = (name, target) => pipeline(createReadStream(packed(name)), createBrotliDecompress(), target);
  await unpack("chromium", createWriteStream(join(folder, "chromium"), { mode: 0o755 }));
  await unpack("al2023.tar", extract(folder));
  await unpack("fonts.tar", extract(folder));
  const fonts = `<dir>${folder}/fonts</dir><cachedir>${folder}/cache</cachedir>`;
  await writeFile(join(folder, "fonts.conf"), `<?xml version="1.0"?>\n<fontconfig>${fonts}</fontconfig>\n`);
}

await command("dot", [`exec ${quoted(process.execPath)} ${quoted(join(import.meta.dirname, "dot.mjs"))} "$@"`]);
if (process.platform === "linux" && process.arch === "x64") {
  const folder = join(environment, "chromium");
  await unpackChromium(folder);
  await command("chromium", [
    `export LD_LIBRARY_PATH=${quoted(join(folder, "lib"))} FONTCONFIG_FILE=${quoted(join(folder, "fonts.conf"))}`,
    `exec ${quoted(join(folder, "chromium"))} "$@"`,
  ]);
}
