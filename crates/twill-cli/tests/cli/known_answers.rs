//! The known answers of docs/model.md, from input to checked schedule, through the command.

use crate::common::answers::{compute_groups, optimal, schedule, shape};
use crate::common::{root, stderr, stdout, twill};
use std::collections::BTreeSet;
use twill_graph::format::{PlacedOperation, ScheduleFile};
use twill_graph::{Bytes, Cycles, GroupRole, LowerBoundKind, RejectionReason, Status};

fn cycle(file: &ScheduleFile, name: &str) -> i64 {
    file.operations.iter().find(|op| op.name == name).unwrap().cycle.0
}

#[test]
fn toy_attention_is_flash_attention_3s_pipeline() {
    let file = optimal(&["toy-attention"]);
    assert_eq!(shape(&file), (2, 4, 2));
    assert_eq!(["S", "P", "O"].map(|op| cycle(&file, op)), [0, 2, 3]);
    let modulo = file.modulo.unwrap();
    assert_eq!((modulo.initiation_interval, modulo.length), (Cycles(2), Cycles(4)));
    // Without overlap an iteration takes its critical path: 3 cycles.
    let problem = file.problem().unwrap();
    let chain: i64 = problem.graph().operations().iter().map(|op| op.latency.0).sum();
    assert_eq!(chain, 3);
}

#[test]
fn waiting_for_the_gemm_costs_a_cycle_on_one_group_and_nothing_on_two() {
    let one = optimal(&["toy-attention-blocking", "--compute-groups", "1"]);
    assert_eq!(one.initiation_interval, Some(Cycles(3)));
    assert!(matches!(one.lower_bound.kind, LowerBoundKind::Search { from: Cycles(2) }));
    assert_eq!(one.rejections.iter().map(|r| r.interval).collect::<Vec<_>>(), [Cycles(2)]);
    assert_eq!(one.rejections[0].stages, None, "rejected for every number of stages");
    let two = optimal(&["toy-attention-blocking", "--compute-groups", "2"]);
    assert_eq!(two.initiation_interval, Some(Cycles(2)));
    assert_eq!(compute_groups(&two), 2);
}

#[test]
fn the_gemm_never_waits_for_its_loads() {
    let file = optimal(&["gemm"]);
    assert_eq!(file.initiation_interval, Some(Cycles(512)), "the gemm's own cycles");
    let loader = file.groups.iter().find(|g| g.role == GroupRole::VariableLatency).unwrap().id;
    for op in &file.operations {
        assert_eq!(op.group == loader, op.kind == "load", "{}", op.name);
    }
    assert!(file.rings.iter().all(|r| r.depth == 3), "650 cycles of latency, 512 of reading: {:?}", file.rings);
}

/// Two groups in ping-pong, each with one sub-tile; one of the two pipelined across iterations.
fn is_published_hopper_forward(file: &ScheduleFile, tile: impl Fn(&PlacedOperation) -> Option<char>) {
    assert_eq!(shape(file), (2048, 3072, 2));
    assert_eq!(compute_groups(file), 2);
    let loader = file.groups.iter().find(|g| g.role == GroupRole::VariableLatency).unwrap().id;
    let mut stages_of_tile = Vec::new();
    let mut groups = BTreeSet::new();
    for which in ['0', '1'] {
        let ops: Vec<_> = file.operations.iter().filter(|op| tile(op) == Some(which)).collect();
        let on: BTreeSet<usize> = ops.iter().map(|op| op.group).collect();
        assert_eq!(on.len(), 1, "sub-tile {which} stays on one group");
        groups.extend(on);
        stages_of_tile.push(ops.iter().map(|op| op.stage).collect::<BTreeSet<_>>().len());
    }
    assert_eq!(groups.len(), 2, "each sub-tile has its own group");
    stages_of_tile.sort_unstable();
    assert_eq!(stages_of_tile, [1, 2], "only one sub-tile is pipelined across iterations");
    for op in file.operations.iter().filter(|op| tile(op).is_none()) {
        assert_eq!((op.kind.as_str(), op.group), ("load", loader), "{}", op.name);
    }
    // Ping-pong: while one group computes its exponentials, the tensor core works for the other.
    let within = |start: i64, op: &PlacedOperation| (op.cycle.0 - start).rem_euclid(2048) < 512;
    let overlaps = |a: &PlacedOperation, b: &PlacedOperation| within(a.cycle.0, b) || within(b.cycle.0, a);
    let long_exponentials = file.operations.iter().filter(|op| op.kind == "exp2" && !op.name.starts_with("alpha"));
    let mut met = 0;
    for exponential in long_exponentials {
        for dot in file.operations.iter().filter(|op| op.kind == "dot" && overlaps(exponential, op)) {
            assert_ne!(dot.group, exponential.group, "{} and {}", dot.name, exponential.name);
            met += 1;
        }
    }
    assert!(met >= 2, "both groups compute while the other's gemms run");
    match &file.lower_bound.kind {
        LowerBoundKind::Resource { unit, busy, .. } => assert_eq!((unit.as_str(), *busy), ("tensor", Cycles(2048))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn hopper_attention_forward_is_as_published() {
    let file = optimal(&["attention-forward-hopper"]);
    is_published_hopper_forward(&file, |op| op.name.chars().last().filter(char::is_ascii_digit));
}

#[test]
fn hopper_attention_forward_from_triton_is_as_published() {
    let file = optimal(&["examples/attention_forward.ttir", "--machine", "h100"]);
    is_published_hopper_forward(&file, |op| op.name.chars().last().filter(char::is_ascii_digit));
    for op in &file.operations {
        let source = op.source.as_ref().unwrap();
        assert_eq!(source.file, "examples/attention_forward.py");
        let text = std::fs::read_to_string(root().join(&source.file)).unwrap();
        assert!(text.lines().count() >= source.line as usize);
    }
}

#[test]
fn three_programs_of_attention_that_share_keys_are_bound_by_the_special_functions() {
    let file = optimal(&["examples/attention_forward_d64_m64.ttir", "--cta-coarsening", "3"]);
    // 64 x 128 exponentials and those of the row statistics, on 16 a cycle, for each of the three.
    assert_eq!(shape(&file), (3 * (512 + 16), 2608, 2));
    assert!(
        matches!(&file.lower_bound.kind, LowerBoundKind::Resource { unit, .. } if unit == "xu"),
        "{:?}",
        file.lower_bound
    );
    assert_eq!(compute_groups(&file), 3);
    let programs = ['0', '1', '2'].map(|program| groups_of_sub_tile(&file, program));
    assert!(programs.iter().all(|groups| groups.len() == 1), "a group each: {programs:?}");
    assert_eq!(BTreeSet::from_iter(programs.iter().flatten()).len(), 3, "{programs:?}");
    // Keys and values are loaded once, and every program reads them.
    let loads: Vec<&str> = file.operations.iter().filter(|op| op.kind == "load").map(|op| op.name.as_str()).collect();
    assert_eq!(loads, ["k", "v"]);
    for load in loads {
        assert_eq!(file.channels.iter().filter(|channel| channel.buffer == load).count(), 3, "{load}");
    }
    // What waits in shared memory for the loop: 64 x 64 queries of two bytes, three times.
    assert_eq!(file.problem().unwrap().graph().reserved().shared, Bytes(3 * 64 * 64 * 2));
}

/// The groups that a sub-tile's operations run on; dQ is summed over all sub-tiles.
fn groups_of_sub_tile(file: &ScheduleFile, sub_tile: char) -> BTreeSet<usize> {
    let is_shared = |name: &str| ["dQ", "dq", "stQ", "red"].iter().any(|of| name.starts_with(of));
    let mine = file.operations.iter().filter(|op| op.name.ends_with(sub_tile) && !is_shared(&op.name));
    mine.map(|op| op.group).collect()
}

#[test]
fn hopper_attention_backward_does_not_overlap_iterations() {
    for input in ["attention-backward-hopper", "examples/attention_backward.ttir"] {
        let file = optimal(&[input, "--machine", "h100", "--warp-assignment", "free"]);
        assert_eq!(shape(&file), (2560, 2560, 1), "{input}");
        assert_eq!(compute_groups(&file), 2, "{input}");
        let (first, second) = (groups_of_sub_tile(&file, '0'), groups_of_sub_tile(&file, '1'));
        assert_eq!((first.len(), second.len()), (1, 1), "one sub-tile a group: {input}");
        assert_ne!(first, second, "{input}");
    }
}

#[test]
fn one_group_is_infeasible_for_hopper_attention_forward() {
    for input in ["attention-forward-hopper", "examples/attention_forward.ttir"] {
        let (code, file) = schedule(&[input, "--compute-groups", "1", "--max-interval", "2048"]);
        assert_eq!((code, file.status), (2, Status::Infeasible), "{input}");
        assert_eq!(file.infeasible, Some(RejectionReason::Exhausted { largest: Cycles(2048), all: false }));
        assert_eq!(file.rejections.len(), 1);
        assert_eq!(file.rejections[0].stages, None, "for every number of stages");
    }
}

#[test]
fn cost_normalisation_keeps_the_strategy() {
    let file = optimal(&["attention-forward-hopper", "--normalise", "300"]);
    let (interval, length, stages) = shape(&file);
    let normalisation = file.normalisation.unwrap();
    assert_eq!(normalisation.limit, 300);
    assert!(normalisation.error >= 0 && normalisation.distortion >= 1.0);
    // Tensor core bound as before: four gemms of one cost, L = 1.5 I.
    assert_eq!((interval % 4, length * 2, stages), (0, interval * 3, 2));
    assert_eq!(compute_groups(&file), 2);
}

#[test]
fn the_timeline_shows_the_ping_pong() {
    let output = twill(&[
        "schedule",
        "examples/attention_forward.ttir",
        "--machine",
        "h100",
        "--width",
        "130",
        "--warp-assignment",
        "free",
    ]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    let row = |name: &str| {
        let line = text.lines().find(|l| l.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}:\n{text}"));
        line.to_owned()
    };
    let tensor = row("tensor ");
    let order: Vec<usize> =
        ["qk.0", "acc.dot.1'", "qk.1", "acc.dot.0"].iter().map(|d| tensor.find(d).unwrap()).collect();
    assert!(order.is_sorted(), "{tensor}");
    assert!(row("group 1 issue").contains("^qk.0"));
    assert!(row("group 2 issue").contains("^qk.1"));
    assert!(row("group 0 issue").contains("^k"), "loads on the variable-latency group");
    for part in [
        "I = 2048 cycles (optimal in the model of h100: proved)",
        "unit tensor is busy 2048",
        "Functional units",
        "168",
        "163,840",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn schedules_can_be_replayed_from_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schedule.json");
    let path = path.to_str().unwrap();
    let written = twill(&["schedule", "gemm", "--format", "json", "--output", path]);
    assert_eq!((written.status.code(), stdout(&written).as_str()), (Some(0), ""));
    let replayed = twill(&["check", path]);
    assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
    assert!(stdout(&replayed).contains("every constraint holds; I = 512 cycles"));
    // The gemm one cycle before its last load has been issued.
    let text = std::fs::read_to_string(path).unwrap();
    let broken = text.replacen(
        "\"cycle\": 128,\n      \"stage\": 0,\n      \"group\": 1",
        "\"cycle\": 127,\n      \"stage\": 0,\n      \"group\": 1",
        1,
    );
    assert_ne!(broken, text);
    std::fs::write(path, broken).unwrap();
    let rejected = twill(&["check", path]);
    assert_eq!(rejected.status.code(), Some(1));
    assert!(stderr(&rejected).contains("load B"), "{}", stderr(&rejected));
}

#[test]
fn output_is_the_same_every_time() {
    let run = || {
        let (_, mut file) = schedule(&["examples/attention_forward.ttir"]);
        file.seconds.clear();
        file.to_json()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_budget_ends_with_the_best_known_and_its_bound() {
    let (code, file) = schedule(&["attention-forward-hopper", "--compute-groups", "1", "--work-limit", "400000"]);
    assert_eq!((code, file.status), (3, Status::Feasible));
    assert!(file.initiation_interval.unwrap() > file.lower_bound.interval);
    assert!(file.lower_bound.interval > Cycles(2048));
    let (code, file) = schedule(&["attention-forward-hopper", "--work-limit", "1"]);
    // Nothing was found by then; what is shown runs one iteration after another.
    assert_eq!((code, file.status, file.stages), (3, Status::Feasible, Some(1)));
    assert_eq!(file.lower_bound.interval, Cycles(2048));
}

#[test]
fn pseudocode_names_waits_and_signals() {
    let output = twill(&["schedule", "gemm", "--format", "pseudocode"]);
    let text = stdout(&output);
    for part in ["# prologue", "# steady state", "# epilogue", "wait load_A.full", "arrive load_A.empty", "issue C[i]"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn sub_tiles_can_be_seen_before_anything_is_scheduled() {
    let count = |tiles: &str| {
        let output = twill(&["lower", "examples/attention_forward.ttir", "--sub-tiles", tiles]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let loads = text.lines().filter(|l| l.contains("= load ")).count();
        (loads, text.lines().filter(|l| l.contains("= dot ")).count())
    };
    assert_eq!(count("1"), (2, 2));
    assert_eq!(count("2"), (2, 4), "each sub-tile has its own gemms, the loads are shared");
}

#[test]
fn a_lowered_graph_schedules_as_its_kernel_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.json");
    let graph = twill(&["lower", "examples/attention_forward.ttir", "--format", "graph"]);
    std::fs::write(&path, stdout(&graph)).unwrap();
    let again = optimal(&[path.to_str().unwrap()]);
    let direct = optimal(&["examples/attention_forward.ttir"]);
    assert_eq!(again.operations, direct.operations);
}
