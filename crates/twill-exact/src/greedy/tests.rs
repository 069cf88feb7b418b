#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use super::schedule;
use crate::limits::{Budget, Meter};
use crate::{SearchOptions, bounds, extract, query};
use proptest::prelude::*;
use serde_json::{Value, json};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{Cycles, Families, ModelOptions, Placement, Problem, Status, builtin};

fn meter(work: u64) -> Meter {
    Meter::start(&Budget { work: Some(work), ..Budget::default() })
}

fn build(problem: &Problem, work: u64) -> Option<(Cycles, Vec<Placement>)> {
    let bottom = bounds::lower_bound(problem, Families::ALL).interval.0;
    schedule(problem, bottom, bounds::largest_interval(problem), &meter(work))
}

/// Replays a schedule with the independent checker; its interval.
fn replayed(problem: &Problem, (interval, placements): &(Cycles, Vec<Placement>)) -> Cycles {
    let found = query::at(problem, interval.0, placements, &meter(u64::MAX)).expect("what was built breaks nothing");
    let schedule = extract::schedule(&found.encoding, &found.candidate);
    twill_check::verify(problem, schedule).unwrap().interval
}

fn unrolled(name: &str, copies: u32) -> Problem {
    let file = builtin::find(name).unwrap();
    let machine = match file.machine {
        Some(MachineReference::Resources(machine)) => *machine,
        _ => serde_json::from_value(hopper()).unwrap(),
    };
    Problem::new(file.graph.unrolled(copies).unwrap(), machine, ModelOptions::default()).unwrap()
}

/// Room and units like a Hopper SM's.
fn hopper() -> Value {
    let units = ["tensor", "tma", "xu", "fma", "alu", "lsu"].map(|name| json!({"name": name}));
    json!({
        "name": "hopper", "units": units, "shared_memory": 232_448,
        "registers": {
            "words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 32
        },
        "variable_latency_group": {"warps": 4, "allocated_warps": 4, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 3}
    })
}

#[test]
fn a_large_loop_gets_a_schedule_at_once_and_always_the_same() {
    let problem = unrolled("attention-backward-hopper", 3);
    let bound = bounds::lower_bound(&problem, Families::ALL).interval;
    let first = build(&problem, 10_000_000).expect("a schedule within the work that the search allows");
    let interval = replayed(&problem, &first);
    assert!(interval >= bound && interval.0 <= bound.0 + bound.0 / 4, "{interval} over {bound}");
    assert_eq!(Some(first), build(&problem, 10_000_000));
}

#[test]
fn little_work_is_little_work() {
    let problem = unrolled("attention-backward-hopper", 4);
    let meter = meter(1000);
    assert_eq!(schedule(&problem, 1, 1 << 30, &meter), None);
    assert!(meter.counter().get() < 20_000);
}

#[derive(Clone, Debug)]
struct Loop {
    operations: Vec<(u8, i64, u64)>,
    dependences: Vec<(usize, usize, u32, bool)>,
}

fn random_loop() -> impl Strategy<Value = Loop> {
    let operation = (0_u8..4, 1_i64..5, 0_u64..3);
    (2_usize..7).prop_flat_map(move |count| {
        let operations = proptest::collection::vec(operation.clone(), count);
        let dependence = (0..count, 0..count, 0_u32..2, any::<bool>());
        (operations, proptest::collection::vec(dependence, 0..10))
            .prop_map(|(operations, dependences)| Loop { operations, dependences })
    })
}

fn problem(random: &Loop) -> Problem {
    let operation = |(i, &(kind, cycles, words)): (usize, &(u8, i64, u64))| match kind {
        0 => json!({"name": format!("o{i}"), "units": [{"unit": "tma", "cycles": cycles}], "execution": "asynchronous",
            "issue_width": 1, "variable_latency": true, "result": {"shared_memory": 16 * (words + 1)}}),
        1 => json!({"name": format!("o{i}"), "units": [{"unit": "tensor", "cycles": cycles}],
            "execution": "asynchronous", "result": {"registers": 2048 * (words + 1)}}),
        2 => json!({"name": format!("o{i}"), "units": [{"unit": "pair", "cycles": cycles}],
            "result": {"registers": 2048 * (words + 1)}}),
        _ => json!({"name": format!("o{i}"), "cycles": cycles, "result": {"registers": 2048 * (words + 1)}}),
    };
    let operations: Vec<Value> = random.operations.iter().enumerate().map(operation).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut dependences = Vec::new();
    for &(a, b, distance, blocking) in &random.dependences {
        let distance = if a >= b { 1 } else { distance };
        if seen.insert((a, b, distance)) {
            let (from, to) = (format!("o{a}"), format!("o{b}"));
            dependences.push(json!({"from": from, "to": to, "distance": distance, "blocking": blocking}));
        }
    }
    let machine = json!({
        "name": "small", "units": [{"name": "tma"}, {"name": "tensor"}, {"name": "pair", "capacity": 2}],
        "shared_memory": 128,
        "registers": {
            "words": 20_000, "minimum_per_thread": 8, "maximum_per_thread": 96, "granularity": 8, "reserve_per_thread": 0
        },
        "variable_latency_group": {"warps": 1, "allocated_warps": 1, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 2}
    });
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "random", "machine": machine,
        "operations": operations, "dependences": dependences
    });
    let file = GraphFile::from_json(&graph.to_string(), "random").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { panic!() };
    Problem::new(file.graph().unwrap(), *resources, ModelOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_built_is_a_schedule_and_never_beats_the_proof(random in random_loop()) {
        let problem = problem(&random);
        let budget = Budget { work: Some(500_000), ..Budget::default() };
        let exact = crate::schedule(&problem, &SearchOptions { budget, ..SearchOptions::default() }, &mut |_| {});
        if let Some(built) = build(&problem, 500_000) {
            let interval = replayed(&problem, &built);
            prop_assert!(exact.outcome.status() != Status::Infeasible);
            if exact.outcome.status() == Status::Optimal {
                prop_assert!(interval >= exact.outcome.schedule().unwrap().interval);
            }
        }
    }
}
