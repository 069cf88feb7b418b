//! Differences between schedules.

use super::normalized::{NormalizedSchedule, Scope};
use std::cmp::Reverse;
use twill_graph::{Cycles, GroupId, OpId, Problem, Schedule};

/// In what a schedule differs from another one of the same problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An operation runs on another group.
    Group {
        /// The operation.
        operation: OpId,
        /// Its group now.
        group: GroupId,
    },
    /// Two operations of one group or unit issue in another order.
    Order {
        /// Issues first now: its copy `i` ...
        earlier: OpId,
        /// ... before copy `i + distance` of this one.
        later: OpId,
        /// Iterations.
        distance: i64,
    },
    /// An operation is in another stage, counted from the first operation's issue.
    Stage {
        /// The operation.
        operation: OpId,
        /// Its stage now.
        stage: i64,
    },
}

/// Every difference of `other` from `first`, both of them schedules of `problem`: those of the operations that take most
/// cycles first, stages last. Empty if and only if the two are the same but for the times within their order.
pub fn differences(problem: &Problem, first: &Schedule, other: &Schedule) -> Vec<Difference> {
    let (before, after) = (NormalizedSchedule::of(problem, first), NormalizedSchedule::of(problem, other));
    let scope = Scope::all(problem);
    let cycles = |op: OpId| problem.graph().operation(op).occupancy;
    let mut differences: Vec<(Cycles, Difference)> = Vec::new();
    for operation in problem.graph().op_ids() {
        if before.group(operation) != after.group(operation) {
            let group = other.placement(operation).group;
            differences.push((cycles(operation), Difference::Group { operation, group }));
        }
    }
    for pair in &scope.pairs {
        let ordered = pair.share_unit || (before.together(pair) && after.together(pair));
        let (was, is) = (before.wrap(pair), after.wrap(pair));
        if ordered && was != is {
            let order = if is < was {
                Difference::Order { earlier: pair.second, later: pair.first, distance: was }
            } else {
                Difference::Order { earlier: pair.first, later: pair.second, distance: -is }
            };
            differences.push((cycles(pair.first).min(cycles(pair.second)), order));
        }
    }
    for &operation in &scope.stages {
        let stage = after.stage(operation);
        if before.stage(operation) != stage {
            differences.push((cycles(operation), Difference::Stage { operation, stage }));
        }
    }
    let stage = |difference: &Difference| matches!(difference, Difference::Stage { .. });
    differences.sort_by_key(|(cycles, difference)| (stage(difference), Reverse(*cycles)));
    differences.into_iter().map(|(_, difference)| difference).collect()
}
