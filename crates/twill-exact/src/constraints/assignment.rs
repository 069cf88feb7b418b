//! Every operation runs on one group that may run it: variable-latency operations on their group
//! and nothing else there, single-warp operations on the issue group, the rest on compute groups.

use crate::encoding::Encoding;
use crate::proof_log::Log;
use batsat::Lit;
use twill_graph::proof::{Atom, Reason};
use twill_graph::{GroupId, GroupRole, OpId, Problem};

/// The role of the groups that may run an operation.
pub(crate) fn role(problem: &Problem, op: OpId) -> GroupRole {
    let operation = problem.graph().operation(op);
    let has = |role| problem.groups().iter().any(|g| g.role == role);
    if operation.variable_latency && has(GroupRole::VariableLatency) {
        GroupRole::VariableLatency
    } else if operation.issue_width == 1 && has(GroupRole::Issue) {
        GroupRole::Issue
    } else {
        GroupRole::Compute
    }
}

/// The groups that may run an operation.
pub(crate) fn candidates(problem: &Problem, op: OpId) -> Vec<GroupId> {
    let (role, width) = (role(problem, op), problem.graph().operation(op).issue_width);
    let fits = |id: &GroupId| {
        let group = problem.groups()[id.index()];
        group.role == role && group.warps >= width
    };
    problem.group_ids().filter(fits).collect()
}

pub(super) fn encode(e: &mut Encoding) {
    let problem = e.problem;
    let (yes, no) = (e.engine.constant(true), e.engine.constant(false));
    for op in problem.graph().op_ids() {
        let groups = candidates(problem, op);
        let mut row = vec![no; problem.groups().len()];
        for group in &groups {
            row[group.index()] = match groups.len() {
                1 => yes,
                _ => e.engine.fresh(|| Atom::OnGroup { op, group: *group }),
            };
        }
        e.engine.clause(row.iter().copied(), Reason::SomeGroup { op });
        for (i, &a) in row.iter().enumerate() {
            for &b in &row[..i] {
                e.engine.clause([!a, !b], Reason::OneGroup { op });
            }
        }
        e.assigned.push(row);
    }
    e.used = problem.group_ids().map(|group| e.engine.fresh(|| Atom::Used { group })).collect();
    for row in 0..e.assigned.len() {
        for group in 0..e.used.len() {
            let (runs, used) = (e.assigned[row][group], e.used[group]);
            e.engine.clause([!runs, used], Log::definition(used));
        }
    }
    order_groups(e);
}

/// Compute groups are interchangeable: an operation may open one only after an earlier operation
/// opened the one before.
fn order_groups(e: &mut Encoding) {
    let groups = e.compute_groups();
    let no = e.engine.constant(false);
    for pair in groups.windows(2) {
        let (before, group) = (pair[0].index(), pair[1].index());
        let mut opened: Vec<Lit> = Vec::new();
        for row in 0..e.assigned.len() {
            let runs = e.assigned[row][group];
            if runs != no {
                let reason = Reason::GroupOrder { op: OpId::new(row), group: pair[1] };
                e.engine.clause(opened.iter().copied().chain([!runs]), reason);
            }
            opened.push(e.assigned[row][before]);
        }
        let (used, used_before) = (e.used[group], e.used[before]);
        e.engine.clause([!used, used_before], Reason::UsedOrder { group: pair[1] });
    }
}
