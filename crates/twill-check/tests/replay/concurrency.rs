//! `concurrency`

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Concurrency;
use twill_graph::{ConcurrencyWindow, ModelOptions, Problem};

/// `use` waits for the tensor core; `work` is in the way while it runs.
fn waiting(work: &str) -> Problem {
    problem(
        plain(),
        json!([
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 8}], "execution": "asynchronous", "result": {"registers": 128}},
            {"name": "use", "result": {"registers": 128}},
            {"name": "work", "units": [{"unit": "fma", "cycles": 4}], "execution": work}
        ]),
        json!([{"from": "dot", "to": "use"}]),
    )
}

fn message(stalled: &str, at: &str) -> String {
    format!("`use` waits on group 0 at {at} while `{stalled}` keeps the group from waiting")
}

#[test]
fn no_wait_while_another_operation_is_executed() {
    let problem = waiting("synchronous");
    accepted(&problem, schedule(&problem, 16, &[(0, 0), (8, 0), (4, 0)]));
    accepted(&problem, schedule(&problem, 16, &[(0, 0), (8, 0), (9, 0)]));
    // The wait comes first only if it is another cycle: work issued in the same one is stalled.
    for work in [5, 7, 8] {
        let broken = schedule(&problem, 16, &[(0, 0), (8, 0), (work, 0)]);
        rejected(&problem, broken, Concurrency, &[&message("work", "cycle 8 (slot 8)")]);
        accepted(&problem, schedule(&problem, 16, &[(0, 0), (8, 0), (work, 1)]));
    }
}

#[test]
fn iterations_meet() {
    let problem = waiting("synchronous");
    // The wait of iteration 0 at 21 is in the window of work of iteration 2, [20, 24).
    accepted(&problem, schedule(&problem, 8, &[(0, 0), (25, 0), (3, 0)]));
    let broken = schedule(&problem, 8, &[(0, 0), (21, 0), (4, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("work", "cycle 21 (slot 5)")]);
    // Its window wraps around the interval: [6, 10) contains 9 = 1 mod 8.
    let broken = schedule(&problem, 8, &[(0, 0), (9, 0), (6, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("work", "cycle 9 (slot 1)")]);
}

#[test]
fn an_asynchronous_operation_is_in_the_way_for_one_cycle() {
    let problem = waiting("asynchronous");
    accepted(&problem, schedule(&problem, 16, &[(0, 0), (8, 0), (7, 0)]));
    let broken = schedule(&problem, 16, &[(0, 0), (8, 0), (8, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("work", "cycle 8 (slot 8)")]);
    // The producer itself issues in slot 0, when the wait of the iteration before is due.
    let broken = schedule(&problem, 16, &[(0, 0), (16, 0), (4, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("dot", "cycle 16 (slot 0)")]);
}

#[test]
fn literally_for_all_its_cycles() {
    let literal = ModelOptions { concurrency_window: ConcurrencyWindow::Literal, ..ModelOptions::default() };
    let problem = waiting("asynchronous").with_options(literal);
    accepted(&problem, schedule(&problem, 16, &[(0, 0), (8, 0), (4, 0)]));
    let broken = schedule(&problem, 16, &[(0, 0), (8, 0), (7, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("work", "cycle 8 (slot 8)")]);
    let broken = schedule(&problem, 16, &[(0, 0), (23, 0), (10, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("dot", "cycle 23 (slot 7)")]);
}

#[test]
fn a_register_value_of_another_group_is_waited_for() {
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 4}], "result": {"registers": 128}},
            {"name": "use"},
            {"name": "work", "units": [{"unit": "fma", "cycles": 4}]}
        ]),
        json!([{"from": "a", "to": "use"}]),
    );
    // On its own group nothing is waited for.
    let mut same = schedule(&problem, 8, &[(0, 0), (4, 0), (4, 0)]);
    accepted(&problem, same.clone());
    same = schedule(&problem, 8, &[(0, 1), (4, 0), (3, 0)]);
    rejected(&problem, same, Concurrency, &[&message("work", "cycle 4 (slot 4)")]);
}

#[test]
fn an_accumulator_does_not_wait_for_itself() {
    let problem = problem(
        plain(),
        json!([
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 8}], "execution": "asynchronous", "result": {"registers": 128}},
            {"name": "work", "units": [{"unit": "fma", "cycles": 4}]}
        ]),
        json!([{"from": "dot", "to": "dot", "distance": 1, "tied": true}]),
    );
    accepted(&problem, schedule(&problem, 8, &[(2, 0), (0, 0)]));
}

#[test]
fn a_window_longer_than_the_interval_is_always_open() {
    let problem =
        waiting("synchronous").with_options(ModelOptions { exclusive_issue: false, ..ModelOptions::default() });
    let mut machine = problem.resources().clone();
    machine.units[2].capacity = 4;
    let graph = problem.graph().map(|op| op.reservations.retain(|r| r.unit == "fma"), |_| ()).unwrap();
    let problem = Problem::new(graph, machine, *problem.options()).unwrap();
    let broken = schedule(&problem, 3, &[(0, 0), (8, 0), (0, 0)]);
    rejected(&problem, broken, Concurrency, &[&message("work", "cycle 8 (slot 2)")]);
}
