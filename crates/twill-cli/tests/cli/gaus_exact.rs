//! `twill gaus --engine exact`: known answers of small loops, exit codes, complaints.

use crate::common::{root, stderr, stdout, twill};
use serde_json::{Value, json};
use std::fs;

const LOOP: &str = "crates/twill-cli/tests/hatschet/window.graphml";

fn modulo(arguments: &[&str]) -> (i32, Value) {
    let output = twill(&[&["gaus", "--engine", "exact", "--format", "json"], arguments].concat());
    assert_eq!(stderr(&output), "");
    (output.status.code().unwrap(), serde_json::from_str(&stdout(&output)).unwrap())
}

/// Four writes on one port take four cycles between `first` and `last`, and a cycle each way: 6, where the recurrence
/// alone needs 3 and the port 4.
#[test]
fn writes_crowd_between_two_ends() {
    let (code, file) = modulo(&[LOOP]);
    assert_eq!((code, &file["status"], &file["initiation_interval"]), (0, &json!("optimal"), &json!(6)));
    assert_eq!(file["lower_bound"], json!({"interval": 6, "kind": "search", "witness": {"from": 4}}));
    let excluded: Vec<&Value> = file["rejections"].as_array().unwrap().iter().map(|r| &r["interval"]).collect();
    assert_eq!(excluded, [&json!(4), &json!(5)]);
    let time = |name: &str| file["times"][name].as_i64().unwrap();
    let mut writes = ["a", "b", "c", "d"].map(time);
    writes.sort_unstable();
    assert_eq!(writes.map(|t| t - time("first")), [1, 2, 3, 4]);
    assert_eq!(time("after") - time("first"), 5);
}

#[test]
fn a_second_port_is_another_answer() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("two.xml");
    let text = fs::read_to_string(root().join(LOOP.replace(".graphml", "_RM.xml"))).unwrap();
    fs::write(&model, text.replace("limit=\"1\"", "limit=\"2\"")).unwrap();
    let (code, file) = modulo(&[LOOP, "--resources", model.to_str().unwrap()]);
    assert_eq!((code, &file["initiation_interval"]), (0, &json!(4)));
    let held = text.replace("blockingTime=\"1\" latency=\"1\"", "blockingTime=\"2\" latency=\"1\"");
    fs::write(&model, held).unwrap();
    // The last write begins after three that hold the port for two cycles each.
    let (code, file) = modulo(&[LOOP, "--resources", model.to_str().unwrap()]);
    assert_eq!((code, &file["initiation_interval"]), (0, &json!(9)));
}

#[test]
fn text_names_interval_bound_and_resources() {
    let output = twill(&["gaus", "--engine", "exact", LOOP, "--width", "80"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    for says in [
        "window: 7 operations, 5 of them on limited resources, 10 dependences",
        "I = 6 cycles (optimal: proved)",
        "Bound: I >= 6: search: every interval from 4 to 5 was excluded.",
        "mem_write          1           4  66.7 %",
    ] {
        assert!(text.contains(says), "{says}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_budget_ends_the_search_with_its_bound() {
    let (code, file) = modulo(&[LOOP, "--work-limit", "1", "--quiet"]);
    assert_eq!((code, &file["status"], &file["initiation_interval"]), (3, &json!("unknown"), &Value::Null));
    // What counting alone excludes is excluded before the budget counts.
    assert_eq!(file["lower_bound"]["interval"], 5);
    let output = twill(&["gaus", "--engine", "exact", LOOP, "--work-limit", "1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("stopped by work budget"), "{}", stdout(&output));
}

#[test]
fn complaints_name_the_file() {
    let refused = |arguments: &[&str], says: &str| {
        let output = twill(&[&["gaus", "--engine", "exact"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        assert!(stderr(&output).contains(says), "{says}:\n{}", stderr(&output));
    };
    refused(&["nowhere.graphml"], "error: cannot read nowhere.graphml: ");
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone.graphml");
    fs::copy(root().join(LOOP), &alone).unwrap();
    refused(&[alone.to_str().unwrap()], "alone_RM.xml: ");
    refused(&[LOOP, "--resources", LOOP], "window.graphml:1:39: <graphml>: no <Resource>");
}

/// Loops of other formats go to the exact engine as well, where it knows their resources.
#[test]
fn other_graphs_and_options_of_gaus() {
    let (code, file) = modulo(&["toy-attention"]);
    assert_eq!((code, &file["initiation_interval"]), (0, &json!(2)));
    let refused = |arguments: &[&str], says: &str| {
        let output = twill(&[&["gaus"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{says}:\n{}", stderr(&output));
    };
    refused(&[LOOP, "--engine", "exact", "--objective", "latency"], "--engine exact would leave --objective out");
    refused(&[LOOP, "--engine", "exact", "--format", "summary"], "--engine exact writes text or json");
    refused(&[LOOP, "--work-limit", "1"], "--work-limit is for --engine exact");
}
