//! `assignment`: every operation is on a group that may run it.
//!
//! - the group has at least as many warps as issue the operation together;
//! - where there is a variable-latency group, it runs the operations of variable latency and
//!   nothing else;
//! - where there is an issue group, it runs what one warp issues and the variable-latency group
//!   does not run, and nothing else;
//! - option *by sub-tile*: what compute groups run of sub-tile `s` is on the `s mod k`-th of the `k`, what is of
//!   no sub-tile on the first.

use crate::Violation;
use crate::placed::Placed;
use crate::rejected::Violations;
use twill_graph::{GroupId, GroupRole, WarpAssignment};

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let resources = placed.problem.resources();
    for (op, operation) in placed.operations() {
        let group = placed.group(op);
        let member = placed.problem.groups()[group.index()];
        let name = || operation.name.clone();
        if member.warps < operation.issue_width {
            violations.push(Violation::AssignmentWidth {
                operation: name(),
                group,
                required: operation.issue_width,
                available: member.warps,
            });
        }
        let belongs_to_loads = resources.variable_latency_group.is_some() && operation.variable_latency;
        if belongs_to_loads != (member.role == GroupRole::VariableLatency) {
            violations.push(Violation::AssignmentVariableLatency {
                operation: name(),
                group,
                given: member.role,
                variable_latency: operation.variable_latency,
            });
        } else if !belongs_to_loads
            && resources.issue_group.is_some()
            && (operation.issue_width == 1) != (member.role == GroupRole::Issue)
        {
            let width = operation.issue_width;
            violations.push(Violation::AssignmentIssue { operation: name(), group, given: member.role, width });
        } else if member.role == GroupRole::Compute
            && placed.problem.options().warp_assignment == WarpAssignment::BySubTile
        {
            let pool = placed.problem.group_ids().zip(placed.problem.groups());
            let compute: Vec<GroupId> = pool.filter(|(_, g)| g.role == GroupRole::Compute).map(|(id, _)| id).collect();
            let required = compute[operation.sub_tile.unwrap_or(0) as usize % compute.len()];
            if group != required {
                let sub_tile = operation.sub_tile;
                violations.push(Violation::AssignmentSubTile { operation: name(), group, sub_tile, required });
            }
        }
    }
}
