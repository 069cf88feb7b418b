//! The known answers for Blackwell, from input to checked schedule, through the command.

use crate::common::answers::{compute_groups, optimal, schedule, shape};
use std::collections::BTreeSet;
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, GroupRole, LowerBoundKind, RejectionReason, Status};

const FORWARD: &str = "examples/attention_forward_m256.ttir";
const BACKWARD: &str = "examples/attention_backward_m128.ttir";

fn on_b200<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--machine", "b200"]].concat()
}

/// The group that runs all operations whose names begin so.
fn group_of(file: &ScheduleFile, names: &[&str]) -> usize {
    let mine = file.operations.iter().filter(|op| names.iter().any(|name| op.name == *name));
    let groups: BTreeSet<usize> = mine.map(|op| op.group).collect();
    assert_eq!(groups.len(), 1, "{names:?} on {groups:?}");
    groups.first().copied().unwrap()
}

#[test]
fn attention_forward_has_the_published_roles() {
    let file = optimal(&on_b200(&[FORWARD]));
    assert_eq!(shape(&file), (2064, 4112, 2));
    match &file.lower_bound.kind {
        LowerBoundKind::Resource { unit, busy, .. } => assert_eq!((unit.as_str(), *busy), ("xu", Cycles(2064))),
        other => panic!("{other:?}"),
    }
    // Loads, MMAs, the softmax of either sub-tile, the corrections of both.
    let softmax = |sub_tile: u32| -> usize {
        let names = ["qk.registers", "new_max.reduce_max", "p.fma", "p.exp2", "row_sum.fma", "acc.convert.tensor"];
        let names = names.map(|name| format!("{name}.{sub_tile}"));
        group_of(&file, &names.each_ref().map(String::as_str))
    };
    let corrections = ["acc.dot.registers.", "acc.mma.", "acc.mma.tensor."];
    let corrections: Vec<String> =
        corrections.iter().flat_map(|name| ["0", "1"].map(|sub_tile| format!("{name}{sub_tile}"))).collect();
    let compute =
        [softmax(0), softmax(1), group_of(&file, &corrections.iter().map(String::as_str).collect::<Vec<_>>())];
    assert_eq!(BTreeSet::from(compute).len(), 3);
    assert_eq!(compute_groups(&file), 3);
    let role = |group: usize| file.groups.iter().find(|g| g.id == group).unwrap().role;
    assert_eq!(role(group_of(&file, &["k", "v"])), GroupRole::VariableLatency);
    assert_eq!(role(group_of(&file, &["qk.0", "qk.1", "acc.dot.0", "acc.dot.1"])), GroupRole::Issue);
    let published = optimal(&["attention-forward-blackwell"]);
    assert_eq!((shape(&published), compute_groups(&published)), ((2064, 4112, 2), 3));
}

#[test]
fn attention_forward_needs_three_groups_two_sub_tiles_and_hand_offs() {
    for (arguments, least) in [
        (on_b200(&[FORWARD, "--compute-groups", "2"]), 2284),
        (vec!["attention-forward-blackwell", "--compute-groups", "2"], 2280),
    ] {
        let file = optimal(&arguments);
        assert_eq!(file.initiation_interval, Some(Cycles(least)));
        let synchronous = matches!(file.lower_bound.kind, LowerBoundKind::GroupWork { .. });
        assert!(synchronous, "the synchronous work of two groups: {:?}", file.lower_bound);
    }
    for arguments in [
        on_b200(&[FORWARD, "--sub-tiles", "1"]),
        on_b200(&["examples/attention_forward.ttir", "--max-interval", "1032"]),
        on_b200(&[FORWARD, "--cross-group-registers", "off", "--max-interval", "2064"]),
    ] {
        let (code, file) = schedule(&arguments);
        assert_eq!((code, file.status), (2, Status::Infeasible), "{arguments:?}");
    }
}

/// A machine file like the B200's, with what is said changed, in a folder that lives as long as the result.
fn like_b200(rest: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, format!("name = \"like-b200\"\nextends = \"b200\"\n{rest}")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn attention_backward_needs_tiles_that_no_group_can_hold() {
    // P and dP in f32 meet on one group: 256 registers a thread.
    for (input, interval) in [("attention-backward-blackwell", 3917), (BACKWARD, 3811)] {
        let (code, file) = schedule(&on_b200(&[input]));
        assert_eq!((code, file.status), (2, Status::Infeasible), "{input}");
        assert!(matches!(file.infeasible, Some(RejectionReason::Exhausted { all: true, .. })), "{:?}", file.infeasible);
        // 64 KB to hand dQ over leave no room to run ahead.
        let file = optimal(&on_b200(&[input, "--consumer-registers", "off"]));
        assert_eq!(file.initiation_interval, Some(Cycles(interval)), "{input}");
    }
}

/// Published in steps of 16 cycles and without shared memory: 3264 cycles for two groups, 3008 for three of 168 registers.
#[test]
fn attention_backward_gains_from_a_third_group() {
    let limited = "[memory]\nshared_bytes = { derived = 4194304, source = \"test\" }\n";
    let narrow = format!("{limited}[registers]\nmaximum_per_thread = {{ derived = 168, source = \"test\" }}\n");
    let graph = "attention-backward-blackwell";
    // From TTIR the step to dS is two operations, and registers of the first are free earlier.
    let cases = [
        (graph, limited, "2", "paper", 3267),
        (graph, limited, "2", "complete", 2627),
        (graph, narrow.as_str(), "3", "paper", 3011),
        (BACKWARD, limited, "2", "paper", 3267),
        (BACKWARD, limited, "2", "complete", 2627),
        (BACKWARD, narrow.as_str(), "3", "paper", 2947),
    ];
    for (input, rest, groups, window, interval) in cases {
        let (_folder, machine) = like_b200(rest);
        let arguments = [input, "--machine", &machine, "--compute-groups", groups, "--stage-window", window];
        let file = optimal(&[&arguments[..], &["--consumer-registers", "off"]].concat());
        assert_eq!(file.initiation_interval, Some(Cycles(interval)), "{input}, {groups} groups, window {window}");
        assert!(file.rejections.iter().any(|r| r.interval >= Cycles(2560)), "not at the tensor core's pace");
    }
    // At 128 bytes a cycle, which is not published, 385 KB an iteration are what bounds it.
    let rate = "shared_bytes_per_cycle = { derived = 128, source = \"test\" }\n";
    let (_folder, machine) = like_b200(&format!("{limited}{rate}"));
    let file = optimal(&[BACKWARD, "--machine", &machine, "--compute-groups", "2", "--consumer-registers", "off"]);
    assert_eq!(file.initiation_interval, Some(Cycles(3080)));
    assert!(matches!(file.lower_bound.kind, LowerBoundKind::SharedBandwidth { .. }), "{:?}", file.lower_bound);
}
