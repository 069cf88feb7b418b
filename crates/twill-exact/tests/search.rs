//! Properties of the search that random small problems do not reach.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use serde_json::{Value, json};
use twill_exact::{Budget, CertifyError, SearchOptions, certify, schedule, schedule_multi_loop};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{
    Cycles, LowerBoundKind, ModelOptions, MultiLoopProblem, ObjectiveLevel, Outcome, Problem, RejectionReason, Report,
    Status,
};

/// A problem on a machine with one tensor core, one TMA, one unit of two instances, `shared` bytes and up to two compute groups.
fn problem(shared: u64, operations: Value, dependences: Value) -> Problem {
    let machine = json!({
        "name": "small",
        "units": [{"name": "tma"}, {"name": "tensor"}, {"name": "pair", "capacity": 2}],
        "shared_memory": shared,
        "registers": {
            "words": 65536, "minimum_per_thread": 8, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 0
        },
        "variable_latency_group": {"warps": 1, "allocated_warps": 1, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 2}
    });
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "test", "machine": machine,
        "operations": operations, "dependences": dependences
    });
    let file = GraphFile::from_json(&graph.to_string(), "test").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { panic!() };
    Problem::new(file.graph().unwrap(), *resources, ModelOptions::default()).unwrap()
}

/// Searches with a work budget far above what is needed: tests must end.
fn search(problem: &Problem) -> Report {
    let budget = Budget { work: Some(500_000), ..Budget::default() };
    schedule(problem, &SearchOptions { budget, ..SearchOptions::default() }, &mut |_| {})
}

/// A schedule that needs hundreds of stages, found with the last of the budget.
#[test]
fn what_a_budget_leaves_is_a_schedule() {
    let ops = json!([
        {"name": "load", "units": [{"unit": "tma", "cycles": 2}], "execution": "asynchronous", "issue_width": 1},
        {"name": "wait", "issue_width": 1},
        {"name": "make", "issue_width": 1, "result": {"registers": 64}},
        {"name": "work", "cycles": 1, "issue_width": 1}
    ]);
    let far = problem(4096, ops, json!([{"from": "make", "to": "wait", "distance": 237, "blocking": true}]));
    let mut found = 0;
    for work in (10_000..100_000).step_by(10_000) {
        let budget = Budget { work: Some(work), ..Budget::default() };
        let options = SearchOptions { budget, largest_interval: Some(Cycles(400)), ..SearchOptions::default() };
        let report = schedule(&far, &options, &mut |_| {});
        if let Some(schedule) = report.outcome.schedule() {
            twill_check::verify(&far, schedule.clone()).unwrap_or_else(|e| panic!("{work} units: {e}"));
            found += 1;
        }
    }
    assert!(found > 0);
}

fn load(transfer: i64) -> Value {
    json!({
        "name": "load", "units": [{"unit": "tma", "cycles": 1}], "execution": "asynchronous", "issue_width": 1,
        "variable_latency": true, "streaming": true, "transfer_latency": transfer, "result": {"shared_memory": 64}
    })
}

fn gemm(name: &str, cycles: i64) -> Value {
    json!({"name": name, "units": [{"unit": "tensor", "cycles": cycles}], "execution": "asynchronous"})
}

#[test]
fn a_shallow_ring_waits_for_a_long_transfer() {
    // One slot must cover 1000 cycles of transfer and 4 of reading, and there is no room for two.
    let report = search(&problem(64, json!([load(1000), gemm("mma", 4)]), json!([{"from": "load", "to": "mma"}])));
    assert_eq!(report.outcome.status(), Status::Optimal);
    assert_eq!(report.outcome.schedule().unwrap().interval, Cycles(1004));
    let two = search(&problem(128, json!([load(1000), gemm("mma", 4)]), json!([{"from": "load", "to": "mma"}])));
    assert_eq!(two.outcome.schedule().unwrap().interval, Cycles(502));
}

/// Next to a ring of which one slot goes, one of a byte could have a million.
#[test]
fn slots_that_no_ring_needs_are_not_asked_about() {
    let named = |name: &str, bytes: u64, transfer: i64| {
        let mut one = load(transfer);
        (one["name"], one["result"]["shared_memory"]) = (name.into(), bytes.into());
        one
    };
    let operations =
        json!([named("small", 1, 0), named("large", 1 << 20, 1000), gemm("a", 2), gemm("b", 2), gemm("c", 4)]);
    let dependences = json!([
        {"from": "small", "to": "a"}, {"from": "small", "to": "b"}, {"from": "large", "to": "c"},
        {"from": "a", "to": "b", "value": false, "delay": 300}
    ]);
    let long = problem(1 << 21, operations, dependences);
    let report = search(&long);
    assert_eq!(report.outcome.status(), Status::Optimal);
    assert_eq!(report.outcome.schedule().unwrap().interval, Cycles(1004));
    let certificate = certify(&long, &report, &Budget { work: Some(500_000), ..Budget::default() }).unwrap();
    twill_check::verify_certificate(&long, &certificate).unwrap();
}

#[test]
fn no_room_for_one_slot_is_infeasible_with_the_amounts() {
    let report = search(&problem(63, json!([load(10), gemm("mma", 4)]), json!([{"from": "load", "to": "mma"}])));
    let Outcome::Infeasible { reason } = report.outcome else { panic!("{:?}", report.outcome) };
    assert!(matches!(reason, RejectionReason::Storage { required: 64, available: 63, .. }), "{reason:?}");
}

#[test]
fn many_independent_operations_on_one_unit_are_no_puzzle() {
    let operations: Vec<Value> = (0..24).map(|i| gemm(&format!("o{i}"), 1)).collect();
    let report = search(&problem(0, json!(operations), json!([])));
    assert_eq!(report.outcome.status(), Status::Optimal);
    assert_eq!(report.outcome.schedule().unwrap().interval, Cycles(24));
    assert!(report.modulo.unwrap().length_proved);
}

#[test]
fn the_cost_does_not_grow_with_cycle_counts() {
    // Both hold the unit for 10 s and answer each other within two iterations: the gap between the bound and the
    // answer grows with s.
    for s in [1, 1_000, 1_000_000_000] {
        let operations = json!([gemm("a", 10 * s), gemm("b", 10 * s)]);
        let dependences = json!([
            {"from": "a", "to": "b", "delay": 15 * s, "value": false, "blocking": false},
            {"from": "b", "to": "a", "delay": 15 * s, "distance": 2, "value": false, "blocking": false}
        ]);
        let report = search(&problem(0, operations, dependences));
        assert_eq!(report.outcome.status(), Status::Optimal);
        assert_eq!(report.outcome.schedule().unwrap().interval, Cycles(25 * s));
        assert!(matches!(report.lower_bound.kind, LowerBoundKind::Search { from } if from == Cycles(20 * s)));
    }
}

#[test]
fn a_unit_with_two_instances_is_respected_without_warps_too() {
    // Three operations of 2 cycles on two instances: two can start together, the third must wait.
    let operations: Vec<Value> = ["a", "b", "c"]
        .map(|name| json!({"name": name, "units": [{"unit": "pair", "cycles": 2}], "execution": "asynchronous"}))
        .to_vec();
    let report = search(&problem(0, json!(operations), json!([])));
    let modulo = report.modulo.unwrap();
    assert_eq!((modulo.initiation_interval, modulo.length, modulo.length_proved), (Cycles(3), Cycles(4), true));
}

/// A value that is read for a tera-cycle lives in as many copies at small intervals: they are counted, not listed.
#[test]
fn values_that_live_for_ages_take_no_more_memory_than_others() {
    let long = 1_i64 << 40;
    let ops = json!([
        {"name": "held", "result": {"shared_memory": 2}},
        {"name": "reader", "units": [{"unit": "tensor", "cycles": 3}], "result": {"shared_memory": 1}}
    ]);
    let dependences = json!([
        {"from": "held", "to": "held", "distance": 1, "hold": long},
        {"from": "held", "to": "reader", "hold": long - 1}
    ]);
    let Outcome::Optimal { schedule } = search(&problem(64, ops, dependences)).outcome else { panic!() };
    // The value lives for `long` and the interval that carries it; 32 copies fit.
    assert_eq!(schedule.interval, Cycles(long / 31 + 1));
}

/// A value of a million iterations ago takes a million stages, which are not asked for one by one.
#[test]
fn a_million_stages_are_found_by_bisection() {
    let problem = read(include_str!("data/million_stages.json"));
    let report = search(&problem);
    let schedule = report.outcome.schedule().unwrap();
    let stages = schedule.length.div_ceil(schedule.interval);
    assert_eq!((schedule.interval, stages), (Cycles(3), 1_048_566));
    let proved = report.objectives.iter().find(|value| value.level == ObjectiveLevel::Stages).unwrap();
    assert!(proved.proved, "{proved:?}");
}

/// The only use of a ring's load: how deep the ring is does not depend on times, and proofs must not speak of them.
#[test]
fn rings_of_one_use_are_certified() {
    let problem = read(include_str!("data/ring_of_one_use.json"));
    let certificate = certify(&problem, &search(&problem), &Budget::default()).unwrap();
    let evidence = twill_check::verify_certificate(&problem, &certificate).unwrap();
    assert!(evidence.everything, "{evidence:?}");
}

/// The problem of a graph file that has its machine.
fn read(text: &str) -> Problem {
    let file = GraphFile::from_json(text, "file.json").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { panic!() };
    Problem::new(file.graph().unwrap(), *resources, ModelOptions::default()).unwrap()
}

const MANY_WRAPS: &str = include_str!("data/many_wraps.json");
const MANY_COPIES: &str = include_str!("data/many_copies.json");
const MANY_COPIES_LATE: &str = include_str!("data/many_copies_late.json");
const MANY_STAGES: &str = include_str!("data/many_stages.json");
const MANY_INTERVALS: &str = include_str!("data/many_intervals.json");

fn with_work(work: u64) -> SearchOptions {
    SearchOptions { budget: Budget { work: Some(work), ..Budget::default() }, ..SearchOptions::default() }
}

/// The result of a search within a budget of work: the interval, and the cycles a round of a kernel takes.
fn found<S>(outcome: &Outcome<S>, cycles: impl Fn(&S) -> Cycles) -> Option<Cycles> {
    match outcome {
        Outcome::Feasible { schedule } => Some(cycles(schedule)),
        Outcome::Unknown { stopped_by } => {
            assert_eq!(stopped_by, "work budget");
            None
        }
        Outcome::Optimal { .. } | Outcome::Infeasible { .. } => panic!("nothing can be proved here"),
    }
}

/// An operation of 2^31 cycles against an interval of a few has 2^30 wraps with every other on its unit, and as many
/// copies where the unit has several instances: they are work of each part of the search. So it is where intervals are
/// refuted one by one for ages.
#[test]
fn wraps_without_number_keep_to_the_budget() {
    let cases = [
        (MANY_WRAPS, 20_000, None),
        (MANY_COPIES, 20_000, None),
        (MANY_COPIES_LATE, 20_000, None),
        // The schedule without warps, about which most of these are, gets its part and no more.
        (MANY_COPIES_LATE, 5_000_000, Some(Cycles(1_398_105))),
        (MANY_INTERVALS, 20_000, None),
    ];
    for (text, work, interval) in cases {
        let long = read(text);
        let report = schedule(&long, &with_work(work), &mut |_| {});
        assert_eq!(found(&report.outcome, |s| s.interval), interval);
        if let Some(found) = report.outcome.schedule() {
            assert!(twill_check::verify(&long, found.clone()).is_ok());
        }
    }
    let report = schedule_multi_loop(&twice(MANY_INTERVALS), &with_work(1_000_000), &mut |_| {});
    assert_eq!(found(&report.outcome, |common| common.cycles), None);
}

/// More stages than can be counted are no matter of work: the search ends without a budget, with nothing proved.
#[test]
fn stages_without_number_end_the_search() {
    let options = SearchOptions::default();
    let report = schedule(&read(MANY_STAGES), &options, &mut |_| {});
    assert_eq!(found(&report.outcome, |s| s.interval), Some(Cycles(257)));
    let report = schedule_multi_loop(&twice(MANY_STAGES), &options, &mut |_| {});
    assert_eq!(found(&report.outcome, |common| common.cycles), Some(Cycles(514)));
}

/// A certificate that would have a conflict for each of 2^31 intervals.
#[test]
fn conflicts_without_number_keep_to_the_budget() {
    let wide = read(&MANY_INTERVALS.replacen("\"issue_width\": 1", "\"issue_width\": 4", 1));
    let report = search(&wide);
    let Outcome::Infeasible { reason: RejectionReason::NoGroup { .. } } = &report.outcome else { panic!() };
    let interrupt = Some(std::sync::Arc::new(true.into()));
    let stopped = certify(&wide, &report, &Budget { interrupt, ..Budget::default() });
    assert!(matches!(stopped, Err(CertifyError::Stopped { .. })), "{stopped:?}");
}

/// A kernel of the same loop twice.
fn twice(text: &str) -> MultiLoopProblem {
    let one = read(text);
    MultiLoopProblem::new("both", vec![one.clone(), one], vec![1, 1], Vec::new()).unwrap()
}
