//! `handoff`

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Handoff;
use twill_graph::{ModelOptions, Problem};

fn pair(distance: u32) -> Problem {
    problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 4}], "result": {"registers": 128}, "handoff": 3},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b", "delay": 5, "distance": distance}]),
    )
}

#[test]
fn passing_to_another_group_takes_time() {
    let problem = pair(0);
    accepted(&problem, schedule(&problem, 10, &[(0, 0), (8, 1)]));
    accepted(&problem, schedule(&problem, 10, &[(0, 0), (5, 0)]));
    let early = |cycle: i64| {
        format!(
            "`b` on group 1 issues at cycle {cycle}; `a` on group 0 at cycle 0 and the handoff allow cycle 8 at the earliest"
        )
    };
    for cycle in [7, 5] {
        rejected(&problem, schedule(&problem, 10, &[(0, 0), (cycle, 1)]), Handoff, &[&early(cycle)]);
    }
}

#[test]
fn a_carried_register_value_stays_on_its_group() {
    let problem = pair(1);
    accepted(&problem, schedule(&problem, 10, &[(0, 0), (4, 0)]));
    let message = "`b` on group 1 reads `a` (distance 1) from the registers of group 0; a carried register value stays on its group";
    rejected(&problem, schedule(&problem, 10, &[(0, 0), (9, 1)]), Handoff, &[message]);
}

#[test]
fn values_in_memory_and_orders_pass_freely() {
    let ops = |result| {
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 4}], "result": result, "handoff": 3},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]}
        ])
    };
    let shared = problem(plain(), ops(json!({"shared_memory": 64})), json!([{"from": "a", "to": "b", "distance": 1}]));
    accepted(&shared, schedule(&shared, 10, &[(6, 0), (0, 1)]));
    let order = problem(
        plain(),
        ops(json!({"registers": 64})),
        json!([{"from": "a", "to": "b", "value": false, "distance": 1}]),
    );
    accepted(&order, schedule(&order, 10, &[(6, 0), (0, 1)]));
}

#[test]
fn a_problem_may_forbid_it() {
    let problem = pair(0).with_options(ModelOptions { cross_group_registers: false, ..ModelOptions::default() });
    accepted(&problem, schedule(&problem, 10, &[(0, 0), (5, 0)]));
    let message =
        "`b` on group 1 reads `a` from the registers of group 0, and the problem has `cross_group_registers` off";
    rejected(&problem, schedule(&problem, 10, &[(0, 0), (8, 1)]), Handoff, &[message]);
}
