//! Puts the playground into one HTML file: `bundle ENGINE.wasm PLAYGROUND.html`. `cargo xtask playground` calls it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};
use twill_report::page::Document;
use wasm_bindgen_cli_support::Bindgen;

/// The page's code and style, and the worker's loop.
const SCRIPT: &str = include_str!("../../../twill-report/page/dist/playground.js");
const STYLE: &str = include_str!("../../../twill-report/page/dist/playground.css");
const WORKER: &str = include_str!("../../../twill-report/page/src/playground/worker.js");

/// How hard the engine is compressed, of 10.
const EFFORT: u8 = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [engine, page] => bundle(Path::new(engine), Path::new(page)),
        _ => Err("usage: bundle ENGINE.wasm PLAYGROUND.html".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bundle: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bundle(engine: &Path, page: &Path) -> Result<(), String> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(engine).out_name("twill").typescript(false).remove_name_section(true);
    let mut output = bindgen
        .no_modules(true)
        .and_then(|bindgen| bindgen.generate_output())
        .map_err(|error| format!("{}: {error:#}", engine.display()))?;
    let glue = output.js().to_owned();
    let wasm = output.wasm_mut().emit_wasm();
    let worker = format!("{glue}\n{WORKER}");
    if worker.contains("</script") {
        return Err("the worker's code would end the element that it stands in".into());
    }
    let text = html(&worker, &STANDARD.encode(compress_to_vec_zlib(&wasm, EFFORT)));
    // A page is there as a whole, or not at all.
    let part = page.with_extension("html.part");
    let written = fs::write(&part, &text).and_then(|()| fs::rename(&part, page));
    written.map_err(|error| format!("{}: {error}", page.display()))?;
    println!("{}: {:.2} MB, {:.2} MB of engine in it", page.display(), megabytes(text.len()), megabytes(wasm.len()));
    Ok(())
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// The page.
fn html(worker: &str, engine: &str) -> String {
    let body = format!(
        r#"<div id="app"></div>
<noscript><h1>Twill's playground</h1><p>It needs JavaScript, WebAssembly and workers.</p></noscript>
<script type="text/plain" id="worker">{worker}</script>
<script type="application/zlib" id="engine">{engine}</script>"#
    );
    let version = env!("CARGO_PKG_VERSION");
    Document { title: "Playground - Twill", version, style: STYLE, body: &body, script: SCRIPT, has_engine: true }
        .html()
}
