//! `exclusive`

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Exclusive;
use twill_graph::{ModelOptions, Problem};

/// On different units, so that only the group is in the way.
fn two(execution: &str) -> Problem {
    problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 5}]},
            {"name": "b", "units": [{"unit": "fma", "cycles": 3}], "execution": execution}
        ]),
        json!([]),
    )
}

#[test]
fn one_synchronous_operation_at_a_time() {
    let problem = two("synchronous");
    accepted(&problem, schedule(&problem, 8, &[(0, 0), (5, 0)]));
    accepted(&problem, schedule(&problem, 8, &[(0, 0), (4, 1)]));
    let broken = schedule(&problem, 9, &[(0, 0), (4, 0)]);
    rejected(&problem, broken, Exclusive, &["`a` and `b` are both executed by group 0 at cycle 4 (slot 4)"]);
    let relaxed = problem.with_options(ModelOptions { exclusive_issue: false, ..ModelOptions::default() });
    accepted(&relaxed, schedule(&problem, 9, &[(0, 0), (4, 0)]));
}

#[test]
fn of_whichever_iteration() {
    let problem = two("synchronous");
    accepted(&problem, schedule(&problem, 8, &[(0, 0), (29, 0)]));
    // [6, 9) of iteration 0 wraps into the a of iteration 1 at 8.
    let broken = schedule(&problem, 8, &[(0, 0), (6, 0)]);
    rejected(&problem, broken, Exclusive, &["`b` and `a` are both executed by group 0 at cycle 8 (slot 0)"]);
    // b of iteration 0 at 30 overlaps a of iteration 4 at 32: only in the steady state.
    let broken = schedule(&problem, 8, &[(0, 0), (30, 0)]);
    rejected(&problem, broken, Exclusive, &["`b` and `a` are both executed by group 0 at cycle 32 (slot 0)"]);
}

#[test]
fn an_operation_does_not_overlap_itself() {
    let mut machine = plain();
    machine.units[3].capacity = 2;
    let problem = problem(machine, json!([{"name": "a", "units": [{"unit": "alu", "cycles": 5}]}]), json!([]));
    accepted(&problem, schedule(&problem, 5, &[(7, 2)]));
    let broken = schedule(&problem, 4, &[(7, 2)]);
    rejected(&problem, broken, Exclusive, &["`a` and `a` are both executed by group 2 at cycle 11 (slot 3)"]);
}

#[test]
fn nor_does_one_that_lasts_hundreds_of_intervals() {
    for cycles in [1000, 1001, 1009, 1010] {
        let problem = problem(plain(), json!([{"name": "a", "cycles": cycles}]), json!([]));
        let broken = schedule(&problem, 10, &[(7, 2)]);
        rejected(&problem, broken, Exclusive, &["`a` and `a` are both executed by group 2 at slot 7"]);
        accepted(&problem, schedule(&problem, cycles, &[(7, 2)]));
    }
}

#[test]
fn asynchronous_operations_do_not_take_the_group() {
    let problem = two("asynchronous");
    accepted(&problem, schedule(&problem, 8, &[(0, 0), (4, 0)]));
}

#[test]
fn everyone_in_the_way_is_named() {
    let problem = problem(
        plain(),
        json!([
            {"name": "long", "units": [{"unit": "alu", "cycles": 10}]},
            {"name": "b", "units": [{"unit": "fma", "cycles": 1}]},
            {"name": "c", "units": [{"unit": "fma", "cycles": 1}]}
        ]),
        json!([]),
    );
    let messages = [
        "`long` and `b` are both executed by group 0 at cycle 2 (slot 2)",
        "`long` and `c` are both executed by group 0 at cycle 5 (slot 5)",
    ];
    rejected(&problem, schedule(&problem, 12, &[(0, 0), (2, 0), (5, 0)]), Exclusive, &messages);
}

#[test]
fn of_two_that_end_together_the_first_is_in_the_way() {
    let each = |name: &str, unit: &str| json!({"name": name, "units": [{"unit": unit, "cycles": 5}]});
    let problem = problem(plain(), json!([each("a", "alu"), each("b", "fma"), each("c", "xu")]), json!([]));
    let broken = schedule(&problem, 20, &[(0, 0), (0, 0), (4, 0)]);
    let messages = [
        "`a` and `b` are both executed by group 0 at cycle 0 (slot 0)",
        "`a` and `c` are both executed by group 0 at cycle 4 (slot 4)",
    ];
    rejected(&problem, broken, Exclusive, &messages);
}
