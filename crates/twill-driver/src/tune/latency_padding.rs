//! Of schedules with the same interval, one whose groups start their MMAs together.
//!
//! The tensor core takes MMAs in the order in which they are started, and runs one while a group computes with the
//! result of another. What a group computes between the MMAs that it starts keeps the tensor core waiting: on an H200,
//! attention forward with head dimension 64 takes 6.53 M cycles where QKᵀ and PV start one after the other, and 7.14 M where
//! a row sum stands between them, both at I = 1584 (`bench/results/variants.md`).
//!
//! Such schedules are found by asking for more than the machine does: that results of the tensor core may come later. What is
//! feasible then is feasible on the machine, and no interval gets shorter by it, so the proof of the interval stands.

use crate::{LoopProblem, Loops};
use twill_graph::{Cycles, GroupId, OpId, Operation, Problem, Schedule};

/// Cycles of an iteration that groups compute between MMAs that could start one after the other.
pub(super) fn between(problem: &Problem, schedule: &Schedule) -> i64 {
    problem.group_ids().map(|group| between_of(problem, schedule, group)).sum()
}

/// All gaps between a group's MMAs but the longest, which is where their results are computed with.
fn between_of(problem: &Problem, schedule: &Schedule, group: GroupId) -> i64 {
    let graph = problem.graph();
    let own = || graph.op_ids().filter(|op| schedule.placement(*op).group == group);
    let slot = |op: OpId| schedule.slot(op).0;
    let mut mmas: Vec<i64> = own().filter(|op| is_mma(graph.operation(*op))).map(slot).collect();
    mmas.sort_unstable();
    let Some((&first, &last)) = mmas.first().zip(mmas.last()) else { return 0 };
    let work = |from: i64, to: i64| -> i64 {
        let inside = own().filter(|op| graph.operation(*op).is_synchronous() && (from..to).contains(&slot(*op)));
        inside.map(|op| graph.operation(op).occupancy.0).sum()
    };
    let around = work(last, i64::MAX) + work(i64::MIN, first);
    let gaps: Vec<i64> = mmas.windows(2).map(|pair| work(pair[0], pair[1])).chain([around]).collect();
    gaps.iter().sum::<i64>() - gaps.iter().max().copied().unwrap_or(0)
}

/// Whether warps start it and the tensor core runs it. What copies takes a time that nobody knows.
pub(super) fn is_mma(operation: &Operation) -> bool {
    !operation.is_synchronous() && !operation.variable_latency && !operation.streaming
}

/// The same loops on a machine whose tensor core gives its results later; `None` where the model does not take so long times.
pub(super) fn later(problems: &Loops<LoopProblem>, by: Cycles) -> Option<Loops<LoopProblem>> {
    let mut problems = problems.clone();
    for one in &mut problems.loops {
        one.problem = later_problem(&one.problem, by)?;
        one.rolled = None;
    }
    Some(problems)
}

fn later_problem(problem: &Problem, by: Cycles) -> Option<Problem> {
    let graph = problem.graph();
    let latency = |op: OpId| Some(graph.operation(op)).filter(|o| is_mma(o)).map(|o| o.latency);
    let graph = graph.map(
        |operation| {
            if is_mma(operation) {
                operation.latency += by;
            }
        },
        |dependence| {
            if latency(dependence.from) == Some(dependence.delay) {
                dependence.delay += by;
            }
            if latency(dependence.to) == Some(dependence.hold) {
                dependence.hold += by;
            }
        },
    );
    Problem::new(graph.ok()?, problem.resources().clone(), *problem.options()).ok()
}
