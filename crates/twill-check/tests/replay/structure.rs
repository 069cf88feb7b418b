//! A schedule's claims about itself.

use crate::support::{accepted, hopper, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Structure;
use twill_graph::{Cycles, GroupId, GroupRole, Placement, Problem, Schedule};

fn two() -> (Problem, Schedule) {
    let problem = problem(
        hopper(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 4}], "result": {"registers": 128}, "handoff": 3},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b"}]),
    );
    let schedule = schedule(&problem, 8, &[(0, 1), (7, 2)]);
    (problem, schedule)
}

#[test]
fn a_schedule_that_holds_is_accepted() {
    let (problem, schedule) = two();
    accepted(&problem, schedule);
}

#[test]
fn the_interval_is_positive() {
    for interval in [0, -8, i64::MIN] {
        let (problem, mut schedule) = two();
        schedule.interval = Cycles(interval);
        let message = format!("the initiation interval is {interval}; it must be at least 1");
        rejected(&problem, schedule, Structure, &[&message]);
    }
}

#[test]
fn every_operation_is_placed_once() {
    let (problem, mut schedule) = two();
    schedule.placements.pop();
    rejected(&problem, schedule, Structure, &["the schedule places 1 operations; the graph has 2"]);
    let (problem, mut schedule) = two();
    schedule.placements.push(Placement { cycle: Cycles(0), group: GroupId::new(1) });
    rejected(&problem, schedule, Structure, &["the schedule places 3 operations; the graph has 2"]);
}

#[test]
fn no_operation_issues_before_its_iteration() {
    let (problem, mut schedule) = two();
    schedule.placements[0].cycle = Cycles(-1);
    rejected(&problem, schedule, Structure, &["operation `a` issues at cycle -1; an iteration begins at cycle 0"]);
}

#[test]
fn groups_are_of_the_pool() {
    let (problem, mut schedule) = two();
    schedule.placements[1].group = GroupId::new(4);
    rejected(&problem, schedule, Structure, &["operation `b` is on group 4, but the pool has 4 groups"]);
}

#[test]
fn the_length_is_that_of_the_placements() {
    for wrong in [8, 10, i64::MIN] {
        let (problem, mut schedule) = two();
        schedule.length = Cycles(wrong);
        let message = format!("the schedule says that an iteration takes {wrong} cycles; it takes 9");
        rejected(&problem, schedule, Structure, &[&message]);
    }
}

#[test]
fn an_operation_without_cycles_still_takes_a_row() {
    let problem = problem(hopper(), json!([{"name": "nothing"}]), json!([]));
    let mut schedule = schedule(&problem, 1, &[(3, 1)]);
    assert_eq!(schedule.length, Cycles(4));
    accepted(&problem, schedule.clone());
    schedule.length = Cycles(3);
    rejected(&problem, schedule, Structure, &["the schedule says that an iteration takes 3 cycles; it takes 4"]);
}

#[test]
fn groups_in_use_are_listed() {
    let (problem, mut schedule) = two();
    schedule.groups.pop();
    rejected(&problem, schedule, Structure, &["group 2 runs operations, but the schedule does not list it"]);
}

#[test]
fn idle_and_unknown_groups_are_not_listed() {
    for (id, registers) in [(3, 32), (17, 32)] {
        let (problem, mut schedule) = two();
        let mut idle = schedule.groups[0];
        (idle.id, idle.registers_per_thread) = (GroupId::new(id), registers);
        schedule.groups.push(idle);
        let message = format!("the schedule lists group {id}, which runs no operation");
        rejected(&problem, schedule, Structure, &[&message]);
    }
}

#[test]
fn groups_are_listed_in_order_and_once() {
    let (problem, mut schedule) = two();
    schedule.groups.swap(0, 1);
    rejected(&problem, schedule, Structure, &["group 1 is listed twice or out of order"]);
    let (problem, mut schedule) = two();
    schedule.groups.insert(0, schedule.groups[0]);
    rejected(&problem, schedule, Structure, &["group 1 is listed twice or out of order"]);
}

#[test]
fn groups_are_what_the_pool_says() {
    let (problem, mut schedule) = two();
    schedule.groups[0].role = GroupRole::Issue;
    schedule.groups[1].warps = 8;
    let messages = [
        "group 1 is listed as issue with 4 warps; in the pool it is compute with 4",
        "group 2 is listed as compute with 8 warps; in the pool it is compute with 4",
    ];
    rejected(&problem, schedule, Structure, &messages);
}
