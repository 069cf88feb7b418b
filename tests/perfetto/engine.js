// Perfetto's trace processor, as its user interface has it (WebAssembly), between standard input and standard output.
//
// usage: node engine.js FOLDER
// FOLDER holds engine_bundle.js and trace_processor.wasm of Perfetto's user interface. What is read and written is its
// RPC protocol, protos/perfetto/trace_processor/trace_processor.proto: TraceProcessorRpcStream in both directions.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const { argv, stdin, stdout } = process;
const folder = argv[2];
// Standard output is for answers alone.
console.log = console.error;

// The bundle is a web worker: it wants to know where it was loaded from, reads its module by a request, and is handed
// a port.
globalThis.self = globalThis;
globalThis.location = { href: "file:///engine_bundle.js" };
globalThis.WorkerGlobalScope = class {};
globalThis.XMLHttpRequest = class {
  open(_method, name) {
    this.name = path.basename(name);
  }

  send() {
    this.response = fs.readFileSync(path.join(folder, this.name));
  }
};
// With a process, it would take itself for a program of Node's.
Object.defineProperty(globalThis, "process", { value: undefined });

const bundle = path.join(folder, "engine_bundle.js");
new vm.Script(fs.readFileSync(bundle, "utf8"), { filename: bundle }).runInThisContext();

const port = { onmessage: null, postMessage: (answer) => stdout.write(answer) };
// It is ready once promises that are settled by now have been followed up.
setImmediate(() => {
  globalThis.onmessage({ data: port });
  stdin.on("data", (bytes) => port.onmessage({ data: new Uint8Array(bytes) }));
});
