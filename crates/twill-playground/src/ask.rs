//! Questions, and their answers.

use crate::question::Question;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use twill_driver::{Observer, Session, report};
use twill_exact::{Budget, ExplainOptions, Progress};
use web_time::Instant;

/// Seconds that an explanation may take, as for `twill report`.
const EXPLAIN_SECONDS: f64 = 10.0;

/// An input to begin with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Example {
    /// Its file.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! examples {
    ($($name:literal: $title:literal),* $(,)?) => {
        &[$(Example {
            name: concat!($name, ".ttir"),
            title: $title,
            text: include_str!(concat!("../../../examples/", $name, ".ttir")),
        }),*]
    };
}

/// The examples of `examples/`, embedded.
pub fn examples() -> &'static [Example] {
    examples![
        "attention_forward": "Attention forward, head dim 128",
        "attention_forward_causal": "Attention forward, causal",
        "attention_forward_d64": "Attention forward, head dim 64",
        "attention_forward_causal_d64": "Attention forward, causal, head dim 64",
        "attention_forward_d64_m64": "Attention forward, head dim 64, 64 rows",
        "attention_forward_causal_d64_m64": "Attention forward, causal, head dim 64, 64 rows",
        "attention_forward_m256": "Attention forward, 256 rows",
        "attention_backward": "Attention backward",
        "attention_backward_d64": "Attention backward, head dim 64",
        "attention_backward_m128": "Attention backward, 128 rows",
        "tutorial_attention": "Triton's tutorial 06",
        "tutorial_attention_causal": "Triton's tutorial 06, causal",
        "tutorial_attention_causal_d64": "Triton's tutorial 06, causal, head dim 64",
        "gemm_tma": "GEMM by TMA, 128 × 128",
        "gemm_tma_m256": "GEMM by TMA, 256 × 128",
        "gemm_tma_n256": "GEMM by TMA, 128 × 256",
        "gemm_pointers": "GEMM through pointers, 128 × 128",
        "gemm_pointers_m256": "GEMM through pointers, 256 × 128",
        "gemm_pointers_n256": "GEMM through pointers, 128 × 256",
        "swiglu": "SwiGLU",
    ]
}

/// Tells how far a search is.
struct Telling<'a>(&'a mut dyn FnMut(&str));

impl Observer for Telling<'_> {
    fn progress(&mut self, progress: &Progress) {
        (self.0)(&progress.to_string());
    }

    fn note(&mut self, text: &str) {
        (self.0)(text);
    }
}

/// The answer to a question: `{"page": …, "seconds": …, "machine_file": …}`, or `{"error": "…"}`. `say` is told how far the
/// search is.
pub fn answer(question: &str, say: &mut dyn FnMut(&str)) -> String {
    let answer = match serde_json::from_str(question) {
        Ok(question) => page(&question, say),
        Err(error) => Err(format!("the question cannot be read: {error}")),
    };
    answer.unwrap_or_else(|error| json!({ "error": error }).to_string())
}

fn page(question: &Question, say: &mut dyn FnMut(&str)) -> Result<String, String> {
    let started = Instant::now();
    let (request, options) = question.request()?;
    // Nothing stops it from within: who has waited enough ends the worker.
    let search = options.search.search(started, Arc::new(AtomicBool::new(false)));
    let time = options.search.seconds().map_or(EXPLAIN_SECONDS, |limit| limit.min(EXPLAIN_SECONDS));
    let budget = Budget { time: Some(Duration::from_secs_f64(time)), ..Budget::default() };
    let largest_interval = search.largest_interval;
    let explain = question.explain.then(|| ExplainOptions { budget, largest_interval, ..ExplainOptions::default() });
    let mut telling = Telling(say);
    let mut session = Session::new(search, &mut telling);
    let page = report::page(&request, explain.as_ref(), &mut session).map_err(|error| error.to_string())?;
    let (page, machine_file) = (page.to_json(), json!(question.machine_file()?));
    let seconds = started.elapsed().as_secs_f64();
    Ok(format!("{{\"page\":{page},\"seconds\":{seconds},\"machine_file\":{machine_file}}}"))
}

#[cfg(test)]
mod tests {
    use super::{answer, examples};
    use serde_json::{Value, json};

    fn asked(question: &Value) -> Value {
        serde_json::from_str(&answer(&question.to_string(), &mut |_| ())).expect("answers are JSON")
    }

    fn interval(answer: &Value) -> u64 {
        answer["page"]["loops"][0]["schedule"]["initiation_interval"].as_u64().expect("it is scheduled")
    }

    #[test]
    fn a_faster_tensor_core_is_asked_for_and_its_machine_file_shown() {
        let gemm = examples().iter().find(|one| one.name == "gemm_tma.ttir").expect("it is there");
        let question = |rates: Value| json!({ "name": gemm.name, "text": gemm.text, "machine": "h200", "changes": { "rates": rates } });
        let (now, slower) = (asked(&question(json!({}))), asked(&question(json!({ "tensor": 0.25 }))));
        assert_eq!((interval(&slower), &now["machine_file"]), (4 * interval(&now), &Value::Null));
        let file = slower["machine_file"].as_str().expect("something was changed");
        assert!(file.contains("extends = \"h200\"") && !file.contains("latency"), "{file}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (question, said) in [
            (json!({}), "there is no input"),
            (json!({ "text": "module {", "name": "input" }), "input:"),
            (json!({ "text": "{}", "name": "input" }), "input:"),
            (json!({ "text": "module {}", "machine": "h20" }), "h200"),
            (
                json!({ "text": "module {}", "options": { "compute_groups": 99 } }),
                "compute_groups must be from 1 to 16",
            ),
            (json!({ "text": "module {}", "changes": { "rates": { "xu": 0.0 } } }), "changed machine:"),
            (json!({ "txt": "" }), "the question cannot be read: unknown field `txt`"),
        ] {
            let error = asked(&question)["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains(said), "{question}: {error}");
        }
    }
}
