//! Target: the checker on schedules of the engine, whole and changed.
//!
//! `literal` decides if a changed schedule breaks the model: it reads `docs/model.md` word by word, slot by
//! slot, and shares nothing with the checker but the names of the constraints.

use crate::sample;
use crate::tape::Tape;
use std::collections::BTreeSet;
use twill_check::{Constraint, verify};
use twill_exact::{Budget, SearchOptions, schedule};
use twill_graph::{Bytes, ChannelStorage, Cycles, GroupId, Placement, Problem, Schedule};
use twill_reference::broken;
use twill_reference::schedule_with;

/// The outcome of the schedules of one input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Schedules of the engine: all accepted.
    pub whole: u64,
    /// Changed schedules that break these constraints: all rejected, for these.
    pub broken: Vec<BTreeSet<Constraint>>,
    /// Changed schedules that hold: all accepted.
    pub holding: u64,
}

/// Changes of one schedule.
const CHANGES: u64 = 12;

/// Replays a schedule of the engine and its changed copies.
///
/// # Panics
/// When the checker and the word-by-word implementation do not agree on which constraints hold.
pub fn check(bytes: &[u8]) -> Replayed {
    let mut tape = Tape::new(bytes);
    let mut replayed = Replayed::default();
    let Some(problem) = sample::problem(&mut tape) else { return replayed };
    let budget = Budget { work: Some(200_000), ..Budget::default() };
    let options = SearchOptions { budget, largest_interval: Some(Cycles(24)), ..SearchOptions::default() };
    let report = schedule(&problem, &options, &mut |_| {});
    let Some(whole) = report.outcome.schedule() else { return replayed };
    assert_eq!(agreed(&problem, whole), BTreeSet::new(), "{whole:#?}\n{problem:#?}");
    replayed.whole += 1;
    let mut at = whole.clone();
    for _ in 0..CHANGES {
        let mut next = moved(&mut tape, &problem, &at);
        let said = tape.one_in(3) && say(&mut tape, &mut next);
        let breaks = agreed(&problem, &next);
        if breaks.is_empty() {
            replayed.holding += 1;
            // A schedule that holds is moved on from, so that both answers stay near.
            at = if said { at } else { next };
        } else {
            replayed.broken.push(breaks);
        }
        if let Some(next) = malformed(&mut tape, &problem, &at) {
            let rejected = verify(&problem, next.clone()).is_err();
            assert!(rejected, "{next:#?}\n{problem:#?}");
            replayed.broken.push(BTreeSet::from([Constraint::Structure]));
        }
        if tape.is_over() {
            break;
        }
    }
    replayed
}

/// The constraints that a schedule breaks, by both.
fn agreed(problem: &Problem, schedule: &Schedule) -> BTreeSet<Constraint> {
    let by_reading = broken(problem, schedule);
    let by_checker: BTreeSet<Constraint> = match verify(problem, schedule.clone()) {
        Ok(_) => BTreeSet::new(),
        Err(rejected) => rejected.violations.iter().map(|v| v.constraint()).collect(),
    };
    assert_eq!(by_checker, by_reading, "checker and reading: {schedule:#?}\n{problem:#?}");
    by_reading
}

/// One decision changed, and everything that follows from it.
fn moved(tape: &mut Tape, problem: &Problem, from: &Schedule) -> Schedule {
    let mut interval = from.interval.0;
    let mut placements: Vec<(i64, usize)> = from.placements.iter().map(|p| (p.cycle.0, p.group.index())).collect();
    let which = tape.index(placements.len());
    match tape.below(8) {
        0 => interval = (interval - 1 - tape.between(0, 3)).max(1),
        1 => interval += 1 + tape.between(0, 2),
        2 => placements[which].1 = tape.index(problem.groups().len()),
        3 => placements[which].0 = tape.between(0, 3 * interval),
        4 => placements[which..].iter_mut().for_each(|p| p.0 += interval),
        _ => placements[which].0 = (placements[which].0 + tape.between(-3, 3)).max(0),
    }
    let most = from.groups.iter().map(|g| g.registers_per_thread).max().unwrap_or(0);
    let compute = |g: &&twill_graph::WarpGroup| g.role == twill_graph::GroupRole::Compute;
    let given = from.groups.iter().find(compute).map_or(most, |g| g.registers_per_thread);
    let mut next = schedule_with(problem, interval, &placements, given);
    for group in next.groups.iter_mut() {
        if let Some(before) = from.groups.iter().find(|g| g.id == group.id) {
            group.registers_per_thread = before.registers_per_thread;
        }
    }
    next
}

/// Something that a schedule says about itself and that need not be so; whether anything was said.
fn say(tape: &mut Tape, schedule: &mut Schedule) -> bool {
    let (channels, rings, groups) = (schedule.channels.len(), schedule.rings.len(), schedule.groups.len());
    match tape.below(11) {
        0 => schedule.length = Cycles(schedule.length.0 + tape.between(-1, 1)),
        1 if channels > 0 => schedule.channels[tape.index(channels)].depth ^= 1,
        2 if channels > 0 => drop(schedule.channels.remove(tape.index(channels))),
        3 if channels > 0 => schedule.channels[tape.index(channels)].storage = ChannelStorage::Shared(Bytes(7)),
        4 if rings > 0 => schedule.rings[tape.index(rings)].depth ^= 1,
        5 if rings > 0 => drop(schedule.rings.remove(tape.index(rings))),
        6 => drop(schedule.groups.remove(tape.index(groups))),
        7 => schedule.groups[tape.index(groups)].warps ^= 2,
        8 => {
            let group = &mut schedule.groups[tape.index(groups)];
            group.registers_per_thread = (group.registers_per_thread + 8).saturating_sub(8 * tape.below(4) as u32);
        }
        9 => schedule.groups[tape.index(groups)].registers_per_thread += 1,
        10 if channels > 0 => {
            let again = schedule.channels[tape.index(channels)].clone();
            schedule.channels.push(again);
        }
        _ => return false,
    }
    true
}

/// A schedule that is none of the problem's, so that there is nothing to read word by word.
fn malformed(tape: &mut Tape, problem: &Problem, from: &Schedule) -> Option<Schedule> {
    let mut next = from.clone();
    let which = tape.index(next.placements.len());
    match tape.below(24) {
        0 => drop(next.placements.pop()),
        1 => next.placements.push(next.placements[which]),
        2 => next.placements[which].group = GroupId::new(problem.groups().len() + tape.index(3)),
        3 => next.placements[which].cycle = Cycles([-1, i64::MIN, i64::MAX][tape.index(3)]),
        4 => next.interval = Cycles([0, -1, i64::MIN][tape.index(3)]),
        5 => next.length = Cycles([0, -1, i64::MIN, i64::MAX][tape.index(4)]),
        6 => next.placements.iter_mut().for_each(|p| *p = Placement { cycle: Cycles(i64::MAX - 7), ..*p }),
        _ => return None,
    }
    Some(next)
}
