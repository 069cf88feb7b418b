//! `twill gaus`: answers that are replayed and bounded, exit codes, complaints; and which engine `twill schedule` takes.

use crate::common::{stderr, stdout, twill};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The loop of HAL, a differential equation solver: six multiplications of two steps, five operations of one.
const HAL: &str = "digraph hal { a [label = mul]; b [label = mul]; c [label = mul]; d [label = sub]; e [label = sub];
f [label = mul]; g [label = mul]; h [label = mul]; i [label = add]; j [label = add]; k [label = les];
a -> c; b -> c; c -> d; d -> e; f -> g; g -> e; h -> i; j -> k; }";
const RANDOM: [&str; 6] = ["--random", "nodes=80,density=0.05,back-edges=6", "--ii", "10", "--resource-cap", "8"];

fn hal(place: &TempDir) -> String {
    let path = place.path().join("hal.dot");
    fs::write(&path, HAL).unwrap();
    path.to_str().unwrap().to_owned()
}

fn gaus(arguments: &[&str]) -> (i32, String, String) {
    let output = twill(&[&["gaus", "-q"], arguments].concat());
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

fn summary(arguments: &[&str]) -> Value {
    let (code, out, err) = gaus(&[arguments, &["--format", "summary"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn few_steps_take_many_units_and_small_graphs_are_proved() {
    let place = tempfile::tempdir().unwrap();
    let path = hal(&place);
    // Published for this graph: 3 multipliers and 2 ALUs within the longest path, 2 and 1 within 1.5 times that.
    for (factor, latency, units) in [("1", 6, 5), ("1.5", 9, 3)] {
        let found = summary(&[&path, "--latency-factor", factor]);
        assert_eq!(found["objective"], json!({"kind": "resources", "value": units, "lower_bound": units}), "{factor}");
        assert_eq!((&found["latency_bound"], &found["engine"]), (&json!(latency), &json!("gaus")));
    }
}

#[test]
fn every_engine_answers_and_none_is_below_the_bound() {
    let place = tempfile::tempdir().unwrap();
    let path = hal(&place);
    for objective in ["resources", "storage"] {
        let bound = summary(&[&path, "--objective", objective])["objective"]["lower_bound"].as_i64().unwrap();
        for engine in ["asap", "alap", "list", "force-directed", "spans"] {
            let found = summary(&[&path, "--objective", objective, "--engine", engine]);
            assert!(found["objective"]["value"].as_i64().unwrap() >= bound, "{engine}: {found}");
        }
    }
}

#[test]
fn a_random_loop_is_scheduled_and_its_file_replayed() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("answer.json");
    let path = file.to_str().unwrap();
    let short = ["--rounds", "1", "--polish-sweeps", "1", "--windows", "0"];
    let options = ["--objective", "storage", "--format", "json", "-o", path];
    let (code, out, err) = gaus(&[&RANDOM[..], &short, &options].concat());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    let checked = twill(&["check", path]);
    assert!(stdout(&checked).contains("dependences, latency bound and limits hold; storage = "), "{checked:?}");

    let text = fs::read_to_string(&file).unwrap();
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["interval"], answer["steps"].as_array().unwrap().len()), (&json!(10), 80));
    let change = |name: &str, to: Value, answer: &mut Value| {
        answer[name] = to;
        fs::write(&file, answer.to_string()).unwrap();
        let checked = twill(&["check", path]);
        assert_eq!(checked.status.code(), Some(1));
        stderr(&checked)
    };
    let zeros = json!(vec![0; 80]);
    assert!(change("steps", zeros, &mut answer).contains("v"), "everything at once");
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    answer["summary"]["objective"]["value"] = json!(1);
    let told = change("interval", json!(10), &mut answer);
    assert!(told.contains("and the file claims 1; the schedule itself is legal"), "{told}");
}

#[test]
fn the_same_seed_is_the_same_schedule() {
    let steps = |seed: &str| {
        let options =
            ["--latency-factor", "1.2", "--rounds", "1", "--polish-sweeps", "3", "--windows", "0", "--known", "none"];
        // Storage: a bound on resources would be met before a seed matters.
        let random =
            ["--random", "nodes=120,density=0.04", "--objective", "storage", "--seed", seed, "--format", "json"];
        let (code, out, _) = gaus(&[&random[..], &options].concat());
        assert_eq!(code, 0);
        serde_json::from_str::<Value>(&out).unwrap()["steps"].clone()
    };
    assert_eq!(steps("1"), steps("1"));
    assert_ne!(steps("1"), steps("2"));
}

/// Software pipelining alone, by the exact scheduler and by GauS.
#[test]
fn loops_of_kernels_have_the_exact_interval() {
    for example in ["gemm_tma", "swiglu"] {
        let path = format!("examples/{example}.ttir");
        let exact = twill(&["schedule", &path, "--swp-only", "--format", "json", "-q"]);
        let exact: Value = serde_json::from_str(&stdout(&exact)).unwrap();
        let found = summary(&[&path, "--smallest-ii", "--rounds", "1", "--polish-sweeps", "1"]);
        assert_eq!(found["interval"], exact["initiation_interval"], "{example}");
        assert_eq!(found["interval"], found["least_interval"], "{example}");
    }
}

#[test]
fn the_summary_says_who_found_the_schedule_and_when() {
    let place = tempfile::tempdir().unwrap();
    let path = hal(&place);
    for options in [&["--time-limit", "5"][..], &[]] {
        let found = summary(&[&[path.as_str(), "--latency-factor", "1"], options].concat());
        let (trace, by) = (found["trace"].as_array().unwrap(), found["trace_by"].as_array().unwrap());
        assert!(!trace.is_empty() && trace.len() == by.len(), "{found}");
        let last = trace.len() - 1;
        assert_eq!(&trace[last][1], &found["objective"]["value"], "{found}");
        assert!(["asap", "list"].map(Value::from).contains(&by[0]), "{found}");
        assert_eq!((&found["found"]["by"], &found["found"]["seconds"]), (&by[last], &trace[last][0]));
    }
}

#[test]
fn paths_of_gml_are_counted_in_latencies_and_any_name_is_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("chain.gml");
    let node = |id: usize, name: &str| format!("node [ id {id} label \"{name}\" parameter \"5\" ]\n");
    let edge = |from: usize| format!("edge [ source {from} target {} parameter \"1\" ]\n", from + 1);
    let text = ["a\nb", "c\td", "e\u{1b}"].iter().enumerate().map(|(id, name)| node(id, name)).collect::<String>();
    fs::write(&path, format!("graph [ directed 1\n{text}{}{}]", edge(0), edge(1))).unwrap();
    let options = ["--weights", "100,1", "--latency-factor", "1", "--format", "json"];
    let (code, out, err) = gaus(&[&[path.to_str().unwrap()], &options[..]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    // Three levels, although all could share a step; on one peak of 5 each, a step of communication apart.
    assert_eq!((&answer["latency_bound"], &answer["summary"]["objective"]["value"]), (&json!(3), &json!(502)));
    let names: Vec<&str> =
        answer["graph"]["operations"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a\\nb", "c\\td", "e\\u{1b}"]);
}

#[test]
fn what_is_not_read_in_time_is_not_found() {
    let random = ["--random", "nodes=2000000,density=0.000002", "--time-limit", "0.01"];
    for more in [&["--engine", "list"][..], &[]] {
        let (code, out, err) = gaus(&[&random[..], more].concat());
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains("stopped before the graph was read; give it more time"), "{err}");
    }
}

#[test]
fn what_is_impossible_or_wrong_is_said() {
    let place = tempfile::tempdir().unwrap();
    let path = hal(&place);
    let (code, _, err) = gaus(&[&path, "--latency", "5"]);
    assert_eq!(code, 2);
    assert!(err.contains("no schedule has latency 5: dependences alone need 6"), "{err}");
    let other = place.path().join("graph.xyz");
    fs::write(&other, "").unwrap();
    for (arguments, says) in [
        (
            vec![path.as_str(), "--resource-cap", "divider=2"],
            "there is no resource `divider`; there are: multiplier, alu",
        ),
        (vec![other.to_str().unwrap()], "no format of graphs ends in `.xyz`; known: .json"),
        (vec!["missing.blif"], "cannot read missing.blif"),
        (vec!["--random", "nodes=0"], "nodes"),
        (vec![path.as_str(), "--weights", "1"], "two whole numbers"),
        (vec![path.as_str(), "--known", "best"], "no baseline is named `best`; known: asap"),
        (vec![path.as_str(), "--engine", "ims"], "schedules loops at an interval"),
        (
            vec!["examples/attention_forward_causal.ttir"],
            "2 loops, and GauS schedules one at a time; choose one with --loop",
        ),
        (vec![], "required"),
    ] {
        let (code, out, err) = gaus(&arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}: {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn schedule_says_which_engine_it_takes() {
    let place = tempfile::tempdir().unwrap();
    let path = hal(&place);
    let requested = twill(&["schedule", &path]);
    assert!(stderr(&requested).starts_with("engine GauS: "), "{requested:?}");
    assert!(stdout(&requested).contains("resources = 3 (optimal: proved)"), "{requested:?}");
    let hatschet = PathBuf::from("crates/twill-cli/tests/hatschet/window.graphml");
    let requested = twill(&["schedule", hatschet.to_str().unwrap()]);
    assert!(stderr(&requested).starts_with("engine exact: 7 operations"), "{requested:?}");
    assert!(stdout(&requested).contains("I = 6 cycles (optimal: proved)"), "{requested:?}");
    assert_eq!(stderr(&twill(&["schedule", "examples/gemm_tma.ttir"])), "", "kernels are for the exact engine");
    let large = large_loop(place.path(), 600);
    let requested = twill(&["schedule", &large, "--machine", "h100", "--time-limit", "5"]);
    assert!(
        stderr(&requested).starts_with("engine GauS: 600 operations are more than the exact scheduler's 500"),
        "{requested:?}"
    );
}

/// A loop graph of a chain of additions.
fn large_loop(place: &Path, count: usize) -> String {
    let operation = |k: usize| json!({"name": format!("op{k}"), "units": [{"unit": "fma", "cycles": 1}], "result": {"registers": 32}});
    let dependence = |k: usize| json!({"from": format!("op{k}"), "to": format!("op{}", k + 1)});
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "chain",
        "operations": (0..count).map(operation).collect::<Vec<_>>(),
        "dependences": (0..count - 1).map(dependence).collect::<Vec<_>>(),
    });
    let path = place.join("chain.json");
    fs::write(&path, graph.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}
