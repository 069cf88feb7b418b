//! `twill schedule --format perfetto | svg | graph-svg | dot`, and `twill gaus --format perfetto` (docs/report.md).

use crate::common::{root, stderr, stdout, twill};
use std::fs;

const ATTENTION: &str = "examples/attention_forward.ttir";

#[test]
fn the_pictures_of_the_documentation_are_what_the_command_draws() {
    for (format, file) in [("svg", "attention_forward.svg"), ("graph-svg", "attention_forward_graph.svg")] {
        let output = twill(&["schedule", ATTENTION, "--format", format, "--quiet"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let kept = fs::read_to_string(root().join("docs/pictures").join(file)).unwrap();
        assert!(
            stdout(&output) == kept,
            "docs/pictures/{file} is not up to date; draw it again with --format {format}"
        );
    }
}

#[test]
fn a_trace_is_the_same_in_a_file_and_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pftrace");
    let into = ["schedule", ATTENTION, "--format", "perfetto", "--quiet", "-o", file.to_str().unwrap()];
    assert_eq!(twill(&into).status.code(), Some(0));
    let piped = twill(&["schedule", ATTENTION, "--format", "perfetto", "--quiet"]).stdout;
    assert!(piped.len() > 10_000);
    assert_eq!(fs::read(file).unwrap(), piped);
    let more = twill(&["schedule", ATTENTION, "--format", "perfetto", "--quiet", "--iterations", "9"]).stdout;
    assert!(more.len() > piped.len());
}

#[test]
fn loops_of_a_kernel_are_drawn_together_and_one_by_one() {
    let causal = "examples/attention_forward_causal.ttir";
    let both = stdout(&twill(&["schedule", causal, "--format", "svg", "--quiet"]));
    let one = stdout(&twill(&["schedule", causal, "--format", "svg", "--quiet", "--loop", "1"]));
    let titles = |svg: &str| svg.matches("class=\"title\"").count();
    assert_eq!((titles(&both), titles(&one)), (2, 1));
    let dot = stdout(&twill(&["schedule", causal, "--format", "dot", "--quiet"]));
    assert_eq!(dot.matches("digraph ").count(), 2);
}

#[test]
fn without_a_schedule_the_reason_is_told_and_no_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture");
    for format in ["svg", "perfetto"] {
        let output = twill(&[
            "schedule",
            ATTENTION,
            "--format",
            format,
            "--quiet",
            "--max-interval",
            "100",
            "-o",
            file.to_str().unwrap(),
        ]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("no schedule, so nothing is drawn"), "{}", stderr(&output));
        assert!(!file.exists());
    }
    let output = twill(&["schedule", ATTENTION, "--format", "graph-svg", "--quiet", "--max-interval", "100"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("data-operation=\"qk.0\""));
}

#[test]
fn what_cannot_be_drawn_is_said_before_anything_is_searched() {
    let refused = |arguments: &[&str], why: &str| {
        let output = twill(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    refused(&["schedule", ATTENTION, "--iterations", "3"], "--iterations is for --format perfetto");
    refused(&["schedule", ATTENTION, "--swp-only", "--format", "svg"], "only a schedule with warps is drawn");
}

#[test]
fn gaus_writes_a_trace_of_a_graph() {
    let arguments = ["gaus", "--random", "nodes=30,density=0.1,seed=1", "--quiet", "--format"];
    let trace = twill(&[&arguments[..], &["perfetto"]].concat());
    assert_eq!(trace.status.code(), Some(0), "{}", stderr(&trace));
    let text = String::from_utf8_lossy(&trace.stdout).into_owned();
    assert!(text.contains("1 ns = 1 step"));
    let json: serde_json::Value = serde_json::from_slice(&twill(&[&arguments[..], &["json"]].concat()).stdout).unwrap();
    for operation in json["graph"]["operations"].as_array().unwrap() {
        assert!(text.contains(operation["name"].as_str().unwrap()));
    }
}
