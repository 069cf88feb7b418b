//! `twill schedule --emit smtlib2`: which question is written, what is claimed of it, and what is refused. Whether the
//! claims hold is for another solver (tests/cross_check/exported.py).

use crate::common::{stderr, stdout, twill};
use std::fs;

/// The first line and the claim of what is written.
fn requested(arguments: &[&str]) -> (String, String) {
    let output = twill(&[&["schedule", "--emit", "smtlib2"], arguments].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{arguments:?}");
    let text = stdout(&output);
    assert!(text.ends_with("(check-sat)\n; (get-unsat-core)\n"));
    let head = text.lines().next().unwrap().rsplit_once(" I = ").unwrap().1.to_owned();
    let status = text.lines().find_map(|l| l.strip_prefix("(set-info :status ")).unwrap();
    (head, status.trim_end_matches(')').to_owned())
}

fn refused(arguments: &[&str], says: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("question.smt2");
    let output = twill(&[&["schedule", "--emit", "smtlib2", "-o", file.to_str().unwrap()], arguments].concat());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_question_is_about_one_cycle_less_unless_said_otherwise() {
    let is = |arguments: &[&str], head: &str, status: &str| {
        assert_eq!(requested(arguments), (head.to_owned(), status.to_owned()), "{arguments:?}");
    };
    is(&["toy-attention"], "1 and at most 3 stages?", "unsat");
    is(&["toy-attention", "--interval", "2"], "2 and at most 2 stages?", "sat");
    is(&["toy-attention", "--interval", "1", "--stages", "5"], "1 and at most 5 stages?", "unknown");
    is(&["toy-attention", "--stages", "1"], "1 and at most 1 stage?", "unsat");
    is(&["toy-attention", "--interval", "2", "--stages", "1"], "2 and at most 1 stage?", "unknown");
    is(&["toy-attention-blocking", "--compute-groups", "1"], "2 and at most 2 stages?", "unsat");
    is(&["attention-forward-hopper", "--normalise", "300"], "127 and at most 3 stages?", "unsat");
    // What the paper's window leaves out is not claimed.
    is(&["toy-attention", "--model", "paper", "--interval", "2"], "2 and exactly 2 stages?", "sat");
    is(
        &["toy-attention", "--model", "paper", "--interval", "1", "--stages", "4"],
        "1 and exactly 4 stages?",
        "unknown",
    );
}

#[test]
fn options_are_those_of_the_question() {
    let text = stdout(&twill(&[
        "schedule",
        "attention-forward-hopper",
        "--emit",
        "smtlib2",
        "--normalise",
        "300",
        "--consumer-registers",
        "off",
        "--interval",
        "100",
        "--stages",
        "1",
        "--output",
        "-",
    ]));
    assert!(text.contains("; costs: normalised to a sum of at most 300;"));
    assert!(text.contains("consumer registers off"));
    assert!(!text.contains("(define-fun away_"));
}

#[test]
fn a_file_is_what_standard_output_would_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("question.smt2");
    let arguments = ["schedule", "toy-attention", "--emit", "smtlib2"];
    let output = twill(&[&arguments[..], &["-o", file.to_str().unwrap()]].concat());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), stdout(&twill(&arguments)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let backward = "attention-backward-hopper";
    refused(&[backward, "--interval", "1000000", "--stages", "2"], "normalise the costs (--normalise 300)");
    refused(&["toy-attention", "--interval", "0"], "0 is not in 1..");
    refused(&["toy-attention", "--stages", "0"], "0 is not in 1..");
    refused(&["toy-attention", "--format", "json"], "cannot be used with");
    refused(&["attention-backward-blackwell"], "it is infeasible, proved");
    refused(&["examples/attention_forward_causal.ttir"], "choose with --loop");
    let output = twill(&["schedule", "toy-attention", "--interval", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--emit"));
}

#[test]
fn nothing_is_below_one_cycle() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.json");
    let toy = stdout(&twill(&["graphs", "toy-attention"]));
    let mut file: serde_json::Value = serde_json::from_str(&toy).unwrap();
    file["operations"].as_array_mut().unwrap().truncate(1);
    file["dependences"] = serde_json::json!([]);
    fs::write(&graph, file.to_string()).unwrap();
    refused(&[graph.to_str().unwrap()], "I = 1 is the least there can be");
}

#[test]
fn a_search_that_was_stopped_claims_nothing() {
    let output = twill(&["schedule", "attention-forward-hopper", "--emit", "smtlib2", "--work-limit", "1"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("the search was stopped"));
}
