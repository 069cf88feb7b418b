//! The conditions for a replay, and a schedule's claims about itself:
//!
//! - `I ≥ 1`; one placement an operation; `t_v ≥ 0`; every group is one of the pool;
//! - `L = max_v (t_v + max(1, cycles(v)))`;
//! - the groups listed are those in use, by ascending id, each with the role and warps that it has
//!   in the pool.

use crate::Violation;
use crate::lives;
use crate::placed::{Placed, cycles};
use crate::rejected::Violations;
use std::collections::BTreeSet;
use twill_graph::{Cycles, GroupId, Problem, Schedule};

/// The conditions on which [`Placed`] relies.
pub(crate) fn check_shape(problem: &Problem, schedule: &Schedule, violations: &mut Violations) {
    if schedule.interval < Cycles(1) {
        violations.push(Violation::Interval { interval: schedule.interval });
    }
    let operations = problem.graph().operations();
    if schedule.placements.len() != operations.len() {
        violations.push(Violation::PlacementCount { required: operations.len(), given: schedule.placements.len() });
    }
    let pool = problem.groups().len();
    for (operation, placement) in operations.iter().zip(&schedule.placements) {
        if placement.cycle < Cycles::ZERO {
            violations.push(Violation::NegativeCycle { operation: operation.name.clone(), cycle: placement.cycle });
        }
        if placement.group.index() >= pool {
            let operation = operation.name.clone();
            violations.push(Violation::UnknownGroup { operation, group: placement.group, pool });
        }
    }
}

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let (required, given) = (placed.length(), placed.schedule.length);
    if required != i128::from(given.0) {
        violations.push(Violation::Length { required: cycles(required), given });
    }
    check_groups(placed, violations);
    if let Err(violation) = lives::replayable(placed) {
        violations.push(violation);
    }
}

fn check_groups(placed: &Placed, violations: &mut Violations) {
    let used: BTreeSet<GroupId> = placed.operations().map(|(v, _)| placed.group(v)).collect();
    let listed: BTreeSet<GroupId> = placed.schedule.groups.iter().map(|g| g.id).collect();
    for &group in used.difference(&listed) {
        violations.push(Violation::UnlistedGroup { group });
    }
    for &group in listed.difference(&used) {
        violations.push(Violation::IdleGroup { group });
    }
    for pair in placed.schedule.groups.windows(2) {
        if let [before, after] = pair
            && before.id >= after.id
        {
            violations.push(Violation::GroupOrder { group: after.id });
        }
    }
    for given in placed.schedule.groups.iter().filter(|g| used.contains(&g.id)) {
        let pool = placed.problem.groups()[given.id.index()];
        if (pool.role, pool.warps) != (given.role, given.warps) {
            violations.push(Violation::GroupKind {
                group: given.id,
                required: pool.role,
                required_warps: pool.warps,
                given: given.role,
                given_warps: given.warps,
            });
        }
    }
}
