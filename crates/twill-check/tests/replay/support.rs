//! Problems and schedules in few words.

pub use twill_reference::schedule_with;

use serde_json::{Value, json};
use twill_check::{Constraint, verify};
use twill_graph::format::GraphFile;
use twill_graph::{ModelOptions, Problem, Resources, Schedule};

/// Hopper's pool: group 0 loads, groups 1 to 3 compute.
pub fn hopper() -> Resources {
    serde_json::from_value(json!({
        "name": "hopper",
        "units": [{"name": "tensor"}, {"name": "xu"}, {"name": "fma"}, {"name": "alu"}, {"name": "tma"}],
        "shared_memory": 232_448,
        "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8,
                      "reserve_per_thread": 32},
        "variable_latency_group": {"warps": 1, "allocated_warps": 4, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 3}
    }))
    .unwrap()
}

/// Blackwell's pool: group 0 loads, group 1 issues, groups 2 to 4 compute.
pub fn blackwell() -> Resources {
    let mut machine = hopper();
    machine.name = "blackwell".into();
    machine.issue_group = machine.variable_latency_group;
    machine.tensor_memory = twill_graph::Columns(512);
    machine
}

/// No fixed groups: groups 0 to 2 compute.
pub fn plain() -> Resources {
    Resources { name: "plain".into(), variable_latency_group: None, ..hopper() }
}

/// A graph file's `operations` and `dependences`, on a machine.
pub fn problem(machine: Resources, operations: Value, dependences: Value) -> Problem {
    problem_keeping(machine, json!({}), operations, dependences)
}

/// The same with storage reserved by code around the loop.
pub fn problem_keeping(machine: Resources, reserved: Value, operations: Value, dependences: Value) -> Problem {
    let text = json!({
        "format": "twill-graph", "version": 1, "name": "test", "reserved": reserved,
        "operations": operations, "dependences": dependences
    });
    let graph = GraphFile::from_json(&text.to_string(), "test.json").unwrap().graph().unwrap();
    Problem::new(graph, machine, ModelOptions::default()).unwrap()
}

/// The same with 128 registers a thread.
pub fn schedule(problem: &Problem, interval: i64, placements: &[(i64, usize)]) -> Schedule {
    schedule_with(problem, interval, placements, 128)
}

/// The schedule holds, and comes back as it was.
#[track_caller]
pub fn accepted(problem: &Problem, schedule: Schedule) {
    match verify(problem, schedule.clone()) {
        Ok(verified) => assert_eq!(*verified, schedule),
        Err(rejected) => panic!("{rejected}"),
    }
}

/// The schedule breaks this constraint only, with exactly these messages.
#[track_caller]
pub fn rejected(problem: &Problem, schedule: Schedule, constraint: Constraint, messages: &[&str]) {
    let rejected = verify(problem, schedule).unwrap_err();
    let found: Vec<String> = rejected.violations.iter().map(ToString::to_string).collect();
    assert_eq!(found, messages);
    assert!(rejected.violations.iter().all(|v| v.constraint() == constraint), "{:?}", rejected.violations);
}
