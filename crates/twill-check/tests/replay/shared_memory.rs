//! `shared_memory`

use crate::support::{accepted, hopper, plain, problem_keeping, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::SharedMemory;
use twill_graph::{Bytes, Problem, Resources};

fn with(bytes: u64, machine: Resources) -> Resources {
    Resources { shared_memory: Bytes(bytes), ..machine }
}

fn pair(available: u64, result: serde_json::Value) -> Problem {
    problem_keeping(
        with(available, plain()),
        json!({"shared_memory": 100}),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": result, "handoff": 1},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b", "hold": 2}]),
    )
}

#[test]
fn live_values_of_all_iterations_fit() {
    let result = json!({"shared_memory": 50});
    let (one, two) = (pair(150, result.clone()), pair(200, result));
    accepted(&one, schedule(&one, 8, &[(0, 0), (6, 1)]));
    accepted(&two, schedule(&two, 8, &[(0, 0), (7, 1)]));
    let message = "at cycle 8 (slot 0) the loop needs 200 bytes of shared memory of 150: 100 reserved, 0 for rings; `a` 100 in 2 copies";
    rejected(&one, schedule(&one, 8, &[(0, 0), (7, 1)]), SharedMemory, &[message]);
}

#[test]
fn handoff_buffers_fit() {
    // 10 words are 40 bytes, from the issue to the consumer's end.
    let result = json!({"registers": 10});
    let (one, none) = (pair(140, result.clone()), pair(139, result));
    accepted(&none, schedule(&none, 8, &[(0, 0), (3, 0)]));
    accepted(&one, schedule(&one, 8, &[(0, 0), (6, 1)]));
    let message = "at cycle 0 (slot 0) the loop needs 140 bytes of shared memory of 139: 100 reserved, 0 for rings; `a` for handoff 40";
    rejected(&none, schedule(&none, 8, &[(0, 0), (6, 1)]), SharedMemory, &[message]);
    let message = "at cycle 8 (slot 0) the loop needs 180 bytes of shared memory of 140: 100 reserved, 0 for rings; `a` for handoff 80 in 2 copies";
    rejected(&one, schedule(&one, 8, &[(0, 0), (7, 1)]), SharedMemory, &[message]);
}

#[test]
fn rings_fit_at_all_times() {
    let problem = |available| {
        problem_keeping(
            with(available, hopper()),
            json!({"shared_memory": 100}),
            json!([
                {"name": "load", "units": [{"unit": "tma", "cycles": 2}], "execution": "asynchronous", "issue_width": 1,
                 "result": {"shared_memory": 50}, "variable_latency": true, "streaming": true, "transfer_latency": 10},
                {"name": "use", "units": [{"unit": "fma", "cycles": 3}]}
            ]),
            json!([{"from": "load", "to": "use"}]),
        )
    };
    // ⌈(10 + 3) / 8⌉ = 2 slots, whatever the load's issue.
    for use_at in [0, 5, 60] {
        let (fits, not) = (problem(200), problem(199));
        accepted(&fits, schedule(&fits, 8, &[(0, 0), (use_at, 1)]));
        let message = "at cycle 0 (slot 0) the loop needs 200 bytes of shared memory of 199: 100 reserved, 100 for rings; no values";
        rejected(&not, schedule(&not, 8, &[(0, 0), (use_at, 1)]), SharedMemory, &[message]);
    }
}
