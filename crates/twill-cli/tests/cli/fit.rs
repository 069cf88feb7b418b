//! `twill fit`: a line for each kernel, details where it does not fit, and exit codes.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;

#[test]
fn what_fits_is_a_line() {
    let output = twill(&["fit", "examples/gemm_tma.ttir", "examples/swiglu.ttir", "--machine", "h200"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "examples/gemm_tma.ttir: fits; I >= 512, at most 989.4 TFLOP/s");
}

#[test]
fn what_does_not_fit_says_why() {
    let kernels = ["examples/gemm_tma.ttir", "examples/gemm_tma_n256.ttir"];
    let output =
        twill(&[&["fit", "--machine", "h200", "--ring-depth", "6", "--width", "160"], kernels.as_slice()].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), ""));
    let text = stdout(&output);
    let line = text.lines().position(|l| l.starts_with("examples/gemm_tma_n256.ttir: does not fit")).unwrap();
    assert_eq!(line, 1, "{text}");
    assert!(text.contains("most for b_buffer 196,608 in 6 slots (line 28)"), "{text}");
    assert!(text.contains("choose smaller tiles"), "{text}");
    assert!(text.contains("of 232,448 bytes"), "{text}");
}

#[test]
fn registers_are_those_of_a_thread_in_text_and_json() {
    let words = ["fit", "examples/attention_backward_m128.ttir", "--machine", "h200"];
    let text = stdout(&twill(&words));
    assert!(text.contains("  registers: 280 of 255 registers a thread: p_t.exp2.0 64 (line 56)"), "{text}");
    let json: Value = serde_json::from_str(&stdout(&twill(&[&words[..], &["--format", "json"]].concat()))).unwrap();
    let need = &json["needs"][0];
    assert_eq!(
        (&need["resource"], &need["required"], &need["available"]),
        (&"registers".into(), &280.into(), &255.into())
    );
}

#[test]
fn json_has_an_object_for_each_also_where_there_is_an_error() {
    let missing = "examples/fixtures/no_loop.ttir";
    let output = twill(&["fit", "examples/gemm_tma.ttir", missing, "--machine", "h200", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2, "{text}");
    assert_eq!(answers[0]["verdict"], "fits");
    assert_eq!(answers[0]["loops"][0]["kind"], Value::Null);
    assert_eq!(answers[0]["loops"][0]["bound"]["kind"], "resource");
    assert_eq!(answers[1]["input"], missing);
    assert!(answers[1]["error"].as_str().unwrap().contains("loop"), "{text}");
    assert!(answers.iter().all(|answer| answer.get("milliseconds").is_none()));
}

#[test]
fn loop_graphs_have_no_kernel_to_fit() {
    let graph = root().join("bench/graphs");
    let output = twill(&["fit", graph.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!stderr(&output).is_empty());
}
