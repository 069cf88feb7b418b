//! Machine files.

use super::{assert_says, changed, file, line_of, refused, scheduled, unscheduled};
use crate::common::{root, stderr, stdout, twill};
use std::fs;
use twill_graph::{LowerBoundKind, Status};

#[test]
fn what_is_wrong_in_a_machine_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let h100 = fs::read_to_string(root().join("machines/h100.toml")).unwrap();
    let transfer = h100.lines().find(|line| line.starts_with("transfer = ")).unwrap();
    let at = |part: &str| format!(":{}: ", line_of(&h100, part));
    let own = |rest: &str| format!("name = \"own\"\nextends = \"h100\"\n{rest}\n");
    let builtin = "a100, h100, h200, b200, b200-left-shared";
    let cases: &[(String, &[&str])] = &[
        (changed(&h100, &format!("{transfer}\n"), ""), &[&at("[latency]"), "`latency.transfer` is missing; expected "]),
        (
            changed(&h100, transfer, "transfer = { derived = -650, source = \"x\" }"),
            &[&at(transfer), "`latency.transfer` is -650; it must be a whole number from 0 to "],
        ),
        (
            changed(&h100, transfer, "transfer = 650"),
            &[&at(transfer), "`latency.transfer` does not say where it comes from; write { measured = 650, source = "],
        ),
        (
            changed(&h100, "[costs.convert]\nunit = \"alu\"", "[costs.convert]\nunit = \"cvt\""),
            &[
                &format!(":{}: ", line_of(&h100, "[costs.convert]") + 1),
                "`costs.convert.unit` is the unit `cvt`, which [units] does not declare",
                "it declares tensor, tma, xu, fma, alu, lsu",
            ],
        ),
        (changed(&h100, "\n[latency]\n", "\n[latencies]\n"), &[":1: `latency` is missing; expected a table [latency]"]),
        (changed(&h100, "[latency]\n", "[latency\n"), &[&at("[latency]"), "not valid TOML"]),
        (
            "name = \"own\"\nextends = \"h10\"\n".into(),
            &[
                ":2: `extends` names h10, which is not built in (did you mean `h100`?)",
                "a path relative to this file",
                builtin,
            ],
        ),
        (
            "name = \"own\"\nextends = \"./gone.toml\"\n".into(),
            &[":2: `extends` names ./gone.toml, which cannot be read", "a path relative to this file"],
        ),
        (
            own("[memory]\nshared_bytes = { measured = -1, source = \"x\" }"),
            &[":4: `memory.shared_bytes` is -1; it must be"],
        ),
    ];
    for (text, says) in cases {
        let path = file(&folder, "own.toml", text);
        unscheduled(&["examples/attention_forward_d64.ttir", "--machine", &path], &[&[path.as_str()], *says].concat());
        let all = twill(&["machine", "check", &path]);
        assert_eq!((all.status.code(), stdout(&all).as_str()), (Some(1), ""));
        assert_says(&stderr(&all), &[&[path.as_str()], *says].concat());
    }
}

#[test]
fn machines_that_extend_each_other_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = file(&folder, "first.toml", "name = \"first\"\nextends = \"./second.toml\"\n");
    file(&folder, "second.toml", "name = \"second\"\n\nextends = \"./first.toml\"\n");
    let says = ["second.toml:3: machines extend each other: ", "first.toml → ", "; remove one `extends`"];
    unscheduled(&["gemm", "--machine", &first], &says);
    refused(&["machine", "check", &first], &says);
    refused(&["machine", "show", &first], &says);
}

#[test]
fn a_machine_that_does_not_exist_is_named() {
    let built_in = "built in are a100, h100, h200, b200, b200-left-shared";
    let says = ["there is no machine `h10`", "did you mean `h100`?", built_in, "./h10.toml"];
    unscheduled(&["gemm", "--machine", "h10"], &says);
    refused(&["machine", "show", "h10"], &says);
    unscheduled(&["gemm", "--machine", "nowhere/h100.toml"], &["cannot read the machine file nowhere/h100.toml"]);
    refused(&["machine", "check", "nowhere/h100.toml"], &["cannot read nowhere/h100.toml"]);
}

#[test]
fn a_machine_of_ones_own_works_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let twice = "name = \"twice\"\nextends = \"h100\"\n[costs.special_function]\n\
                 elements_per_cycle = { measured = 32, source = \"my own runs\" }\n";
    let path = file(&folder, "twice.toml", twice);
    let bound = |arguments: &[&str]| {
        let file = scheduled(&[&["examples/attention_forward_d64.ttir"], arguments].concat());
        assert_eq!(file.status, Status::Optimal);
        let LowerBoundKind::Resource { unit, busy, .. } = file.lower_bound.kind else {
            panic!("{:?}", file.lower_bound)
        };
        assert_eq!(file.initiation_interval, Some(busy));
        (file.problem.resources.name, unit, busy.0)
    };
    assert_eq!(bound(&["--machine", "h100"]), ("h100".into(), "xu".into(), 1056));
    assert_eq!(bound(&["--machine", &path]), ("twice".into(), "tensor".into(), 1024));
}

#[test]
fn a_machine_that_lacks_what_tensor_memory_takes_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let like_b200 = |rest: &str| file(&folder, "machine.toml", format!("name = \"own\"\nextends = \"b200\"\n{rest}"));
    let no_loads = like_b200("[costs]\ntensor_load = false\n");
    unscheduled(
        &["examples/attention_forward.ttir", "--machine", &no_loads],
        &[
            "examples/attention_forward.ttir:41: `tt.dot` (line 42 of ",
            "machine `own` has no cost for a load from tensor memory: its file has no [costs.tensor_load]",
        ],
    );
    // What loads nothing does not need it.
    assert_eq!(scheduled(&["examples/swiglu.ttir", "--machine", &no_loads]).status, Status::Optimal);
    let narrow = like_b200("[memory]\ntensor_columns = { specified = 128, source = \"x\" }\n");
    let output = twill(&["schedule", "examples/swiglu.ttir", "--machine", &narrow]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("columns of tensor memory: at least 256 needed, 128 at hand, for gate, up"));
}
