//! How much storage is live at once: the sums of docs/model.md, "Live values, folded", "Consumer
//! registers", "Hand-off buffers", and the paper's variant.
//!
//! An interval `[start, end)` of one iteration is live `⌊(end−1−r)/I⌋ − ⌊(start−1−r)/I⌋` times in
//! slot `r`. The sum is greatest at the start of some interval.

use std::collections::BTreeSet;
use twill_graph::{Cycles, GroupId, Liveness, OpId, Problem, Ring, Schedule, Storage};

/// Storage that one iteration holds for a while, from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Whose result it is.
    pub(crate) operation: OpId,
    /// Cycle of its iteration.
    pub(crate) start: i64,
    /// Cycle of its iteration; may lie beyond the interval.
    pub(crate) end: i64,
    /// Words, bytes or columns.
    pub(crate) amount: u64,
}

/// What a value may live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Registers of a group, in words.
    Registers(GroupId),
    /// Shared memory without rings, in bytes.
    Shared,
    /// Tensor memory, in columns.
    Tensor,
}

/// The most that is live at once in a place, without what is reserved there.
pub(crate) fn peak(problem: &Problem, schedule: &Schedule, place: Place) -> u64 {
    let interval = schedule.interval.0.max(1);
    match problem.options().liveness {
        Liveness::Folded => folded(&lives(problem, schedule, place), interval),
        Liveness::Paper => straight(&unrolled(problem, schedule, place)),
    }
}

/// What each iteration holds in a place, and for how long.
pub(crate) fn lives(problem: &Problem, schedule: &Schedule, place: Place) -> Vec<Life> {
    values(problem, schedule, place).into_iter().chain(copies(problem, schedule, place)).collect()
}

/// What is live at once over the cycles of the steady state: where it changes, from cycle 0 on, and to how much.
pub(crate) fn steady(lives: &[Life], interval: Cycles) -> Vec<(i64, u64)> {
    let interval = interval.0.max(1);
    let ends = lives.iter().flat_map(|life| [life.start, life.end]).map(|cycle| cycle.rem_euclid(interval));
    let changes: BTreeSet<i64> = std::iter::once(0).chain(ends).collect();
    let mut steps: Vec<(i64, u64)> =
        changes.into_iter().map(|cycle| (cycle, at_once(lives, interval, cycle))).collect();
    steps.dedup_by_key(|(_, amount)| *amount);
    steps
}

/// For how long a slot of a ring is taken: from when the load must be under way until its last reader is over.
pub(crate) fn ring(problem: &Problem, schedule: &Schedule, ring: &Ring) -> Life {
    let graph = problem.graph();
    let read = || graph.uses(ring.load).map(|d| after(schedule, d.to, d.distance));
    let over = graph.uses(ring.load).map(|d| after(schedule, d.to, d.distance) + graph.operation(d.to).completion());
    let issue = schedule.placement(ring.load).cycle;
    let start = read().min().map_or(issue, |first| first - graph.operation(ring.load).transfer_latency);
    let end = over.max().unwrap_or(issue);
    Life { operation: ring.load, start: start.0, end: end.0, amount: ring.bytes.0 }
}

fn amount(problem: &Problem, schedule: &Schedule, op: OpId, place: Place) -> u64 {
    let operation = problem.graph().operation(op);
    match (operation.storage, place) {
        (Storage::Registers(words), Place::Registers(group)) if schedule.placement(op).group == group => words.0,
        (Storage::Shared(bytes), Place::Shared) if !operation.streaming => bytes.0,
        (Storage::Tensor(columns), Place::Tensor) => columns.0,
        _ => 0,
    }
}

/// Values in their own place.
fn values(problem: &Problem, schedule: &Schedule, place: Place) -> Vec<Life> {
    let graph = problem.graph();
    let life = |op: OpId| {
        let amount = amount(problem, schedule, op, place);
        let end = graph.uses(op).map(|d| after(schedule, d.to, d.distance) + d.hold).max();
        end.map(|end| Life { operation: op, start: schedule.placement(op).cycle.0, end: end.0, amount })
    };
    graph.op_ids().filter_map(life).filter(|l| l.amount > 0 && l.end > l.start).collect()
}

/// Copies of register values for other groups: at the consumer, or in hand-off buffers.
fn copies(problem: &Problem, schedule: &Schedule, place: Place) -> Vec<Life> {
    let graph = problem.graph();
    let mut lives = Vec::new();
    for op in graph.op_ids() {
        let producer = graph.operation(op);
        let words = producer.register_words().0;
        let home = schedule.placement(op).group;
        let foreign = || graph.uses(op).filter(|d| schedule.placement(d.to).group != home);
        match place {
            Place::Registers(group) if problem.options().consumer_registers => {
                for d in foreign().filter(|d| schedule.placement(d.to).group == group) {
                    let consumer = graph.operation(d.to);
                    let start = schedule.placement(d.to).cycle;
                    if !consumer.variable_latency {
                        let end = (start + consumer.span()).0;
                        lives.push(Life { operation: op, start: start.0, end, amount: words });
                    }
                }
            }
            Place::Shared if matches!(producer.storage, Storage::Registers(_)) => {
                let start = schedule.placement(op).cycle;
                let end =
                    foreign().map(|d| after(schedule, d.to, d.distance) + graph.operation(d.to).completion()).max();
                if let Some(end) = end.filter(|end| *end > start) {
                    let amount = words.saturating_mul(4);
                    lives.push(Life { operation: op, start: start.0, end: end.0, amount });
                }
            }
            Place::Registers(_) | Place::Shared | Place::Tensor => {}
        }
    }
    lives
}

fn after(schedule: &Schedule, op: OpId, distance: u32) -> Cycles {
    schedule.placement(op).cycle + schedule.interval * distance
}

/// What is live at once in a slot of the steady state.
fn at_once(lives: &[Life], interval: i64, slot: i64) -> u64 {
    lives.iter().fold(0_u64, |sum, life| {
        let times = (life.end - 1 - slot).div_euclid(interval) - (life.start - 1 - slot).div_euclid(interval);
        sum.saturating_add(life.amount.saturating_mul(u64::try_from(times).unwrap_or(0)))
    })
}

fn folded(lives: &[Life], interval: i64) -> u64 {
    lives.iter().map(|life| at_once(lives, interval, life.start.rem_euclid(interval))).max().unwrap_or(0)
}

/// Lives in the straight-line program in which the steady state runs once (the paper).
fn unrolled(problem: &Problem, schedule: &Schedule, place: Place) -> Vec<Life> {
    let graph = problem.graph();
    // More copies than this make the report slow; such schedules have no use for it.
    let stages = schedule.stages().min(64);
    let last = schedule.interval * (stages - 1) + schedule.length;
    let shift = |i: u32| (schedule.interval * i).0;
    let mut lives = Vec::new();
    for op in graph.op_ids() {
        let amount = amount(problem, schedule, op, place);
        for i in 0..stages {
            let read = graph.uses(op).filter(|d| i.saturating_add(d.distance) < stages);
            let end = read.map(|d| after(schedule, d.to, i + d.distance) + d.hold).max();
            let carried = i + 1 == stages && graph.uses(op).any(|d| d.distance > 0);
            let end = if carried { Some(last) } else { end };
            let start = schedule.placement(op).cycle.0 + shift(i);
            lives.extend(end.filter(|e| e.0 > start).map(|end| Life { operation: op, start, end: end.0, amount }));
        }
    }
    for life in copies(problem, schedule, place) {
        let copy = |i| Life { start: life.start + shift(i), end: life.end + shift(i), ..life };
        lives.extend((0..stages).map(copy));
    }
    lives
}

fn straight(lives: &[Life]) -> u64 {
    let at = |time: i64| {
        let live = lives.iter().filter(|l| l.start <= time && time < l.end);
        live.fold(0_u64, |sum, l| sum.saturating_add(l.amount))
    };
    lives.iter().map(|l| at(l.start)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_longer_than_the_period_counts_more_than_once() {
        let life = |start, end| Life { operation: OpId::new(0), start, end, amount: 10 };
        assert_eq!(folded(&[life(0, 4)], 4), 10);
        assert_eq!(folded(&[life(0, 5)], 4), 20);
        assert_eq!(folded(&[life(3, 5), life(0, 1)], 4), 20);
        assert_eq!(folded(&[life(3, 4), life(0, 1)], 4), 10);
        assert_eq!(folded(&[], 4), 0);
    }
}
