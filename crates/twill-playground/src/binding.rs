//! The functions that JavaScript calls.
#![cfg(target_family = "wasm")]
#![allow(unsafe_code)]

use js_sys::Function;
use std::panic;
use std::sync::Mutex;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// What a defect said of itself: the engine traps without a word.
static DEFECT: Mutex<String> = Mutex::new(String::new());

/// JSON of the examples and the machines that there are. Called first.
#[wasm_bindgen]
pub fn offered() -> String {
    panic::set_hook(Box::new(|info| {
        if let Ok(mut defect) = DEFECT.lock() {
            *defect = info.to_string();
        }
    }));
    // Plain data always serialises.
    let examples = serde_json::to_string(crate::examples()).unwrap_or_default();
    let twill = env!("CARGO_PKG_VERSION");
    format!("{{\"examples\":{examples},\"machines\":{},\"twill\":\"{twill}\"}}", crate::machines())
}

/// The answer to a question, both JSON; `say` is called with how far the search is.
#[wasm_bindgen]
pub fn ask(question: &str, say: &Function) -> String {
    crate::answer(question, &mut |text| {
        // A page that is gone need not be told.
        let _ = say.call1(&JsValue::NULL, &JsValue::from_str(text));
    })
}

/// What the last defect said of itself.
#[wasm_bindgen]
pub fn defect() -> String {
    DEFECT.lock().map(|defect| defect.clone()).unwrap_or_default()
}
