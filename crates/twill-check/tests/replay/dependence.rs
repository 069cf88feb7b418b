//! `dependence`

use crate::support::{accepted, hopper, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Dependence;
use twill_graph::Problem;

fn recurrence() -> Problem {
    problem(
        hopper(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 4}], "result": {"registers": 128}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}], "result": {"registers": 128}}
        ]),
        json!([{"from": "a", "to": "b"}, {"from": "b", "to": "a", "distance": 2}]),
    )
}

#[test]
fn a_consumer_waits_for_its_producer() {
    let problem = recurrence();
    accepted(&problem, schedule(&problem, 6, &[(0, 1), (4, 1)]));
    let message = "`b` issues at cycle 3; `a` at cycle 0 (distance 0) allows cycle 4 at the earliest";
    // One cycle too early, on the other group's time: nothing but the dependence is broken.
    let mut early = schedule(&problem, 9, &[(0, 1), (3, 1)]);
    early.length = twill_graph::Cycles(5);
    let rejection = twill_check::verify(&problem, early).unwrap_err();
    assert_eq!(rejection.violations[0].to_string(), message);
    assert_eq!(rejection.violations[0].constraint(), Dependence);
}

#[test]
fn a_carried_value_arrives_iterations_later() {
    let problem = recurrence();
    // b of iteration 0 at 22, a of iteration 2 at 24.
    accepted(&problem, schedule(&problem, 12, &[(0, 1), (22, 1)]));
    // At 23 its result is there at 25, one cycle after a of iteration 2 issues.
    let message = "`a` issues at cycle 24; `b` at cycle 23 (distance 2) allows cycle 25 at the earliest";
    let late = schedule(&problem, 12, &[(0, 2), (23, 2)]);
    let rejection = twill_check::verify(&problem, late).unwrap_err();
    assert_eq!(rejection.violations[0].to_string(), message);
}

#[test]
fn an_order_without_value_is_an_order() {
    let problem = problem(
        hopper(),
        json!([{"name": "a", "units": [{"unit": "alu", "cycles": 1}]}, {"name": "b", "units": [{"unit": "fma", "cycles": 1}]}]),
        json!([{"from": "a", "to": "b", "delay": 40}]),
    );
    accepted(&problem, schedule(&problem, 7, &[(0, 1), (40, 2)]));
    let message = "`b` issues at cycle 39; `a` at cycle 0 (distance 0) allows cycle 40 at the earliest";
    rejected(&problem, schedule(&problem, 7, &[(0, 1), (39, 2)]), Dependence, &[message]);
}
