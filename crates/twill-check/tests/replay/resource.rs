//! `resource`

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Resource;
use twill_graph::Problem;

/// Asynchronous, so that only the unit is in the way.
fn two_on_tensor(capacity: u32) -> Problem {
    let mut machine = plain();
    machine.units[0].capacity = capacity;
    problem(
        machine,
        json!([
            {"name": "a", "units": [{"unit": "tensor", "start": 1, "cycles": 3}], "execution": "asynchronous"},
            {"name": "b", "units": [{"unit": "tensor", "cycles": 2}], "execution": "asynchronous"}
        ]),
        json!([]),
    )
}

#[test]
fn reservations_of_one_iteration_do_not_meet() {
    let problem = two_on_tensor(1);
    accepted(&problem, schedule(&problem, 10, &[(0, 0), (4, 1)]));
    let message = "unit `tensor` (capacity 1) is held 2 times at cycle 3 (slot 3): `a` 1, `b` 1";
    rejected(&problem, schedule(&problem, 10, &[(0, 0), (3, 1)]), Resource, &[message]);
}

#[test]
fn reservations_of_different_iterations_do_not_meet() {
    let problem = two_on_tensor(1);
    // Slots 1, 2, 3 and 4, 0 of 5; b two iterations after its a.
    accepted(&problem, schedule(&problem, 5, &[(0, 0), (14, 1)]));
    let message = "unit `tensor` (capacity 1) is held 2 times at cycle 16 (slot 1): `a` 1, `b` 1";
    rejected(&problem, schedule(&problem, 5, &[(0, 0), (15, 1)]), Resource, &[message]);
    let message = "unit `tensor` (capacity 1) is held 2 times at cycle 13 (slot 3): `a` 1, `b` 1";
    rejected(&problem, schedule(&problem, 5, &[(0, 0), (13, 1)]), Resource, &[message]);
}

#[test]
fn an_operation_does_not_meet_its_own_next_iteration() {
    let problem = problem(
        plain(),
        json!([{"name": "a", "units": [{"unit": "tensor", "cycles": 7}], "execution": "asynchronous"}]),
        json!([]),
    );
    accepted(&problem, schedule(&problem, 7, &[(2, 0)]));
    let message = "unit `tensor` (capacity 1) is held 2 times at cycle 8 (slot 2): `a` 2 in 2 copies";
    rejected(&problem, schedule(&problem, 6, &[(2, 0)]), Resource, &[message]);
    let message = "unit `tensor` (capacity 1) is held 4 times at cycle 8 (slot 0): `a` 4 in 4 copies";
    rejected(&problem, schedule(&problem, 2, &[(2, 0)]), Resource, &[message]);
}

#[test]
fn capacity_is_counted() {
    let problem = two_on_tensor(2);
    accepted(&problem, schedule(&problem, 3, &[(0, 0), (2, 1)]));
    accepted(&problem, schedule(&problem, 3, &[(0, 0), (0, 1)]));
    let message = "unit `tensor` (capacity 2) is held 3 times at cycle 3 (slot 1): `a` 2 in 2 copies, `b` 1";
    rejected(&problem, schedule(&problem, 2, &[(0, 0), (2, 1)]), Resource, &[message]);
}
