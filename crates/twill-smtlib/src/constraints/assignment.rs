//! Every operation runs on exactly one group with enough warps. If there is a variable-latency
//! group, it runs the variable-latency operations and nothing else; if there is an issue group, it
//! runs every other operation that one warp issues, and none that four issue. Assigned by sub-tile, a compute group
//! runs the operations of its own sub-tiles alone.

use crate::model::Model;
use crate::term::{Term, and, not, or};
use twill_graph::{GroupId, GroupRole, Operation, Problem, WarpAssignment};

/// Returns whether a group may run an operation.
fn allowed(problem: &Problem, op: &Operation, id: GroupId) -> bool {
    let group = problem.groups()[id.index()];
    let has = |role| problem.groups().iter().any(|g| g.role == role);
    let on = |role| group.role == role;
    let memory = !has(GroupRole::VariableLatency) || op.variable_latency == on(GroupRole::VariableLatency);
    let issue =
        !has(GroupRole::Issue) || on(GroupRole::VariableLatency) || (op.issue_width == 1) == on(GroupRole::Issue);
    let chosen = problem.options().warp_assignment == WarpAssignment::Free
        || !on(GroupRole::Compute)
        || its_compute_group(problem, op) == Some(id);
    group.warps >= op.issue_width && memory && issue && chosen
}

/// The compute group of an operation's sub-tile: round robin, and an operation without sub-tile goes with sub-tile 0.
fn its_compute_group(problem: &Problem, op: &Operation) -> Option<GroupId> {
    let compute = || problem.group_ids().filter(|w| problem.groups()[w.index()].role == GroupRole::Compute);
    let turn = op.sub_tile.unwrap_or(0) as usize;
    compute().nth(turn % compute().count().max(1))
}

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nassignment: every operation v runs on exactly one warp group w that may run it, warp_v_w.\n\
         apart_a_b: operations a and b run on different groups.",
    );
    let problem = m.problem;
    for (v, op) in problem.graph().op_ids().zip(problem.graph().operations()) {
        let row: Vec<Term> =
            problem.group_ids().map(|w| m.script.declare(format!("warp_{}_{}", v.index(), w.index()))).collect();
        let barred =
            row.iter().zip(problem.group_ids()).filter(|(_, g)| !allowed(problem, op, *g)).map(|(t, _)| not(t));
        let mut terms: Vec<Term> = [or(row.iter().cloned())].into_iter().chain(barred).collect();
        for (i, a) in row.iter().enumerate() {
            terms.extend(row[..i].iter().map(|b| or([not(b), not(a)])));
        }
        m.script.assert(format!("assignment: {}", op.name), terms);
    }
    for b in problem.graph().op_ids() {
        for a in problem.graph().op_ids().take(b.index()) {
            let together = or(problem.group_ids().map(|w| and([m.warp(a, w), m.warp(b, w)])));
            m.script.define(format!("apart_{}_{}", a.index(), b.index()), &not(&together));
        }
    }
}
