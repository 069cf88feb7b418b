//! Sibling loops: common groups and registers, against brute force over assignments and issue cycles
//! on tiny kernels, and on causal attention as Triton printed it.

use crate::common::{root, stderr, stdout, twill};
use crate::sibling_kernels::{Kernel, Loop, brute_force, random};
use serde_json::{Value, json};
use twill_exact::{SearchOptions, schedule_multi_loop};
use twill_graph::format::{KernelScheduleFile, ScheduleFile};
use twill_graph::{
    Cycles, GroupRole, LoopOperation, MultiLoopProblem, MultiLoopReport, OpId, Outcome, RejectionReason, Status, Tie,
    TieReason,
};

/// The answer, replayed.
fn solve(kernel: &MultiLoopProblem, largest: Option<i64>) -> MultiLoopReport {
    let options = SearchOptions { largest_interval: largest.map(Cycles), ..SearchOptions::default() };
    let report = schedule_multi_loop(kernel, &options, &mut |_| {});
    if let Some(common) = report.outcome.schedule() {
        let schedules = report.loops.iter().map(|r| r.outcome.schedule().unwrap().clone()).collect();
        twill_check::verify_multi_loop(kernel, &common.groups, schedules).unwrap_or_else(|e| panic!("{e}"));
    }
    report
}

fn intervals(report: &MultiLoopReport) -> Vec<i64> {
    report.loops.iter().map(|r| r.outcome.schedule().unwrap().interval.0).collect()
}

fn registers(report: &MultiLoopReport) -> Vec<u32> {
    report.outcome.schedule().unwrap().groups.iter().map(|g| g.registers_per_thread).collect()
}

#[test]
fn the_sum_of_intervals_is_that_of_brute_force() {
    const LARGEST: i64 = 9;
    let (mut gave_way, mut impossible) = (0, 0);
    for seed in 0..30 {
        let kernel = random(seed);
        let expected = brute_force(&kernel, LARGEST);
        let problem = kernel.problem();
        let report = solve(&problem, Some(LARGEST));
        let Some(expected) = expected else {
            let Outcome::Infeasible { .. } = report.outcome else { panic!("{seed}: {:?}", report.outcome) };
            impossible += 1;
            continue;
        };
        let Outcome::Optimal { schedule } = &report.outcome else { panic!("{seed}: {:?}", report.outcome) };
        assert_eq!(schedule.cycles.0, expected, "{seed}: {kernel:?}");
        assert_eq!(report.lower_bound.0, expected, "{seed}");
        let alone = problem.cycles(report.loops.iter().map(|r| r.lower_bound.interval));
        gave_way += usize::from(alone.0 < expected);
    }
    assert!(gave_way >= 5 && impossible >= 2, "{gave_way} gave way, {impossible} impossible");
}

/// Apart, `x` and `y` overlap, which the first loop likes; the second hands `x` on to `y` around a
/// recurrence, and likes them together.
fn tug_of_war(weights: [u64; 2]) -> Kernel {
    let first = Loop::new(&[("x", 2, 0), ("y", 2, 0)]);
    let second = Loop::new(&[("x", 2, 1), ("y", 2, 0)]).handoff(6).reads(0, 1).follows(1, 0, 1);
    Kernel { loops: [first, second], weights, ties: vec![(0, 0), (1, 1)], registers: 64, most: 32 }
}

#[test]
fn trip_counts_decide_which_loop_gives_way() {
    for (weights, expected, least) in [([1, 1], [4, 4], 8), ([10, 1], [2, 10], 30), ([1, 10], [4, 4], 44)] {
        let kernel = tug_of_war(weights);
        let report = solve(&kernel.problem(), None);
        assert_eq!(report.outcome.status(), Status::Optimal);
        assert_eq!((intervals(&report), report.lower_bound.0), (expected.to_vec(), least), "{weights:?}");
        assert_eq!(brute_force(&kernel, 12), Some(least));
        let alone: Vec<i64> = report.loops.iter().map(|r| r.lower_bound.interval.0).collect();
        assert_eq!(alone, [2, 4], "what each can do by itself");
        assert!(!report.rejections.is_empty());
    }
    // Not tied, neither gives way.
    let free = Kernel { ties: Vec::new(), ..tug_of_war([1, 1]) };
    assert_eq!(intervals(&solve(&free.problem(), None)), [2, 4]);
}

#[test]
fn three_loops_give_way_to_each_other() {
    let two = tug_of_war([1, 1]).problem();
    let loops = [0, 1, 0].map(|k| two.loops()[k].clone()).to_vec();
    let tie = |op| {
        let operations = (0..3).map(|index| LoopOperation { index, op: OpId::new(op) }).collect();
        Tie { reason: TieReason::Corresponding, operations }
    };
    for (weights, expected) in [([1, 1, 1], [4, 4, 4]), ([4, 1, 4], [2, 10, 2]), ([1, 1, 5], [2, 10, 2])] {
        let kernel = MultiLoopProblem::new("three", loops.clone(), weights.to_vec(), vec![tie(0), tie(1)]).unwrap();
        let report = solve(&kernel, None);
        assert_eq!((report.outcome.status(), intervals(&report)), (Status::Optimal, expected.to_vec()), "{weights:?}");
    }
}

/// In one loop `x` needs 20 registers a thread and `y` 10, in the other it is the other way round.
fn budget(registers: u32) -> Kernel {
    let each = |x, y| Loop::new(&[("x", 2, x), ("y", 2, y)]).reads(0, 0).reads(1, 1);
    let ties = vec![(0, 0), (1, 1)];
    Kernel { loops: [each(20, 10), each(10, 20)], weights: [1, 1], ties, registers, most: 32 }
}

#[test]
fn registers_are_granted_once_for_all_loops() {
    let report = solve(&budget(40).problem(), None);
    assert_eq!((intervals(&report), registers(&report)), (vec![2, 2], vec![20, 20]));
    for own in &report.loops {
        let given = own.outcome.schedule().unwrap().groups.iter().map(|g| g.registers_per_thread);
        assert_eq!(given.collect::<Vec<_>>(), [20, 20], "the largest need of any loop");
    }
    // 30 registers are enough for each loop by itself, but not for the larger need of both groups.
    let report = solve(&budget(39).problem(), None);
    assert_eq!((intervals(&report), registers(&report)), (vec![4, 4], vec![30]));
    assert!(report.loops.iter().all(|r| r.lower_bound.interval == Cycles(2)));
    assert_eq!(report.outcome.status(), Status::Optimal);
    assert_eq!(brute_force(&budget(39), 8), Some(8));
    // Nor may one group hold both.
    let kernel = Kernel { most: 29, ..budget(39) };
    let report = solve(&kernel.problem(), None);
    assert!(matches!(report.outcome, Outcome::Infeasible { reason: RejectionReason::OtherLoops { .. } }), "{report:?}");
}

const CAUSAL: [(&str, i64); 2] =
    [("examples/attention_forward_causal.ttir", 2048), ("examples/attention_forward_causal_d64.ttir", 1056)];

#[test]
fn both_loops_of_causal_attention_run_on_the_same_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.json");
    let path = path.to_str().unwrap();
    for (input, interval) in CAUSAL {
        let output = twill(&[
            "schedule",
            input,
            "--machine",
            "h100",
            "--warp-assignment",
            "free",
            "--format",
            "json",
            "-o",
            path,
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let file = KernelScheduleFile::from_json(&std::fs::read_to_string(path).unwrap(), path).unwrap();
        assert_eq!(
            (file.status, file.cycles, file.lower_bound),
            (Status::Optimal, Some(Cycles(2 * interval)), Cycles(2 * interval))
        );
        assert!(file.objectives.iter().all(|o| o.proved), "{:?}", file.objectives);
        assert!(file.loops.iter().all(|l| l.initiation_interval == Some(Cycles(interval)) && l.groups == file.groups));
        assert_eq!(file.groups.iter().filter(|g| g.role == GroupRole::Compute).count(), 2);
        // Each operation of the unmasked loop has its like in the masked one, on the same group.
        let like = |op: &twill_graph::format::PlacedOperation| {
            let tile = |name: &str| name.chars().last().filter(char::is_ascii_digit);
            let same = |o: &&twill_graph::format::PlacedOperation| {
                (&o.source, &o.kind, tile(&o.name)) == (&op.source, &op.kind, tile(&op.name))
            };
            file.loops[1].operations.iter().find(same).unwrap().group
        };
        assert!(file.loops[0].operations.iter().all(|op| like(op) == op.group), "{input}");
        let replayed = twill(&["check", path]);
        assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
        assert!(stdout(&replayed).contains("34 ties hold, 3 groups are common"), "{}", stdout(&replayed));
    }
}

#[test]
fn the_report_names_common_groups_once_and_shows_both_loops() {
    let output = twill(&["schedule", CAUSAL[0].0, "--width", "110", "--trip-counts", "15,1"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "attention_forward on h200, 2 loops with common warp groups",
        "Sum of weight times I = 32,768 cycles (optimal in the model of h200: proved)",
        "Weights: 15, 1.",
        "Operations tied to another loop's: 28 of 28, 28 of 32.",
        "length L of loop 1",
        "attention_forward.loop0 on h200",
        "attention_forward.loop1 on h200",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert_eq!(text.matches("Common warp groups").count(), 1);
    assert_eq!(text.matches("Steady state, I = 2048").count(), 2);
    let program = stdout(&twill(&["schedule", CAUSAL[0].0, "--format", "pseudocode"]));
    assert_eq!(program.matches("# steady state").count() % 2, 0);
    assert!(program.contains("attention_forward.loop0") && program.contains("attention_forward.loop1"));
}

#[test]
fn every_loop_can_still_be_had_by_itself() {
    let apart = twill(&["schedule", CAUSAL[0].0, "--separate-loops", "--format", "json"]);
    let files: Vec<ScheduleFile> = serde_json::from_str(&stdout(&apart)).unwrap();
    let one = twill(&["schedule", CAUSAL[0].0, "--loop", "1", "--format", "json"]);
    let one = ScheduleFile::from_json(&stdout(&one), "stdout").unwrap();
    assert_eq!(files[1].operations, one.operations);
    // The paper's model variant speaks of one loop.
    let paper = twill(&["schedule", CAUSAL[1].0, "--stage-window", "paper", "--format", "json"]);
    assert!(stdout(&paper).starts_with('['), "{}", stderr(&paper));
}

#[test]
fn a_kernel_schedule_with_one_thing_changed_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.json");
    let written = stdout(&twill(&["schedule", CAUSAL[0].0, "--warp-assignment", "free", "--format", "json"]));
    let good: Value = serde_json::from_str(&written).unwrap();
    let refused = |change: &dyn Fn(&mut Value), says: &str| {
        let mut file = good.clone();
        change(&mut file);
        assert_ne!(file, good, "{says}");
        std::fs::write(&path, file.to_string()).unwrap();
        let output = twill(&["check", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{says}: {}", stdout(&output));
        assert!(stderr(&output).contains(says), "{says}:\n{}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"));
    };
    // The masked loop with its compute groups exchanged: good by itself, but not with the other.
    let exchanged = |file: &mut Value| {
        let swap = |group: &mut Value| *group = json!([0, 2, 1][usize::try_from(group.as_u64().unwrap()).unwrap()]);
        let own = &mut file["loops"][1];
        own["operations"].as_array_mut().unwrap().iter_mut().for_each(|op| swap(&mut op["group"]));
        for channel in own["channels"].as_array_mut().unwrap() {
            swap(&mut channel["from"]);
            swap(&mut channel["to"]);
        }
        own["channels"].as_array_mut().unwrap().sort_by_key(|c| (c["buffer"].to_string(), c["to"].as_u64()));
    };
    refused(&exchanged, "they are tied (one loop hands the value on to the other)");
    refused(&exchanged, "they are tied (they are one operation of the source)");
    refused(&|f| f["groups"][1]["role"] = json!("issue"), "group 1: attention_forward.loop0 has it as compute");
    refused(&|f| f["groups"][2]["registers_per_thread"] = json!(176), "the kernel as compute with 4 and 176");
    refused(&|f| f["loops"][1]["groups"][1]["registers_per_thread"] = json!(240), "group 1: attention_forward.loop1");
    refused(&|f| drop(f["groups"].as_array_mut().unwrap().pop()), "which is not among the common groups");
    let extra = json!({ "id": 3, "role": "compute", "warps": 4, "registers_per_thread": 168 });
    refused(&|f| f["groups"].as_array_mut().unwrap().push(extra.clone()), "group 3 is listed, and no loop uses it");
    refused(&|f| f["groups"].as_array_mut().unwrap().swap(0, 1), "listed out of order");
    let generous = |file: &mut Value| {
        for group in 1..3 {
            file["groups"][group]["registers_per_thread"] = json!(256);
            for own in 0..2 {
                file["loops"][own]["groups"][group]["registers_per_thread"] = json!(256);
            }
        }
    };
    refused(&generous, "register file");
    refused(
        &|f| f["loops"][0]["operations"][0]["cycle"] = json!(300),
        "attention_forward.loop0: the schedule was replayed",
    );
    refused(&|f| f["cycles"] = json!(4095), "`cycles` is not the sum of weight times initiation interval, 4096");
    refused(&|f| f["weights"] = json!([1]), "1 trip counts for 2 loops");
    refused(&|f| f["weights"] = json!([0, 1]), "it must be from 1 to 1048576");
    refused(&|f| f["ties"][0]["operations"][1]["loop"] = json!(2), "a tie of loop 2");
    refused(&|f| f["ties"][0]["operations"][1]["operation"] = json!("acc"), "names the operation `acc`");
    let bare = |file: &mut Value| (file["loops"], file["ties"]) = (json!([]), json!([]));
    refused(&bare, "`attention_forward` has no loops");
    refused(&|f| f["loops"][1]["problem"]["options"]["exclusive_issue"] = json!(false), "differ in options");
    refused(&|f| f["loops"][1]["problem"]["resources"]["shared_memory"] = json!(200_000), "differ in machine");
    refused(&|f| f["loops"][1]["format"] = json!("twill-graph"), "loop 1: expected format `twill-schedule`");
    refused(&|f| f["version"] = json!(2), "expected format `twill-kernel-schedule` version 1");
    refused(&|f| f["surprise"] = json!(1), "unknown field `surprise`");
}

#[test]
fn a_budget_for_all_loops_ends_with_a_bound() {
    let output = twill(&["schedule", CAUSAL[0].0, "--format", "json", "--work-limit", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let file = KernelScheduleFile::from_json(&stdout(&output), "stdout").unwrap();
    // Nothing was found by then; what is shown runs one iteration after another.
    assert_eq!((file.status, file.lower_bound), (Status::Feasible, Cycles(4096)));
    assert!(file.cycles.unwrap() > Cycles(4096) && file.loops.iter().all(|one| one.stages == Some(1)));
    let free = ["--machine", "h100", "--warp-assignment", "free"];
    let one = [&["schedule", CAUSAL[0].0, "--format", "json", "--compute-groups", "1"][..], &free].concat();
    let output = twill(&[&one[..], &["--work-limit", "1000000"]].concat());
    let file = KernelScheduleFile::from_json(&stdout(&output), "stdout").unwrap();
    assert_eq!((output.status.code(), file.status), (Some(3), Status::Feasible), "{}", stderr(&output));
    assert!(file.cycles.unwrap() > file.lower_bound && file.lower_bound > Cycles(4096), "{:?}", file.lower_bound);
    let output =
        twill(&["schedule", CAUSAL[0].0, "--format", "json", "--compute-groups", "1", "--max-interval", "2048"]);
    assert_eq!(output.status.code(), Some(2), "one group is not enough: {}", stderr(&output));
}

#[test]
fn trip_counts_that_do_not_fit_are_refused() {
    let causal = CAUSAL[0].0;
    for (arguments, says) in [
        (vec![causal, "--trip-counts", "3"], "1 trip counts for 2 loops; give one for each, in the order of the text"),
        (vec![causal, "--trip-counts", "1,2,3"], "3 trip counts for 2 loops"),
        (
            vec![causal, "--trip-counts", "0,1"],
            "the trip count of `attention_forward.loop0` is 0; it must be from 1 to",
        ),
        (vec![causal, "--trip-counts", "1,1048577"], "the trip count of `attention_forward.loop1` is 1048577"),
        (vec![causal, "--trip-counts", "1,x"], "invalid value 'x'"),
        (vec![causal, "--trip-counts", "1,2", "--loop", "0"], "there is one loop"),
        (vec![causal, "--trip-counts", "1,2", "--separate-loops"], "--separate-loops schedules each by itself"),
        (vec![causal, "--trip-counts", "1,2", "--normalise", "300"], "which cannot be added up"),
        (vec![causal, "--trip-counts", "1,2", "--model", "paper"], "the paper's variant of the model is for one loop"),
        (vec!["gemm", "--trip-counts", "4"], "there is one loop"),
    ] {
        let output = twill(&[&["schedule"], &arguments[..]].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{says}:\n{}", stderr(&output));
    }
}

#[test]
fn the_published_schema_is_the_one_that_is_printed() {
    let text = std::fs::read_to_string(root().join("docs/schema/kernel-schedule.schema.json")).unwrap();
    let printed = stdout(&twill(&["schema", "kernel-schedule"]));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::from_str::<Value>(&printed).unwrap());
    let formats = std::fs::read_to_string(root().join("docs/formats.md")).unwrap();
    let schema: Value = serde_json::from_str(&printed).unwrap();
    for key in schema["properties"].as_object().unwrap().keys() {
        assert!(formats.contains(&format!("`{key}`")), "{key}");
    }
}
