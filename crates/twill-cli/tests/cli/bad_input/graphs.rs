//! Loop graphs, and schedules.

use super::{assert_says, file, refused, scheduled, unscheduled};
use crate::common::{stderr, stdout, twill};
use serde_json::{Value, json};
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, RejectionReason, Status};

/// JSON pointers with what to put there: null removes, `-` as the index of a list adds.
type Changes<'a> = &'a [(&'a str, Value)];

/// The built-in gemm, two loads and a dot, changed.
fn gemm(changes: Changes<'_>) -> Value {
    let mut graph: Value = serde_json::from_str(&stdout(&twill(&["graphs", "gemm"]))).unwrap();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match graph.pointer_mut(parent).unwrap() {
            Value::Array(list) if key == "-" => list.push(value.clone()),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            Value::Object(object) if value.is_null() => assert!(object.remove(key).is_some()),
            Value::Object(object) => drop(object.insert(key.into(), value.clone())),
            other => panic!("{pointer}: {other}"),
        }
    }
    graph
}

#[test]
fn what_is_wrong_in_a_graph_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, Value, &[&str])] = &[
        (
            "/dependences/-",
            json!({"from": "C", "to": "load A", "value": false}),
            &[
                ": operations depend on each other within one iteration: load A → C → load A",
                "a loop-carried dependence needs a distance of at least 1",
            ],
        ),
        ("/dependences/0/to", json!("D"), &[": dependences[0] names the operation `D`, which is not in the file"]),
        ("/dependences/2/from", json!("c"), &[": dependences[2] names the operation `c`, which is not in the file"]),
        (
            "/dependences/-",
            json!({"from": "load A", "to": "C"}),
            &[": dependence `load A` → `C` (distance 0): it is given twice; merge the two"],
        ),
        (
            "/operations/2/result",
            Value::Null,
            &[": dependence `C` → `C` (distance 1): it is tied but carries no value"],
        ),
        (
            "/operations/2/units/0/unit",
            json!("tensr"),
            &[": operation `C` uses the unit `tensr`, which machine `h100` does not declare; it has `tensor`, `tma`"],
        ),
        ("/operations/2/units/0/cycles", json!(-5), &[": operation `C`: cycles is -5; it must be from 0 to 2^40"]),
        ("/operations/2/latency", json!(-1), &[": operation `C`: latency is -1; it must be from 0 to 2^40"]),
        ("/operations/2/latency", json!(1u64 << 62), &[": operation `C`: latency is 4611686018427387904; it must be"]),
        ("/operations/2/latency", json!(1.5), &["graph.json:", "invalid type: floating point `1.5`"]),
        ("/operations/2/result", json!({"registers": -1}), &["graph.json:", "invalid value: integer `-1`"]),
        (
            "/operations/2/cycles",
            json!(5),
            &[": operation `C`: its reservation of `tensor` ends at cycle 512", "raise `cycles`"],
        ),
        ("/operations/2/issue_width", json!(8), &[": operation `C`: issue_width is 8; it must be 1 (one warp) or 4"]),
        ("/operations/1/name", json!("C"), &[": two operations are named `C`; give each its own name"]),
        ("/operations/1/streams", json!(true), &["graph.json:", "unknown field `streams`", "`streaming`"]),
        ("/opertions", json!([]), &["graph.json:", "unknown field `opertions`", "`operations`"]),
        ("/operations", json!([]), &[": the graph has no operations"]),
        ("/operations", Value::Null, &["graph.json:", "missing field `operations`"]),
        ("/version", json!(2), &[": expected format `twill-graph` version 1, found `twill-graph` version 2"]),
        ("/format", json!("twill-schedule"), &[": expected format `twill-graph` version 1, found `twill-schedule`"]),
        (
            "/machine",
            Value::Null,
            &[": the graph does not name a machine; choose one with --machine (twill machine list)"],
        ),
        (
            "/reserved",
            json!({"shared_memory": 1_000_000}),
            &[": the loop `gemm` keeps 1,000,000 bytes of shared memory", "`h100` has 232,448; choose smaller tiles"],
        ),
    ];
    for (pointer, value, says) in cases {
        let mut graph = gemm(&[(pointer, value.clone())]);
        if *pointer == "/operations/1/name" || value == &json!([]) {
            graph["dependences"] = json!([]);
        }
        let path = file(&folder, "graph.json", format!("{graph:#}"));
        unscheduled(&[&path], &[&["graph.json"], *says].concat());
    }
    let text = format!("{:#}", gemm(&[]));
    for (text, says) in [(&text[..300], "EOF while parsing"), (&text.replace('[', "(")[..], "expected value")] {
        let path = file(&folder, "graph.json", text);
        unscheduled(&[&path], &["graph.json:", says]);
    }
    let path = file(&folder, "nameless.json", format!("{:#}", gemm(&[("/machine", Value::Null)])));
    assert_eq!(scheduled(&[&path, "--machine", "h100"]).initiation_interval, Some(Cycles(512)));
}

#[test]
fn what_no_interval_can_hold_says_what_is_needed_and_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    // One group holds 128 threads of at most 255 registers, 32 of which are kept back.
    let group = 128 * (255 - 32);
    let shared = 232_448;
    let storage = |memory: &str, required, available, values: &[&str]| RejectionReason::Storage {
        memory: memory.into(),
        required,
        available,
        values: values.iter().map(|v| (*v).to_owned()).collect(),
    };
    let rings = [("/operations/0/result", json!({"shared_memory": 200_000}))];
    let wide = [("/operations/0/issue_width", json!(4))];
    let carried = [
        ("/operations/0/result", json!({"registers": 64})),
        ("/operations/0/streaming", Value::Null),
        ("/dependences/0/distance", json!(1)),
    ];
    let cases: &[(Changes<'_>, RejectionReason, &[&str])] = &[
        (
            &[("/operations/2/result", json!({"registers": 40_000}))],
            storage("register words of one warp group", 40_000, group, &["C"]),
            &["register words of one warp group: at least 40,000 needed, 28,544 at hand, for C"],
        ),
        (
            &[rings.as_slice(), &[("/operations/1/result", json!({"shared_memory": 100_000}))]].concat(),
            storage("bytes of shared memory", 300_000, shared, &["load A", "load B"]),
            &["bytes of shared memory: at least 300,000 needed, 232,448 at hand, for load A, load B"],
        ),
        (
            &[rings.as_slice(), &[("/reserved", json!({"shared_memory": 32_768}))]].concat(),
            storage("bytes of shared memory", 200_000 + 16_384 + 32_768, shared, &["load A", "load B"]),
            &["bytes of shared memory: at least 249,152 needed, 232,448 at hand"],
        ),
        (
            &wide,
            RejectionReason::NoGroup {
                operation: "load A".into(),
                why: "it is issued by 4 warps together, and no variable latency group has that many".into(),
            },
            &["no warp group may run load A", "it is issued by 4 warps together"],
        ),
        (
            &carried,
            RejectionReason::Handoff {
                from: "load A".into(),
                to: "C".into(),
                why: "`load A` needs a variable latency group and `C` a compute group".into(),
            },
            &["the register value load A → C cannot stay on one group"],
        ),
    ];
    for (changes, reason, says) in cases {
        let path = file(&folder, "graph.json", format!("{:#}", gemm(changes)));
        let output = twill(&["schedule", &path, "--format", "json"]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), ""));
        let answer = ScheduleFile::from_json(&stdout(&output), "stdout").unwrap();
        assert_eq!((answer.status, answer.infeasible.as_ref()), (Status::Infeasible, Some(reason)));
        for format in ["text", "pseudocode"] {
            let output = twill(&["schedule", &path, "--format", format, "--width", "200"]);
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), ""));
            for part in [&["No schedule exists", "(infeasible: proved)"], *says].concat() {
                assert!(stdout(&output).contains(part), "{part}:\n{}", stdout(&output));
            }
        }
    }
}

#[test]
fn what_is_wrong_in_a_schedule_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = twill(&["schedule", "gemm", "--format", "json"]);
    let good: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cases: &[(&str, Value, &[&str])] = &[
        ("version", json!(7), &["expected format `twill-schedule` version 1, found `twill-schedule` version 7"]),
        ("format", json!("twill-graph"), &["expected format `twill-schedule` version 1, found `twill-graph`"]),
        ("operations", json!([]), &["`operations` does not place every operation of the graph"]),
        ("initiation_interval", Value::Null, &["it has no schedule: `initiation_interval` or `length` is missing"]),
        ("stage", json!(0), &["unknown field `stage`"]),
        ("groups", json!([]), &["schedule.json: "]),
        ("rings", json!([]), &["schedule.json: ", "load A"]),
    ];
    for (key, value, says) in cases {
        let mut bad = good.clone();
        bad[*key] = value.clone();
        let path = file(&folder, "schedule.json", format!("{bad:#}"));
        let output = twill(&["check", &path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{key}");
        assert_says(&stderr(&output), &[&["schedule.json"], *says].concat());
    }
    let text = format!("{good:#}");
    let path = file(&folder, "schedule.json", &text[..text.len() / 2]);
    refused(&["check", &path], &["schedule.json:", "EOF while parsing"]);
    refused(&["check", "nowhere.json"], &["cannot read nowhere.json: "]);
}
