//! The address of a playground that begins with an input: the part after `#` holds it, and never leaves the browser.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use serde_json::json;

/// The part of the playground's address that holds an input, `#s=…`: TTIR or a loop graph, and a machine's name (empty: the
/// graph's own). It is read by `page/src/playground/state.ts`.
pub fn playground_link(text: &str, machine: &str) -> String {
    let state = json!({ "example": null, "text": text, "machine": machine, "rates": {} });
    format!("#s={}", URL_SAFE_NO_PAD.encode(compress_to_vec_zlib(state.to_string().as_bytes(), 9)))
}
