//! The ablations of the paper through the command: registers a thread, software pipelining alone, a fixed warp assignment.

use crate::common::answers::{compute_groups, optimal, schedule, shape};
use crate::common::{stderr, stdout, twill};
use std::collections::BTreeSet;
use std::fs;
use twill_graph::format::PipelineFile;
use twill_graph::{Cycles, GroupRole, LowerBoundKind, RejectionReason, Status};

const HOPPER: &str = "attention-forward-hopper";
const BLACKWELL: &str = "attention-forward-blackwell";

#[test]
fn registers_a_thread_hold_until_the_tiles_no_longer_fit() {
    for registers in ["255", "240", "168"] {
        let file = optimal(&[HOPPER, "--registers-per-thread", registers]);
        assert_eq!((shape(&file), compute_groups(&file)), ((2048, 3072, 2), 2), "{registers}");
        assert!(file.groups.iter().all(|g| g.registers_per_thread <= registers.parse().unwrap()));
    }
    let file = optimal(&[HOPPER, "--registers-per-thread", "160"]);
    assert_eq!(file.initiation_interval, Some(Cycles(2592)));
    for registers in ["255", "160"] {
        let file = optimal(&[BLACKWELL, "--registers-per-thread", registers]);
        assert_eq!((shape(&file), compute_groups(&file)), ((2064, 4112, 2), 3), "{registers}");
    }
    // A tile of 128 × 128 words and what is alive at the same time: 129 registers of a thread, and 24 in reserve.
    let (code, file) = schedule(&[BLACKWELL, "--registers-per-thread", "152"]);
    assert_eq!((code, file.status), (2, Status::Infeasible));
    assert!(matches!(file.infeasible, Some(RejectionReason::Exhausted { all: true, .. })), "{:?}", file.infeasible);
}

#[test]
fn registers_that_cannot_be_allotted_are_refused() {
    for registers in ["24", "170", "254", "256", "4294967295"] {
        let output = twill(&["schedule", HOPPER, "--registers-per-thread", registers]);
        let says = "a thread of h100 has 255 at most, 32 at least, or a multiple of 8 in between";
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        assert_eq!(stderr(&output), format!("error: --registers-per-thread {registers}: {says}\n"));
    }
}

fn pipeline(arguments: &[&str]) -> PipelineFile {
    let output = twill(&[&["schedule", "--swp-only", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    PipelineFile::from_json(&stdout(&output), "stdout").unwrap()
}

#[test]
fn software_pipelining_alone_reaches_the_bounds_of_phase_1() {
    for (arguments, interval, length) in [
        (&["toy-attention"][..], 2, 4),
        // Without warps, nobody waits.
        (&["toy-attention-blocking"], 2, 4),
        (&["gemm"], 512, 640),
        (&[HOPPER], 2048, 3072),
        (&[BLACKWELL], 2064, 4112),
        (&["attention-backward-hopper"], 2560, 2560),
        (&["attention-backward-blackwell"], 2560, 4864),
        (&["examples/attention_forward.ttir", "--machine", "b200"], 1032, 3088),
        (&["examples/attention_forward_m256.ttir", "--machine", "b200", "--sub-tiles", "1"], 2064, 6176),
    ] {
        let file = pipeline(arguments);
        assert_eq!(file.status, Status::Optimal, "{arguments:?}");
        assert_eq!(
            (file.initiation_interval, file.length),
            (Some(Cycles(interval)), Some(Cycles(length))),
            "{arguments:?}"
        );
        assert!(file.length_proved, "{arguments:?}");
        let problem = file.problem().unwrap();
        twill_check::verify_pipeline(&problem, file.pipeline(&problem).unwrap()).unwrap();
    }
}

#[test]
fn a_pipeline_is_no_schedule() {
    let output = twill(&["schedule", "gemm", "--swp-only"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("Software pipelining alone") && text.contains("tensor") && !text.contains("group"), "{text}");
    let output = twill(&["schedule", "gemm", "--swp-only", "--format", "pseudocode"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("there is no program without warps"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipeline.json");
    let path = path.to_str().unwrap();
    let text = stdout(&twill(&["schedule", "gemm", "--swp-only", "--format", "json"]));
    fs::write(path, &text).unwrap();
    let output = twill(&["check", path]);
    assert!(stdout(&output).contains("dependences and units hold; I = 512 cycles"), "{}", stderr(&output));
    for (from, to, says) in [
        ("\"C\": 128\n", "\"C\": 127\n", "`C` issues at cycle 127"),
        ("\"length\": 640", "\"length\": 639", "an iteration takes 639 cycles; it takes 640"),
        ("\"length\": 640,", "", "it has no pipeline"),
        ("\"C\": 128\n", "\"D\": 128\n", "does not place exactly the operations"),
        ("\"version\": 1,\n  \"status\"", "\"version\": 2,\n  \"status\"", "version 1"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
        let output = twill(&["check", path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{to}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

const FIXED: [&str; 2] = ["--warp-assignment", "by-sub-tile"];

/// One group does all: its synchronous work and a cycle for each MMA that waits for a load. With the work alone as
/// bound, the search does not exclude 984 cycles in minutes.
#[test]
fn issues_behind_waits_take_cycles_of_their_own() {
    let input = ["examples/attention_forward_d64_m64.ttir", "--machine", "h200", "--work-limit", "3000000"];
    let file = optimal(&[&input[..], &FIXED[..]].concat());
    assert_eq!(file.initiation_interval, Some(Cycles(985)));
    assert_eq!(file.lower_bound.kind, LowerBoundKind::GroupWork { work: Cycles(983), issues: 2, groups: 1 });
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("certificate");
    let folder = folder.to_str().unwrap();
    twill(&[&["schedule"], &input[..], &["--quiet", "--certificate", folder], &FIXED[..]].concat());
    let output = twill(&["check", folder]);
    assert!(stdout(&output).contains("below 985 cycles: this one is optimal, proved by bounds"), "{}", stdout(&output));
}

#[test]
fn a_group_for_each_sub_tile_is_what_hopper_takes_anyway_and_too_few_for_blackwell() {
    for (input, expected) in [(HOPPER, (2048, 3072, 2)), ("attention-backward-hopper", (2560, 2560, 1))] {
        let file = optimal(&[&[input], &FIXED[..]].concat());
        assert_eq!(shape(&file), expected, "{input}");
        let compute = |tile: char| -> BTreeSet<usize> {
            let on_compute = |id: usize| file.groups.iter().any(|g| g.id == id && g.role == GroupRole::Compute);
            let mine = file.operations.iter().filter(|op| op.name.ends_with(tile));
            mine.map(|op| op.group).filter(|&id| on_compute(id)).collect()
        };
        assert_eq!((compute('0'), compute('1')), (BTreeSet::from([1]), BTreeSet::from([2])), "{input}");
    }
    // One sub-tile's softmax and correction are 2280 cycles of synchronous work.
    let file = optimal(&[&[BLACKWELL], &FIXED[..]].concat());
    assert_eq!(file.initiation_interval, Some(Cycles(2280)));
    assert_eq!(file.lower_bound.kind, LowerBoundKind::GroupWork { work: Cycles(2280), issues: 0, groups: 1 });
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("certificate");
    let folder = folder.to_str().unwrap();
    twill(&[&["schedule", BLACKWELL, "--quiet", "--certificate", folder], &FIXED[..]].concat());
    let output = twill(&["check", folder]);
    assert!(
        stdout(&output).contains("below 2280 cycles: this one is optimal, proved by bounds"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn proofs_may_not_swap_groups_that_are_assigned() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("certificate");
    let path = folder.to_str().unwrap();
    let without = [BLACKWELL, "--cross-group-registers", "off", "--max-interval", "2064"];
    let write = |more: &[&str]| {
        twill(&[&["schedule", "--quiet", "--certificate", path], &without[..], more].concat());
        twill(&["check", path])
    };
    let fixed = write(&FIXED);
    assert!(stdout(&fixed).contains("no schedule exists at any interval below 2065"), "{}", stderr(&fixed));
    fs::remove_dir_all(&folder).unwrap();
    // A proof for any assignment picks one order of the groups, which another assignment does not leave open.
    assert_eq!(write(&[]).status.code(), Some(0));
    let schedule = folder.join("schedule.json");
    let text = fs::read_to_string(&schedule).unwrap();
    assert!(text.contains("\"warp_assignment\": \"free\""));
    fs::write(&schedule, text.replace("\"warp_assignment\": \"free\"", "\"warp_assignment\": \"by_sub_tile\""))
        .unwrap();
    let output = twill(&["check", path]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("does not follow from its reason"), "{}", stderr(&output));
}

#[test]
fn sub_tiles_with_groups_of_their_own_are_not_swapped() {
    let toy = stdout(&twill(&["lower", "toy-attention-blocking", "--format", "graph"]));
    let mut graph: serde_json::Value = serde_json::from_str(&toy).unwrap();
    let unit = &graph["machine"]["units"][0]["name"];
    let part = |name: &str, sub_tile: u32| {
        serde_json::json!({"name": name, "units": [{"unit": unit, "cycles": 1}], "result": {"registers": 32},
                           "handoff": 1, "sub_tile": sub_tile})
    };
    graph["operations"] = serde_json::json!([part("a", 0), part("b", 1), {"name": "sum", "cycles": 1}]);
    // For the handoff.
    graph["machine"]["shared_memory"] = 1024.into();
    graph["dependences"] = serde_json::json!([{"from": "a", "to": "sum"}, {"from": "b", "to": "sum"}]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.json");
    fs::write(&path, graph.to_string()).unwrap();
    // The sum is on the group of `a`; `b` has to be handed off, so it goes first.
    let file = optimal(&[&[path.to_str().unwrap(), "--compute-groups", "2"], &FIXED[..]].concat());
    let cycles: Vec<i64> = file.operations.iter().map(|op| op.cycle.0).collect();
    assert_eq!((shape(&file), cycles), ((2, 3, 2), vec![1, 0, 2]));
}
