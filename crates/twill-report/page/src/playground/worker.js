// The engine's worker; above it stands what wasm-bindgen generates.
let ready;
self.onmessage = async ({ data }) => {
  try {
    if (data.module) {
      ready = wasm_bindgen({ module_or_path: data.module });
      await ready;
      self.postMessage({ offered: wasm_bindgen.offered() });
      return;
    }
    const { memory } = await ready;
    const answer = wasm_bindgen.ask(data.question, (progress) => self.postMessage({ progress }));
    self.postMessage({ answer, memory: memory.buffer.byteLength });
  } catch (error) {
    // A trap says nothing; the engine may.
    let why = "";
    try {
      why = wasm_bindgen.defect();
    } catch {
      // It did not get that far.
    }
    self.postMessage({ failed: why || String(error) });
  }
};
