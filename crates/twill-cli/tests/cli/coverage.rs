//! `twill coverage`: what becomes of kernels with early returns, branches and loops around the pipelined one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use crate::common::{root, stderr, stdout};
use serde_json::Value;
use std::process::Output;

fn coverage(arguments: &[&str]) -> Output {
    crate::common::command()
        .current_dir(root())
        .args(["coverage", "--machine", "h200", "--no-cache"])
        .args(arguments)
        .output()
        .unwrap()
}

/// The kernels' rows by name.
fn rows(output: &Output) -> Vec<(String, Value)> {
    let one = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let path = row["input"].as_str().unwrap().to_owned();
        (path.rsplit('/').next().unwrap().trim_end_matches(".ttir").to_owned(), row)
    };
    stdout(output).lines().map(one).collect()
}

#[test]
fn a_folder_has_a_row_for_each_kernel() {
    let output = coverage(&["examples/fixtures/in_order", "--format", "json", "--time-limit", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = rows(&output);
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["early_return", "flattened", "nested", "regions", "scanned", "successive", "viewed", "while_loop"]
    );
    for (name, row) in &rows {
        let is_in_order = row["gluon"]["in_order"]["why"].is_string();
        assert_eq!(is_in_order, ["scanned", "while_loop"].contains(&name.as_str()), "{name}: {row}");
        assert!(row["cuda"]["none"].is_null(), "{name}: {row}");
    }
    assert_eq!(rows[1].1["schedule"], "optimal");
}

#[test]
fn early_returns_and_branches_are_realised() {
    let kernels = ["returning", "guarded", "branching"].map(|name| format!("examples/fixtures/product_{name}.ttir"));
    let arguments: Vec<&str> = kernels.iter().map(String::as_str).chain(["--format", "json"]).collect();
    for (name, row) in rows(&coverage(&arguments)) {
        for language in ["gluon", "cuda"] {
            let realised = &row[language]["realised"]["operations"];
            assert!(
                realised["tma_loads"].as_u64() > Some(0) && realised["async_mmas"].as_u64() > Some(0),
                "{name}: {row}"
            );
        }
    }
}

#[test]
fn loads_through_pointers_and_multiplications_of_any_kind_are_realised() {
    let rows = rows(&coverage(&["examples/fixtures/pointers", "--format", "json"]));
    assert_eq!(rows.len(), 20);
    // One multiplies nothing.
    for (name, row) in rows.into_iter().filter(|(name, _)| name != "curved") {
        assert_eq!(row["schedule"] == "optimal", name != "wide", "{name}: {row}");
        let operations = &row["gluon"]["realised"]["operations"];
        let count = |kind: &str| operations[kind].as_u64();
        let (mmas, dots) = (count("async_mmas"), count("dots"));
        let copied = count("cp_async").zip(count("tma_loads")).map(|(copies, boxes)| copies + boxes > 0);
        let expected = match name.as_str() {
            "strided" => (Some(false), true, false),
            "exchanged" => (Some(false), false, true),
            "small" | "precise" => (Some(true), false, true),
            "around" | "gathered" => (Some(true), true, true),
            _ => (Some(true), true, false),
        };
        assert_eq!((copied, mmas > Some(0), dots > Some(0)), expected, "{name}: {row}");
    }
}

#[test]
fn loops_and_branches_around_pipelined_loops_are_realised() {
    let rows = rows(&coverage(&["examples/fixtures/loops", "--format", "json"]));
    assert_eq!(rows.len(), 24);
    for (name, row) in rows {
        let operations = &row["gluon"]["realised"]["operations"];
        let copied = ["cp_async", "tma_loads"].map(|kind| operations[kind].as_u64().unwrap());
        assert!(copied.iter().sum::<u64>() > 0, "{name}: {row}");
        assert!(operations["async_mmas"].as_u64() > Some(0), "{name}: {row}");
    }
}

#[test]
fn the_summary_counts_and_an_input_that_is_none_is_an_error() {
    let output = coverage(&["examples/gemm_tma.ttir", "examples/fixtures/in_order/while_loop.ttir", "absent.ttir"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("absent.ttir"), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("schedule realised: 1 of 2 (50.0 %)") && text.contains("Gluon: 2 of 2"), "{text}");
}
