//! The difference between schedules: the programs of the warp groups, not the cycles.
//!
//! Two schedules are alike when, up to the names of interchangeable compute groups and of interchangeable sub-tiles,
//!
//! - the same operations run on the same groups,
//! - the copies of any two operations that share a group or a unit issue in the same order, over all iterations, and
//! - every operation is in the same stage, counted from the cycle in which the first operation issues.
//!
//! For operations `u < v` the order of copies is one number, the wrap `⌊(t_v − t_u) / I⌋`: copy `i` of `v` issues
//! between copies `i + wrap` and `i + wrap + 1` of `u`; of two that issue at once the one that stands first in the
//! graph counts as first. A shift of all times changes none of this.

use crate::constraints::{assignment, symmetry};
use crate::encoding::{Anchor, Encoding};
use batsat::Lit;
use std::collections::BTreeSet;
use twill_graph::{Cycles, GroupId, GroupRole, OpId, Problem, Schedule};

/// A schedule as far as it counts: times from 0 on, groups renamed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NormalizedSchedule {
    interval: i64,
    /// Issue cycles; the earliest is 0.
    times: Vec<i64>,
    /// Which of two operations that issue at once counts as first: the one with the smaller rank.
    ranks: Vec<usize>,
    /// Compute groups are numbered in the order in which operations open them.
    groups: Vec<GroupId>,
}

/// Orders of sub-tiles that are looked at: all of five.
const MOST_IMAGES: usize = 120;

impl NormalizedSchedule {
    pub(super) fn new(problem: &Problem, interval: i64, times: &[i64], groups: &[GroupId]) -> NormalizedSchedule {
        let first = times.iter().min().copied().unwrap_or(0);
        let times = times.iter().map(|t| t - first).collect();
        NormalizedSchedule { interval, times, ranks: (0..groups.len()).collect(), groups: renamed(problem, groups) }
    }

    pub(super) fn of(problem: &Problem, schedule: &Schedule) -> NormalizedSchedule {
        let times: Vec<i64> = schedule.placements.iter().map(|p| p.cycle.0).collect();
        let groups: Vec<GroupId> = schedule.placements.iter().map(|p| p.group).collect();
        NormalizedSchedule::new(problem, schedule.interval.0, &times, &groups)
    }

    /// The schedule and what becomes of it when interchangeable sub-tiles change places. Where sub-tiles have groups of
    /// their own, some of these may be none that can be.
    pub(super) fn images(self, problem: &Problem) -> Vec<NormalizedSchedule> {
        let mut images = vec![self];
        let swaps = symmetry::swaps(problem.graph());
        let mut known: BTreeSet<NormalizedSchedule> = images.iter().cloned().collect();
        let mut next = 0;
        while next < images.len() {
            for swap in &swaps {
                let image = images[next].swapped(problem, &swap.map);
                if images.len() < MOST_IMAGES && known.insert(image.clone()) {
                    images.push(image);
                }
            }
            next += 1;
        }
        images
    }

    /// The first operations of interchangeable sub-tiles that may change places in this schedule, those that issue first
    /// in it first.
    pub(super) fn alike(&self, problem: &Problem) -> Vec<(OpId, OpId)> {
        let mut alike = Vec::new();
        for swap in symmetry::swaps(problem.graph()) {
            if assignment::is_free(problem) || self.swapped(problem, &swap.map).groups == self.groups {
                let (one, other) = swap.first;
                let reversed = self.times[other.index()] < self.times[one.index()];
                alike.push(if reversed { (other, one) } else { (one, other) });
            }
        }
        alike
    }

    /// Each operation's work is done by the one that takes its place.
    fn swapped(&self, problem: &Problem, map: &[OpId]) -> NormalizedSchedule {
        let groups: Vec<GroupId> = map.iter().map(|to| self.groups[to.index()]).collect();
        NormalizedSchedule {
            interval: self.interval,
            times: map.iter().map(|to| self.times[to.index()]).collect(),
            ranks: map.iter().map(|to| self.ranks[to.index()]).collect(),
            groups: renamed(problem, &groups),
        }
    }

    pub(super) fn stage(&self, op: OpId) -> i64 {
        Cycles(self.times[op.index()]).stage(Cycles(self.interval))
    }

    pub(super) fn group(&self, op: OpId) -> GroupId {
        self.groups[op.index()]
    }

    pub(super) fn together(&self, pair: &Pair) -> bool {
        self.group(pair.first) == self.group(pair.second)
    }

    /// Copy `i` of the second operation issues between copies `i + wrap` and `i + wrap + 1` of the first.
    pub(super) fn wrap(&self, pair: &Pair) -> i64 {
        let (first, second) = (pair.first.index(), pair.second.index());
        let overtakes = i64::from(self.ranks[second] < self.ranks[first]);
        (self.times[second] - self.times[first] - overtakes).div_euclid(self.interval)
    }

    /// Returns whether the two differ in nothing that is compared.
    pub(super) fn is_like(&self, other: &NormalizedSchedule, scope: &Scope) -> bool {
        let pair = |pair: &Pair| {
            let together = self.together(pair);
            let ordered = together || pair.share_unit;
            together == other.together(pair) && (!ordered || self.wrap(pair) == other.wrap(pair))
        };
        scope.pairs.iter().all(pair) && scope.stages.iter().all(|&op| self.stage(op) == other.stage(op))
    }

    /// Literals of which at least one holds in a schedule that differs in something that is compared, and none in one
    /// that does not (bounded form; the first operation issues in cycle 0).
    pub(super) fn differs(&self, e: &mut Encoding, scope: &Scope) -> Vec<Lit> {
        let interval = e.question.interval;
        let mut differs = Vec::new();
        for pair in &scope.pairs {
            let same = e.same_group(pair.first, pair.second);
            let together = self.together(pair);
            differs.push(if together { !same } else { same });
            if together || pair.share_unit {
                let (first, second) = (Anchor::Issue(pair.first), Anchor::Issue(pair.second));
                let wrap = self.wrap(pair);
                differs.push(!e.at_least(first, second, wrap * interval));
                differs.push(e.at_least(first, second, (wrap + 1) * interval));
            }
        }
        for &op in &scope.stages {
            let stage = self.stage(op);
            let [from, _] = e.issued_at(op, stage * interval);
            let [beyond, _] = e.issued_at(op, (stage + 1) * interval);
            differs.extend([!from, beyond]);
        }
        differs
    }
}

/// Two operations, the one that stands first in the graph first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) first: OpId,
    pub(super) second: OpId,
    pub(super) share_unit: bool,
}

/// The level of comparison.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) pairs: Vec<Pair>,
    /// Operations whose stages are compared.
    pub(super) stages: Vec<OpId>,
}

/// Part of the interval from which on an operation counts as expensive.
const EXPENSIVE: i64 = 16;

impl Scope {
    /// Everything.
    pub(super) fn all(problem: &Problem) -> Scope {
        let operations: Vec<OpId> = problem.graph().op_ids().collect();
        Scope { pairs: pairs(problem, &operations), stages: operations }
    }

    /// Groups and order of the operations that take a sixteenth of the interval or more, loads from global memory left
    /// out. Their stages are in their order, and would otherwise change with that of the first load.
    pub(super) fn expensive(problem: &Problem, interval: i64) -> Scope {
        let graph = problem.graph();
        let expensive = |op: &OpId| {
            let operation = graph.operation(*op);
            !operation.variable_latency && operation.occupancy.0.saturating_mul(EXPENSIVE) >= interval
        };
        let operations: Vec<OpId> = graph.op_ids().filter(expensive).collect();
        Scope { pairs: pairs(problem, &operations), stages: Vec::new() }
    }
}

fn pairs(problem: &Problem, operations: &[OpId]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, &second) in operations.iter().enumerate() {
        for &first in &operations[..i] {
            let units = problem.units_of(second);
            let share_unit = problem.units_of(first).iter().any(|unit| units.contains(unit));
            pairs.push(Pair { first, second, share_unit });
        }
    }
    pairs
}

/// Compute groups in the order in which operations open them: they are alike, even where each has its own sub-tiles.
fn renamed(problem: &Problem, groups: &[GroupId]) -> Vec<GroupId> {
    let interchangeable = |g: &GroupId| problem.groups()[g.index()].role == GroupRole::Compute;
    let names: Vec<GroupId> = problem.group_ids().filter(interchangeable).collect();
    let mut opened: Vec<GroupId> = Vec::new();
    let rename = |&group: &GroupId| {
        if !interchangeable(&group) {
            return group;
        }
        let at = opened.iter().position(|g| *g == group).unwrap_or_else(|| {
            opened.push(group);
            opened.len() - 1
        });
        names[at]
    };
    groups.iter().map(rename).collect()
}
