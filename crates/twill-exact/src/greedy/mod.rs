//! A first schedule without search, for graphs on which the exact search needs long to find one.
//!
//! For a few assignments of operations to warp groups (`groups.rs`), operations are placed one by one
//! (`placement.rs`) at the lower bound, then at wider and wider intervals until an attempt succeeds;
//! then the gap is halved. Nothing is claimed of the result: `query::at` lets nothing through that
//! breaks a constraint, and the exact search begins where this ends.

mod conflicts;
mod groups;
mod placement;
mod room;

use crate::bounds;
use crate::constraints::symmetry;
use crate::limits::Meter;
use placement::{APART, Order, Puzzle};
use room::Room;
use twill_graph::{Cycles, Dependence, Families, GroupId, Placement, Problem, Storage};

/// Stages beyond the least that are tried.
const MORE_STAGES: i64 = 2;

/// Variants that are followed once all have been tried at the lower bound.
const FOLLOWED: usize = 5;

/// Rules for which operation comes next.
const RULES: u64 = 3;

/// Orders in which variants are tried when the gap is halved: every rule with and without noise.
const ORDERS: u64 = 2 * RULES;

/// A schedule between `bottom` and `limit` cycles, near the bottom.
pub(crate) fn schedule(problem: &Problem, bottom: i64, limit: i64, meter: &Meter) -> Option<(Cycles, Vec<Placement>)> {
    if !is_small(problem, limit) {
        return None;
    }
    let plans: Vec<Plan> = groups::assignments(problem).into_iter().map(|groups| Plan::new(problem, groups)).collect();
    let mut variants: Vec<Variant> = plans.iter().flat_map(Variant::all).collect();
    let (mut failed, mut step) = (bottom - 1, 0);
    let mut best = loop {
        let interval = bottom.saturating_add(step).min(limit);
        // All are tried at the bound, and again where there is much more room.
        let tried = if step < bottom / 2 && step > 0 { FOLLOWED.min(variants.len()) } else { variants.len() };
        if let Some(times) = first(&mut variants[..tried], interval, RULES, meter) {
            break (interval, times);
        }
        if interval >= limit || meter.pause() {
            return None;
        }
        failed = interval;
        step = (2 * step).max(bottom / 16).max(1);
    };
    // Attempts are no proofs, so this is only worth a hundredth of the interval.
    let mut plan = variants[0].plan;
    while best.0 - failed > 1 + bottom / 100 && !meter.pause() {
        let middle = failed + (best.0 - failed) / 2;
        let followed = FOLLOWED.min(variants.len());
        match first(&mut variants[..followed], middle, ORDERS, meter) {
            Some(times) => (best, plan) = ((middle, times), variants[0].plan),
            None => failed = middle,
        }
    }
    let (interval, times) = best;
    let placements = times.iter().zip(&plan.groups).map(|(&t, &group)| Placement { cycle: Cycles(t), group });
    Some((Cycles(interval), symmetry::in_order(problem, placements.collect())))
}

/// An assignment with a number of stages beyond the least.
struct Variant<'a> {
    plan: &'a Plan<'a>,
    more_stages: i64,
    /// Most operations that stood in place at once.
    placed: usize,
}

impl<'a> Variant<'a> {
    fn all(plan: &'a Plan<'a>) -> impl Iterator<Item = Variant<'a>> {
        (0..=MORE_STAGES).map(move |more_stages| Variant { plan, more_stages, placed: 0 })
    }
}

/// The first attempt at an interval that succeeds. Variants are left in the order of what they
/// achieved, so that the promising ones are tried first the next time.
fn first(variants: &mut [Variant], interval: i64, orders: u64, meter: &Meter) -> Option<Vec<i64>> {
    for order in 0..orders {
        for at in 0..variants.len() {
            let (placed, times) = variants[at].plan.place(interval, variants[at].more_stages, order, meter);
            variants[at].placed = placed.max(if order > 0 { variants[at].placed } else { 0 });
            if times.is_some() {
                variants[..=at].rotate_right(1);
                return times;
            }
            if meter.pause() {
                return None;
            }
        }
        variants.sort_by_key(|v| std::cmp::Reverse(v.placed));
    }
    None
}

/// Returns whether sums of all path lengths stay exact.
fn is_small(problem: &Problem, limit: i64) -> bool {
    let distances: i128 = problem.graph().dependences().iter().map(|d| i128::from(d.distance)).sum();
    (distances + 64) * i128::from(limit) * 4 < i128::from(i64::MAX / 16)
}

/// The data that does not depend on the interval.
struct Plan<'p> {
    problem: &'p Problem,
    groups: Vec<GroupId>,
    conflicts: Vec<Vec<conflicts::Conflict>>,
    words: Vec<u64>,
    /// Synchronous work of the group that has the most.
    busiest: i64,
}

impl<'p> Plan<'p> {
    fn new(problem: &'p Problem, groups: Vec<GroupId>) -> Plan<'p> {
        let words = |storage| match storage {
            Storage::Registers(words) => words.0,
            Storage::Shared(bytes) => bytes.0 / 4,
            Storage::Tensor(columns) => columns.0 * 128,
            Storage::None => 0,
        };
        let words = problem.graph().operations().iter().map(|op| if op.streaming { 0 } else { words(op.storage) });
        let busiest = problem.group_ids().map(|group| work(problem, &groups, group)).max().unwrap_or(0);
        let busiest = if problem.options().exclusive_issue { busiest } else { 0 };
        Plan { problem, conflicts: conflicts::table(problem, &groups), words: words.collect(), busiest, groups }
    }

    /// Longest paths at an interval, with the handoffs of the assignment; `None` when some
    /// operation would wait for itself, or passes a carried value to another group.
    fn paths(&self, interval: i64) -> Option<Vec<Vec<i64>>> {
        let count = self.groups.len();
        let mut paths = vec![vec![APART; count]; count];
        for d in self.problem.graph().dependences() {
            let gap = self.gap(d)? - i64::from(d.distance) * interval;
            let path = &mut paths[d.from.index()][d.to.index()];
            *path = (*path).max(gap);
        }
        for through in 0..count {
            let onwards = paths[through].clone();
            for row in &mut paths {
                let reach = row[through];
                if reach > APART {
                    for (path, &on) in row.iter_mut().zip(&onwards).filter(|(_, on)| **on > APART) {
                        *path = (*path).max(reach + on);
                    }
                }
            }
        }
        for (op, row) in paths.iter_mut().enumerate() {
            if row[op] > 0 {
                return None;
            }
            row[op] = 0;
        }
        Some(paths)
    }

    fn gap(&self, d: &Dependence) -> Option<i64> {
        let from = self.problem.graph().operation(d.from);
        let in_registers = d.carries_value && matches!(from.storage, Storage::Registers(_));
        if !in_registers || self.groups[d.from.index()] == self.groups[d.to.index()] {
            return Some(d.delay.0);
        }
        let passes = d.distance == 0 && self.problem.options().cross_group_registers;
        passes.then_some(d.delay.0 + from.handoff.0)
    }
}

/// Synchronous work of one group.
fn work(problem: &Problem, groups: &[GroupId], group: GroupId) -> i64 {
    let here = problem.graph().operations().iter().zip(groups).filter(|(op, g)| **g == group && op.is_synchronous());
    here.map(|(op, _)| op.occupancy.0).sum()
}

impl Plan<'_> {
    /// One attempt: most operations in place at once, and issue cycles if it succeeds.
    fn place(&self, interval: i64, more_stages: i64, order: u64, meter: &Meter) -> (usize, Option<Vec<i64>>) {
        let (problem, graph, count) = (self.problem, self.problem.graph(), self.groups.len());
        let too_wide = self.conflicts.iter().flatten().any(|c| c.end - c.first >= interval);
        if too_wide || self.busiest > interval || bounds::self_conflict(problem, interval, Families::ALL).is_some() {
            return (0, None);
        }
        meter.spend((count * count * count / 4096) as u64);
        let Some(paths) = self.paths(interval) else { return (0, None) };
        let spans = graph.operations().iter().map(|op| op.span().0);
        let ends = |row: &Vec<i64>| row.iter().zip(spans.clone()).map(|(path, span)| path + span).max().unwrap_or(0);
        let length = paths.iter().map(ends).max().unwrap_or(0);
        let horizon = (Cycles(length).div_ceil(Cycles(interval)).max(1) + more_stages) * interval;
        let room = Room::new(problem, &self.groups, interval);
        let (conflicts, words) = (&self.conflicts, &self.words);
        let puzzle = Puzzle { problem, interval, paths: &paths, conflicts, room: &room, horizon, words };
        let rule = [Order::Slack, Order::Source, Order::Earliest][(order % RULES) as usize];
        let weights: Vec<u64> = (0..count).map(|op| weight(op as u64, order / RULES)).collect();
        placement::place(&puzzle, rule, &weights, meter)
    }
}

/// How much an operation's rank counts: the same for all in the first round, else a number from 4
/// to 19 that only looks random (SplitMix64: Steele, Lea & Flood, OOPSLA 2014).
fn weight(op: u64, round: u64) -> u64 {
    if round == 0 {
        return 8;
    }
    let mut x = (op + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round << 32);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    4 + (x ^ (x >> 31)) % 16
}

#[cfg(test)]
mod tests;
