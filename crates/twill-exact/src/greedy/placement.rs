//! One schedule at one interval under one assignment, built by placing and displacing operations.
//!
//! Slack scheduling (Huff, "Lifetime-sensitive modulo scheduling", PLDI 1993): the operation with the
//! least room between what is placed before and after it comes next, and goes towards the side on
//! which it shortens lives. Where no slot is free, the cheapest operations give way and become dearer
//! by it, so that the same ones do not displace each other for ever.

use super::conflicts::Conflict;
use super::room::{Room, Times};
use crate::limits::Meter;
use twill_graph::{OpId, Problem};

/// No path between two operations.
pub(super) const APART: i64 = i64::MIN / 4;

/// The input of placement.
pub(super) struct Puzzle<'a> {
    pub(super) problem: &'a Problem,
    pub(super) interval: i64,
    /// Longest paths between operations, handoffs included.
    pub(super) paths: &'a [Vec<i64>],
    pub(super) conflicts: &'a [Vec<Conflict>],
    pub(super) room: &'a Room<'a>,
    /// No operation ends later.
    pub(super) horizon: i64,
    /// Words of each operation's result, in registers or memory.
    pub(super) words: &'a [u64],
}

/// Placements for each operation before giving up.
const EFFORT: usize = 8;

/// Placements for each operation without one more in place than before.
const PATIENCE: usize = 2;

/// Ways to force an operation in that are followed to the end.
const WAYS: usize = 4;

/// State of one attempt.
struct Attempt<'a> {
    puzzle: &'a Puzzle<'a>,
    times: Vec<Option<i64>>,
    /// The cost of displacing an operation.
    worth: Vec<u64>,
    /// First and last cycle that paths alone allow.
    widest: Vec<(i64, i64)>,
    /// The same with what is in place.
    windows: Vec<(i64, i64)>,
}

/// Which operation comes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// The one with the least slack.
    Slack,
    /// As written.
    Source,
    /// The one that could issue first.
    Earliest,
}

/// Most operations in place at once, and issue cycles that satisfy everything if the attempt succeeds.
/// `weight` scales each operation's rank in the order: what has less comes first.
pub(super) fn place(puzzle: &Puzzle, order: Order, weight: &[u64], meter: &Meter) -> (usize, Option<Vec<i64>>) {
    let count = weight.len();
    let span = |v: usize| puzzle.problem.graph().operations()[v].span().0;
    let window = |v: usize| {
        let early = (0..count).map(|u| puzzle.paths[u][v]).max().unwrap_or(0).max(0);
        let tail = (0..count).map(|w| puzzle.paths[v][w].saturating_add(span(w))).max().unwrap_or(0).max(span(v));
        (early, puzzle.horizon - tail)
    };
    let widest: Vec<(i64, i64)> = (0..count).map(window).collect();
    if widest.iter().any(|(early, late)| early > late) {
        return (0, None);
    }
    let mut attempt =
        Attempt { puzzle, times: vec![None; count], worth: vec![1; count], windows: widest.clone(), widest };
    let (mut most, mut since) = (0, 0);
    for _ in 0..EFFORT * count {
        meter.spend((count * count / 128) as u64 + 1);
        let placed = attempt.times.iter().flatten().count();
        since = if placed > most { 0 } else { since + 1 };
        most = most.max(placed);
        if meter.pause() || since > PATIENCE * count {
            break;
        }
        let Some(op) = attempt.next(order, weight) else {
            let times = attempt.times.iter().copied().collect::<Option<_>>();
            return (most, times.filter(|_| puzzle.room.fits(&attempt.times)));
        };
        if attempt.put(op, meter).is_none() {
            break;
        }
    }
    (most, None)
}

impl Attempt<'_> {
    /// Puts an operation in place; what is known of the others follows.
    fn set(&mut self, v: usize, time: i64) {
        self.times[v] = Some(time);
        let paths = self.puzzle.paths;
        for (u, (early, late)) in self.windows.iter_mut().enumerate().filter(|(u, _)| *u != v) {
            *early = (*early).max(time + paths[v][u]);
            *late = (*late).min(time - paths[u][v]);
        }
    }

    /// Takes operations out.
    fn displace(&mut self, others: &[usize]) {
        for &u in others {
            self.times[u] = None;
        }
        if !others.is_empty() {
            self.windows.clone_from(&self.widest);
            for u in 0..self.times.len() {
                if let Some(time) = self.times[u] {
                    self.set(u, time);
                }
            }
        }
    }

    fn next(&self, order: Order, weight: &[u64]) -> Option<usize> {
        let rank = |v: usize| {
            let rank = match order {
                Order::Slack => (self.windows[v].1 - self.windows[v].0).max(0).unsigned_abs(),
                Order::Source => v as u64,
                Order::Earliest => self.windows[v].0.unsigned_abs(),
            };
            (rank.saturating_add(1).saturating_mul(weight[v]), v)
        };
        (0..self.times.len()).filter(|&v| self.times[v].is_none()).min_by_key(|&v| rank(v))
    }

    /// Places an operation, displacing others if it must; `None` when it fits nowhere.
    fn put(&mut self, v: usize, meter: &Meter) -> Option<()> {
        let (early, late) = self.windows[v];
        let target = self.target(v);
        let mut places = self.places(v, target, late.min(target.saturating_add(self.puzzle.interval - 1)));
        let mut before = self.places(v, early.max(target.saturating_sub(self.puzzle.interval - 1)), target);
        places.sort_unstable();
        before.sort_unstable_by(|a, b| b.cmp(a));
        places.extend(before);
        places.dedup();
        places.retain(|&time| self.conflicting(v, time).is_empty());
        for time in places {
            meter.spend(self.times.len() as u64 / 16 + 1);
            self.times[v] = Some(time);
            if self.puzzle.room.check(&self.times, OpId::new(v), &self.worth).is_ok() {
                self.set(v, time);
                return Some(());
            }
        }
        self.times[v] = None;
        self.force(v, meter)
    }

    /// Both ends of every range that conflicts leave within `[low, high]`.
    fn places(&self, v: usize, low: i64, high: i64) -> Vec<i64> {
        let mut places = vec![low, high];
        for c in &self.puzzle.conflicts[v] {
            let Some(time) = self.times[c.other] else { continue };
            for edge in [time + c.end, time + c.first - 1] {
                places.push(low + (edge - low).rem_euclid(self.puzzle.interval));
            }
        }
        places.retain(|p| (low..=high).contains(p));
        places
    }

    fn conflicting(&self, v: usize, time: i64) -> Vec<usize> {
        let meets = |c: &&Conflict| {
            let Some(other) = self.times[c.other] else { return false };
            (time - other - c.first).rem_euclid(self.puzzle.interval) < c.end - c.first
        };
        let mut others: Vec<usize> = self.puzzle.conflicts[v].iter().filter(meets).map(|c| c.other).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Where an operation would rather be: before its readers, if only they are in place or it makes more
    /// than it uses up, else as late as it can be without delaying anything.
    fn target(&self, v: usize) -> i64 {
        let graph = self.puzzle.problem.graph();
        let placed = |op: OpId| self.times[op.index()].is_some();
        let (mut ends, mut starts) = (0_u64, 0_u64);
        let (mut before, mut after) = (false, false);
        for d in graph.dependences().iter().filter(|d| d.from != d.to) {
            if d.to.index() == v && placed(d.from) {
                before = true;
                ends += if d.carries_value { self.puzzle.words[d.from.index()] } else { 0 };
            } else if d.from.index() == v && placed(d.to) {
                after = true;
                starts = if d.carries_value { self.puzzle.words[v] } else { starts };
            }
        }
        let (early, late) = self.windows[v];
        if after && (!before || starts > ends) {
            return late;
        }
        let paths = &self.puzzle.paths[v];
        let readers = graph.dependences().iter().filter(|d| d.from.index() == v && d.to.index() != v);
        let unhurried = readers.map(|d| self.windows[d.to.index()].0 - paths[d.to.index()]).min();
        unhurried.filter(|_| self.puzzle.words[v] > ends).map_or(early, |time| time.clamp(early, late))
    }

    /// The place that displaces least, within the operation's own window.
    fn force(&mut self, v: usize, meter: &Meter) -> Option<()> {
        let (low, high) = self.widest[v];
        let (early, late) = self.windows[v];
        let interval = self.puzzle.interval;
        let mut places = self.places(v, early, late.min(early.saturating_add(interval - 1)));
        places.extend(self.places(v, early, high.min(early.saturating_add(interval - 1))));
        places.extend(self.places(v, low.max(late.saturating_sub(interval - 1)), late));
        places.sort_unstable();
        places.dedup();
        let cost = |attempt: &Self, others: &[usize]| others.iter().map(|&u| attempt.worth[u]).sum::<u64>();
        let mut ways: Vec<(u64, i64, Vec<usize>)> = Vec::new();
        for time in places {
            let mut others = self.conflicting(v, time);
            others.extend((0..self.times.len()).filter(|&u| self.breaks_path(v, time, u)));
            others.sort_unstable();
            others.dedup();
            ways.push((cost(self, &others), time, others));
        }
        ways.sort_unstable();
        let mut best: Option<(u64, i64, Vec<usize>)> = None;
        let mut tried = 0;
        for (least, time, others) in ways {
            if tried == WAYS || best.as_ref().is_some_and(|b| b.0 <= least) {
                break;
            }
            let Some(others) = self.with_room(v, time, others, meter) else { continue };
            tried += 1;
            let cost = cost(self, &others);
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, time, others));
            }
        }
        let (_, time, others) = best?;
        self.displace(&others);
        self.set(v, time);
        // An operation that was placed by force is not displaced lightly.
        self.worth[v] += 1;
        Some(())
    }

    fn breaks_path(&self, v: usize, time: i64, u: usize) -> bool {
        let paths = self.puzzle.paths;
        u != v && self.times[u].is_some_and(|t| time < t + paths[u][v] || t < time + paths[v][u])
    }

    /// The operations that must also go for lack of storage.
    fn with_room(&mut self, v: usize, time: i64, mut others: Vec<usize>, meter: &Meter) -> Option<Vec<usize>> {
        let mut trial: Vec<Option<i64>> = self.times.clone();
        for &u in &others {
            trial[u] = None;
        }
        trial[v] = Some(time);
        loop {
            meter.spend(self.times.len() as u64 / 16 + 1);
            let reply = self.puzzle.room.check(&trial as &Times, OpId::new(v), &self.worth);
            match reply {
                Ok(()) => return Some(others),
                Err(culprit) => {
                    let culprit = culprit?.index();
                    trial[culprit]?;
                    trial[culprit] = None;
                    others.push(culprit);
                }
            }
        }
    }
}
