//! `assignment`

use crate::support::{accepted, blackwell, hopper, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Assignment;
use twill_graph::{ModelOptions, Problem, Resources, WarpAssignment};

/// A load, a tensor operation that one warp issues, a vector operation.
fn three(machine: Resources) -> Problem {
    problem(
        machine,
        json!([
            {"name": "load", "units": [{"unit": "tma", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
             "variable_latency": true},
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 4}], "execution": "asynchronous", "issue_width": 1},
            {"name": "add", "units": [{"unit": "fma", "cycles": 4}]}
        ]),
        json!([]),
    )
}

#[test]
fn every_operation_where_it_belongs() {
    let blackwell = three(blackwell());
    accepted(&blackwell, schedule(&blackwell, 4, &[(0, 0), (0, 1), (0, 2)]));
    let hopper = three(hopper());
    accepted(&hopper, schedule(&hopper, 4, &[(0, 0), (0, 1), (0, 3)]));
    let plain = three(plain());
    accepted(&plain, schedule(&plain, 4, &[(0, 0), (0, 0), (0, 0)]));
}

#[test]
fn loads_and_only_loads_on_the_variable_latency_group() {
    let problem = three(hopper());
    let message = "operation `load` is on group 1 (compute); it is of variable latency, and those are exactly what the variable-latency group runs";
    rejected(&problem, schedule(&problem, 4, &[(0, 1), (0, 1), (0, 3)]), Assignment, &[message]);
    let message = "operation `dot` is on group 0 (variable latency); it is not of variable latency, and those are exactly what the variable-latency group runs";
    rejected(&problem, schedule(&problem, 4, &[(0, 0), (0, 0), (0, 3)]), Assignment, &[message]);
}

#[test]
fn single_warp_operations_and_only_those_on_the_issue_group() {
    let problem = three(blackwell());
    let message =
        "operation `dot` (issue width 1) is on group 2 (compute); the issue group runs exactly what one warp issues";
    rejected(&problem, schedule(&problem, 4, &[(0, 0), (0, 2), (0, 2)]), Assignment, &[message]);
    let messages = [
        "operation `add` is issued by 4 warps together; group 1 has 1",
        "operation `add` (issue width 4) is on group 1 (issue); the issue group runs exactly what one warp issues",
    ];
    rejected(&problem, schedule(&problem, 4, &[(0, 0), (0, 1), (0, 1)]), Assignment, &messages);
    // Width alone does not let a warp group's work onto a wide issue group.
    let mut wide = blackwell();
    wide.issue_group.as_mut().unwrap().warps = 4;
    let problem = three(wide);
    rejected(&problem, schedule(&problem, 4, &[(0, 0), (0, 1), (0, 1)]), Assignment, &messages[1..]);
}

#[test]
fn loads_stay_off_the_issue_group() {
    let problem = three(blackwell());
    let message = "operation `load` is on group 1 (issue); it is of variable latency, and those are exactly what the variable-latency group runs";
    rejected(&problem, schedule(&problem, 4, &[(0, 1), (0, 1), (0, 2)]), Assignment, &[message]);
}

#[test]
fn a_group_is_wide_enough() {
    let mut machine = plain();
    machine.compute_groups.warps = 2;
    let problem = three(machine);
    let message = "operation `add` is issued by 4 warps together; group 2 has 2";
    rejected(&problem, schedule(&problem, 4, &[(0, 0), (0, 1), (0, 2)]), Assignment, &[message]);
    let wide_load = self::problem(
        hopper(),
        json!([{"name": "load", "units": [{"unit": "tma", "cycles": 1}], "variable_latency": true}]),
        json!([]),
    );
    let message = "operation `load` is issued by 4 warps together; group 0 has 1";
    rejected(&wide_load, schedule(&wide_load, 4, &[(0, 0)]), Assignment, &[message]);
}

#[test]
fn assigned_by_sub_tile_each_has_its_group() {
    let op = |name: &str, unit: &str| json!({"name": name, "units": [{"unit": unit, "cycles": 1}]});
    let of = |sub_tile: u32, mut op: serde_json::Value| {
        op["sub_tile"] = sub_tile.into();
        op
    };
    // Three compute groups, 1 to 3, for sub-tiles 0, 1 and 4.
    let operations =
        json!([op("none", "xu"), of(0, op("zero", "fma")), of(1, op("one", "alu")), of(4, op("four", "tensor"))]);
    let free = problem(hopper(), operations, json!([]));
    let fixed = free.with_options(ModelOptions { warp_assignment: WarpAssignment::BySubTile, ..*free.options() });
    accepted(&fixed, schedule(&fixed, 4, &[(0, 1), (1, 1), (0, 2), (1, 2)]));
    let elsewhere = schedule(&fixed, 4, &[(0, 2), (1, 1), (0, 1), (1, 2)]);
    accepted(&free, elsewhere.clone());
    let messages = [
        "operation `none` (of no sub-tile) is on group 2; assigned by sub-tile it runs on group 1",
        "operation `one` (sub-tile 1) is on group 1; assigned by sub-tile it runs on group 2",
    ];
    rejected(&fixed, elsewhere, Assignment, &messages);
}
