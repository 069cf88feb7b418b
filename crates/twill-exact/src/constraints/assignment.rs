//! Every operation runs on one group that may run it: variable-latency operations on their group
//! and nothing else there, single-warp operations on the issue group, the rest on compute groups: any of them, or the
//! one of its sub-tile.

use crate::encoding::Encoding;
use crate::engine::Engine;
use crate::proof_log::Log;
use batsat::Lit;
use twill_graph::proof::{Atom, Reason};
use twill_graph::{Family, GroupId, GroupRole, OpId, Problem, WarpAssignment};

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
    let mut groups: Vec<GroupId> = problem.group_ids().filter(fits).collect();
    if role == GroupRole::Compute && !is_free(problem) && !groups.is_empty() {
        // Compute groups are alike: one fits if all do.
        let sub_tile = problem.graph().operation(op).sub_tile.unwrap_or(0) as usize;
        groups = vec![groups[sub_tile % groups.len()]];
    }
    groups
}

/// Returns whether compute groups are interchangeable.
pub(crate) fn is_free(problem: &Problem) -> bool {
    problem.options().warp_assignment == WarpAssignment::Free
}

pub(super) fn encode(e: &mut Encoding) {
    let problem = e.problem;
    let common = e.common.clone();
    for op in problem.graph().op_ids() {
        let tied = common.as_ref().and_then(|c| c.rows[op.index()].clone());
        let anywhere = || problem.group_ids().collect();
        let groups = if e.has(Family::Assignment) { candidates(problem, op) } else { anywhere() };
        let row = tied.unwrap_or_else(|| choice(&mut e.engine, op, &groups, problem.groups().len()));
        e.assigned.push(row);
    }
    e.used = match &common {
        Some(common) => common.used.clone(),
        None => problem.group_ids().map(|group| e.engine.fresh(|| Atom::Used { group })).collect(),
    };
    for row in 0..e.assigned.len() {
        for group in 0..e.used.len() {
            let (runs, used) = (e.assigned[row][group], e.used[group]);
            e.engine.clause([!runs, used], Log::definition(used));
        }
    }
    if common.is_none() {
        let rows = e.assigned.clone();
        order_groups(e, &rows);
    }
}

/// Literals for "it runs on group `w` of the pool", exactly one of which holds.
pub(crate) fn choice(engine: &mut Engine, op: OpId, groups: &[GroupId], pool: usize) -> Vec<Lit> {
    let (yes, no) = (engine.constant(true), engine.constant(false));
    let mut row = vec![no; pool];
    for group in groups {
        row[group.index()] = match groups.len() {
            1 => yes,
            _ => engine.fresh(|| Atom::OnGroup { op, group: *group }),
        };
    }
    engine.clause(row.iter().copied(), Reason::SomeGroup { op });
    for (i, &a) in row.iter().enumerate() {
        for &b in &row[..i] {
            engine.clause([!a, !b], Reason::OneGroup { op });
        }
    }
    row
}

/// Compute groups are interchangeable: an operation may open one only after an earlier operation
/// opened the one before. `rows`: all operations that run on them.
pub(crate) fn order_groups(e: &mut Encoding, rows: &[Vec<Lit>]) {
    if !is_free(e.problem) {
        return;
    }
    let groups = e.compute_groups();
    let no = e.engine.constant(false);
    for pair in groups.windows(2) {
        let (before, group) = (pair[0].index(), pair[1].index());
        let mut opened: Vec<Lit> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let runs = row[group];
            if runs != no {
                // Without common groups the rows are those of the operations.
                let reason = Reason::GroupOrder { op: OpId::new(at), group: pair[1] };
                e.engine.clause(opened.iter().copied().chain([!runs]), reason);
            }
            opened.push(row[before]);
        }
        let (used, used_before) = (e.used[group], e.used[before]);
        e.engine.clause([!used, used_before], Reason::UsedOrder { group: pair[1] });
    }
}
