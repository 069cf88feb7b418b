//! `tensor_memory`

use crate::support::{accepted, blackwell, problem_keeping, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::TensorMemory;
use twill_graph::Problem;

fn pair(columns: u64) -> Problem {
    problem_keeping(
        blackwell(),
        json!({"tensor_memory": 112}),
        json!([
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
             "result": {"tensor_memory": columns}},
            {"name": "load", "units": [{"unit": "fma", "cycles": 4}]}
        ]),
        json!([{"from": "dot", "to": "load", "hold": 4}]),
    )
}

#[test]
fn reserved_and_live_columns_fit() {
    accepted(&pair(400), schedule(&pair(400), 8, &[(0, 1), (4, 2)]));
    let message = "at cycle 0 (slot 0) the loop needs 513 columns of tensor memory of 512: 112 reserved; `dot` 401";
    rejected(&pair(401), schedule(&pair(401), 8, &[(0, 1), (4, 2)]), TensorMemory, &[message]);
}

#[test]
fn copies_of_earlier_iterations_count() {
    accepted(&pair(200), schedule(&pair(200), 8, &[(0, 1), (12, 2)]));
    let message =
        "at cycle 8 (slot 0) the loop needs 514 columns of tensor memory of 512: 112 reserved; `dot` 402 in 2 copies";
    rejected(&pair(201), schedule(&pair(201), 8, &[(0, 1), (12, 2)]), TensorMemory, &[message]);
    let message =
        "at cycle 16 (slot 0) the loop needs 712 columns of tensor memory of 512: 112 reserved; `dot` 600 in 3 copies";
    rejected(&pair(200), schedule(&pair(200), 8, &[(0, 1), (13, 2)]), TensorMemory, &[message]);
}
