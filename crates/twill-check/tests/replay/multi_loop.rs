//! Several loops: the resources that they share.

use crate::support::{hopper, problem, schedule, schedule_with};
use serde_json::json;
use twill_check::verify_multi_loop;
use twill_graph::{
    GroupId, LoopOperation, MultiLoopProblem, OpId, Problem, Resources, Schedule, Tie, TieReason, WarpGroup,
};

/// A load and an exponential.
fn one_loop(machine: Resources, name: &str) -> Problem {
    let load = json!({"name": "load", "units": [{"unit": "tma", "cycles": 2}], "cycles": 2, "variable_latency": true,
                      "streaming": true, "execution": "asynchronous", "issue_width": 1});
    let problem = problem(
        machine,
        json!([load, {"name": "exp", "units": [{"unit": "xu", "cycles": 5}]}]),
        json!([{"from": "load", "to": "exp", "delay": 2}]),
    );
    let mut file = twill_graph::format::GraphFile::from_graph(problem.graph());
    name.clone_into(&mut file.name);
    Problem::new(file.graph().unwrap(), problem.resources().clone(), *problem.options()).unwrap()
}

fn tied(machine: Resources, reason: TieReason) -> MultiLoopProblem {
    let loops = vec![one_loop(machine.clone(), "first"), one_loop(machine, "second")];
    let exponential = |index| LoopOperation { index, op: OpId::new(1) };
    let ties = vec![Tie { reason, operations: vec![exponential(0), exponential(1)] }];
    MultiLoopProblem::new("both", loops, vec![1, 1], ties).unwrap()
}

/// Schedules with the exponentials on these groups, and the groups that they use.
fn on(kernel: &MultiLoopProblem, groups: [usize; 2]) -> (Vec<WarpGroup>, Vec<Schedule>) {
    let schedules: Vec<Schedule> =
        kernel.loops().iter().zip(groups).map(|(one, group)| schedule(one, 8, &[(0, 0), (2, group)])).collect();
    let mut used: Vec<WarpGroup> = schedules.iter().flat_map(|s| s.groups.clone()).collect();
    used.sort_by_key(|group| group.id);
    used.dedup();
    (used, schedules)
}

fn said(kernel: &MultiLoopProblem, groups: &[WarpGroup], schedules: &[Schedule]) -> Result<usize, String> {
    let sealed = verify_multi_loop(kernel, groups, schedules.to_vec());
    sealed.map(|sealed| sealed.len()).map_err(|rejected| rejected.to_string())
}

fn apart(lines: &str) -> Result<usize, String> {
    Err(format!("the loops do not go together:\n  {lines}"))
}

#[test]
fn tied_operations_share_a_group() {
    let kernel = tied(hopper(), TieReason::Carried);
    let (groups, schedules) = on(&kernel, [1, 1]);
    assert_eq!(said(&kernel, &groups, &schedules), Ok(2));
    let (groups, schedules) = on(&kernel, [1, 2]);
    let tie = "`exp` of first runs on group 1, `exp` of second on group 2; they are tied";
    let carried = format!("{tie} (one loop hands the value on to the other)");
    assert_eq!(said(&kernel, &groups, &schedules), apart(&carried));
    let same = format!("{tie} (they are one operation of the source)");
    assert_eq!(said(&tied(hopper(), TieReason::Corresponding), &groups, &schedules), apart(&same));
}

#[test]
fn every_loop_has_a_schedule_that_holds() {
    let kernel = tied(hopper(), TieReason::Carried);
    let (groups, schedules) = on(&kernel, [1, 1]);
    assert_eq!(said(&kernel, &groups, &schedules[..1]), apart("1 schedules for 2 loops"));
    // Shared resources are checked when each loop holds by itself.
    let (groups, mut schedules) = on(&kernel, [1, 2]);
    schedules[1].placements[1].cycle = twill_graph::Cycles(1);
    schedules[1].length = twill_graph::Cycles(6);
    let rejected = said(&kernel, &groups, &schedules).unwrap_err();
    assert!(rejected.starts_with("second: ") && rejected.contains("allows cycle 2 at the earliest"), "{rejected}");
    assert!(!rejected.contains("together"), "{rejected}");
}

#[test]
fn groups_are_listed_once_in_order_and_alike() {
    let kernel = tied(hopper(), TieReason::Carried);
    let (groups, schedules) = on(&kernel, [1, 1]);
    let change = |change: &dyn Fn(&mut Vec<WarpGroup>)| {
        let mut groups = groups.clone();
        change(&mut groups);
        said(&kernel, &groups, &schedules)
    };
    assert_eq!(change(&|groups| groups.swap(0, 1)), apart("group 0 is listed out of order or twice"));
    assert_eq!(change(&|groups| groups.push(groups[1])), apart("group 1 is listed out of order or twice"));
    let idle = |groups: &mut Vec<WarpGroup>| groups.push(WarpGroup { id: GroupId::new(2), ..groups[1] });
    assert_eq!(change(&idle), apart("group 2 is listed, and no loop uses it"));
    let unlisted = "first uses group 1, which is not among the common groups\n  \
                    second uses group 1, which is not among the common groups";
    assert_eq!(change(&|groups| groups.truncate(1)), apart(unlisted));
    let differs = |graph: &str| {
        format!(
            "group 1: {graph} has it as compute with 4 warps and 128 registers a thread, the kernel as compute with 4 and 120"
        )
    };
    let both = format!("{}\n  {}", differs("first"), differs("second"));
    assert_eq!(change(&|groups| groups[1].registers_per_thread = 120), apart(&both));
}

#[test]
fn all_groups_together_fit_the_register_file() {
    // Two loops, a compute group each: 32 · (4 · 24 + 4 · 128 + 4 · 128).
    let with = |words: u64| {
        let mut machine = hopper();
        machine.registers.words = words;
        let loops = vec![one_loop(machine.clone(), "first"), one_loop(machine, "second")];
        let kernel = MultiLoopProblem::new("both", loops, vec![1, 1], Vec::new()).unwrap();
        let (groups, schedules) = on(&kernel, [1, 2]);
        said(&kernel, &groups, &schedules)
    };
    assert_eq!(with(35_840), Ok(2));
    let over = "the common groups are given 35840 registers; the register file has 35839";
    assert_eq!(with(35_839), apart(over));
    // Registers differ by what a loop asks, not by how many loops ask.
    let kernel = tied(hopper(), TieReason::Carried);
    let schedules: Vec<Schedule> =
        kernel.loops().iter().map(|one| schedule_with(one, 8, &[(0, 0), (2, 3)], 160)).collect();
    assert_eq!(said(&kernel, &schedules[0].groups, &schedules), Ok(2));
}
