//! At most `capacity(f)` instances of a unit `f` are held in any slot of the steady state.
//!
//! One instance: no two reservations overlap modulo `I`, a clause for every pair and copy. Several:
//! sums, checked on candidates.

use crate::encoding::storage::{AnchoredTime, Item, Pool, When};
use crate::encoding::{Anchor, Candidate, Encoding};
use twill_graph::proof::{Item as Name, Pool as Room, Reason};
use twill_graph::{OpId, Problem, Reservation, UnitId};

/// An operation that overlaps its own next iteration on a unit at this interval.
pub(crate) fn self_conflict(problem: &Problem, interval: i64) -> Option<(OpId, UnitId)> {
    for op in problem.graph().op_ids() {
        for (index, unit) in problem.resources().units.iter().enumerate() {
            let unit_id = UnitId::new(index);
            let held: Vec<&Reservation> = reservations(problem, op, unit_id).map(|(_, r)| r).collect();
            let most = held.iter().map(|r| load_at(&held, r.start.0, interval)).max().unwrap_or(0);
            if most > i64::from(unit.capacity) {
                return Some((op, unit_id));
            }
        }
    }
    None
}

/// Instances that reservations of one operation hold in the slot of `cycle`, all copies counted.
fn load_at(held: &[&Reservation], cycle: i64, interval: i64) -> i64 {
    held.iter()
        .map(|r| {
            // k with start + kI ≤ cycle < start + cycles + kI.
            let offset = cycle - r.start.0;
            offset.div_euclid(interval) - (offset - r.cycles.0).div_euclid(interval)
        })
        .sum()
}

/// The reservations that an operation has on a unit, with their positions.
pub(crate) fn reservations(problem: &Problem, op: OpId, unit: UnitId) -> impl Iterator<Item = (usize, &Reservation)> {
    let units = problem.units_of(op);
    problem.graph().operation(op).reservations.iter().enumerate().filter(move |(at, _)| units[*at] == unit)
}

/// Cycles for which one iteration holds a unit, summed over instances.
pub(crate) fn busy(problem: &Problem, unit: UnitId) -> i64 {
    problem.graph().op_ids().flat_map(|op| reservations(problem, op, unit)).map(|(_, r)| r.cycles.0).sum()
}

pub(super) fn encode(e: &mut Encoding) {
    let problem = e.problem;
    if let Some((op, _)) = self_conflict(problem, e.question.interval) {
        e.engine.clause([], Reason::Resource { first: (op, 0), second: (op, 0), wrap: 0 });
        return;
    }
    for (index, unit) in problem.resources().units.iter().enumerate() {
        let id = UnitId::new(index);
        let held = |op| reservations(problem, op, id).map(move |(at, r)| ((op, at), r));
        let holders: Vec<((OpId, usize), &Reservation)> = problem.graph().op_ids().flat_map(held).collect();
        if unit.capacity == 1 {
            for (i, (u, first)) in holders.iter().enumerate() {
                if e.engine.is_cut_off() {
                    return;
                }
                for (v, second) in holders[..i].iter().filter(|(v, _)| v.0 != u.0) {
                    let shift = first.start.0 - second.start.0;
                    let offsets = (shift - second.cycles.0 + 1, shift + first.cycles.0);
                    let reason = |wrap| Reason::Resource { first: *u, second: *v, wrap };
                    e.forbid_offsets(&[], u.0, v.0, offsets, reason);
                }
            }
        } else {
            let items = holders.iter().map(|((op, at), r)| Item {
                name: Name::Reservation(*op, *at),
                owner: *op,
                weight: 1,
                start: AnchoredTime { anchor: Anchor::Issue(*op), offset: r.start.0 },
                ends: vec![(AnchoredTime { anchor: Anchor::Issue(*op), offset: r.start.0 + r.cycles.0 }, When::Always)],
                when: When::Always,
                repeats: true,
            });
            e.storage.units.push(Pool::new(Room::Unit(id), items.collect(), unit.capacity.into()));
        }
    }
}

pub(super) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let mut broken = false;
    for unit in 0..e.storage.units.len() {
        let mut pool = std::mem::take(&mut e.storage.units[unit]);
        for event in pool.overfull(e, candidate, |_| true, pool.capacity, 0) {
            let terms = pool.terms(e, event, false);
            let reason = pool.overfull_at(event);
            e.engine.at_most(&[], terms, pool.capacity, reason);
            broken = true;
        }
        e.storage.units[unit] = pool;
    }
    broken
}

/// Returns whether units with several instances have enough of them.
pub(crate) fn fit(e: &Encoding, candidate: &Candidate) -> bool {
    e.storage.units.iter().all(|pool| pool.peak(e, candidate, |_| true) <= pool.capacity)
}
