//! How much storage is live at once: the sums of docs/model.md, "Live values, folded", "Consumer
//! registers", "Handoff buffers", and the paper's variant.
//!
//! An interval `[start, end)` of one iteration is live `⌊(end−1−r)/I⌋ − ⌊(start−1−r)/I⌋` times in
//! slot `r`. The sum is greatest at the start of some interval.

use std::collections::BTreeSet;
use twill_graph::saturate;
use twill_graph::{Cycles, Dependence, GroupId, Liveness, OpId, Problem, Ring, Schedule, Storage};

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

/// The value of one iteration in a memory space until its last read.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Whose result it is.
    operation: OpId,
    /// Cycle of its iteration.
    pub(crate) start: i64,
    /// Its readers.
    pub(crate) reads: Vec<Read>,
    /// Words, bytes or columns.
    pub(crate) amount: u64,
    /// True if it is a copy for another group.
    is_copy: bool,
}

/// A reader of what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// Iterations later.
    pub(crate) distance: u32,
    /// Cycle of the value's iteration in which it is over.
    pub(crate) until: i64,
}

impl Kept {
    /// For how long, if it takes anything.
    fn life(&self) -> Option<Life> {
        let Kept { operation, start, amount, .. } = *self;
        let end = self.reads.iter().map(|read| read.until).max()?;
        (amount > 0 && end > start).then_some(Life { operation, start, end, amount })
    }
}

/// The memory that a value may live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemorySpace {
    /// Registers of a group, in words.
    Registers(GroupId),
    /// Shared memory without rings, in bytes.
    Shared,
    /// Tensor memory, in columns.
    Tensor,
}

/// The most that is live at once in a memory space, without what is reserved there.
pub(crate) fn peak(problem: &Problem, schedule: &Schedule, space: MemorySpace) -> u64 {
    let interval = schedule.interval.0.max(1);
    match problem.options().liveness {
        Liveness::Folded => folded(&lives(problem, schedule, space), interval),
        Liveness::Paper => straight(&unrolled(problem, schedule, space)),
    }
}

/// The value of each iteration in a memory space, and its lifetime.
pub(crate) fn lives(problem: &Problem, schedule: &Schedule, space: MemorySpace) -> Vec<Life> {
    kept(problem, schedule, space).iter().filter_map(Kept::life).collect()
}

/// The live amounts over the cycles of the steady state: where they change, from cycle 0 on, and to how much.
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
    let read = || graph.uses(ring.load).map(|d| after(schedule, d));
    let over = graph.uses(ring.load).map(|d| after(schedule, d) + graph.operation(d.to).completion());
    let issue = schedule.placement(ring.load).cycle;
    let start = read().min().map_or(issue, |first| first - graph.operation(ring.load).transfer_latency);
    let end = over.max().unwrap_or(issue);
    Life { operation: ring.load, start: start.0, end: end.0, amount: ring.bytes.0 }
}

/// The values of a memory space: values in their own, and copies of register values for other groups, at the consumer or in
/// handoff buffers.
pub(crate) fn kept(problem: &Problem, schedule: &Schedule, space: MemorySpace) -> Vec<Kept> {
    let ops = problem.graph().op_ids();
    ops.flat_map(|op| own(problem, schedule, space, op).into_iter().chain(copies(problem, schedule, space, op)))
        .collect()
}

/// The result of an operation in its own space.
fn own(problem: &Problem, schedule: &Schedule, space: MemorySpace, op: OpId) -> Option<Kept> {
    let graph = problem.graph();
    let operation = graph.operation(op);
    let amount = match (operation.storage, space) {
        (Storage::Registers(words), MemorySpace::Registers(group)) if schedule.placement(op).group == group => words.0,
        (Storage::Shared(bytes), MemorySpace::Shared) if !operation.streaming => bytes.0,
        (Storage::Tensor(columns), MemorySpace::Tensor) => columns.0,
        _ => return None,
    };
    let reads = graph.uses(op).map(|d| Read { distance: d.distance, until: (after(schedule, d) + d.hold).0 }).collect();
    Some(Kept { operation: op, start: schedule.placement(op).cycle.0, reads, amount, is_copy: false })
}

/// Copies of an operation's register values for other groups.
fn copies(problem: &Problem, schedule: &Schedule, space: MemorySpace, op: OpId) -> Vec<Kept> {
    let graph = problem.graph();
    let Storage::Registers(words) = graph.operation(op).storage else { return Vec::new() };
    let home = schedule.placement(op).group;
    let foreign = || graph.uses(op).filter(|d| schedule.placement(d.to).group != home);
    match space {
        MemorySpace::Registers(group) if problem.options().consumer_registers => {
            let here = foreign().filter(|d| schedule.placement(d.to).group == group);
            let read = here.filter(|d| !graph.operation(d.to).variable_latency).map(|d| {
                let start = schedule.placement(d.to).cycle;
                let reads = vec![Read { distance: 0, until: (start + graph.operation(d.to).span()).0 }];
                Kept { operation: op, start: start.0, reads, amount: words.0, is_copy: true }
            });
            read.collect()
        }
        MemorySpace::Shared => {
            let over = |d: &Dependence| (after(schedule, d) + graph.operation(d.to).completion()).0;
            let reads: Vec<Read> = foreign().map(|d| Read { distance: d.distance, until: over(d) }).collect();
            let (start, amount) = (schedule.placement(op).cycle.0, words.0.saturating_mul(4));
            vec![Kept { operation: op, start, reads, amount, is_copy: true }]
        }
        MemorySpace::Registers(_) | MemorySpace::Tensor => Vec::new(),
    }
}

/// Issue of the operation that a dependence leads to, in cycles of the iteration that it comes from.
fn after(schedule: &Schedule, dependence: &Dependence) -> Cycles {
    schedule.placement(dependence.to).cycle + schedule.interval * dependence.distance
}

/// The live amount in a slot of the steady state.
fn at_once(lives: &[Life], interval: i64, slot: i64) -> u64 {
    lives.iter().fold(0_u64, |sum, life| {
        let times = (life.end - 1 - slot).div_euclid(interval) - (life.start - 1 - slot).div_euclid(interval);
        sum.saturating_add(life.amount.saturating_mul(saturate::<u64>(times)))
    })
}

fn folded(lives: &[Life], interval: i64) -> u64 {
    lives.iter().map(|life| at_once(lives, interval, life.start.rem_euclid(interval))).max().unwrap_or(0)
}

/// Lives in the straight-line program in which the steady state runs once (the paper).
fn unrolled(problem: &Problem, schedule: &Schedule, space: MemorySpace) -> Vec<Life> {
    // More copies than this make the report slow; such schedules have no use for it.
    let stages = schedule.stages().min(64);
    let last = schedule.interval * (stages - 1) + schedule.length;
    let mut lives = Vec::new();
    for kept in kept(problem, schedule, space) {
        for i in 0..stages {
            let shift = (schedule.interval * i).0;
            // A handoff is counted whole; a value in its own space as far as the program goes.
            let read = kept.reads.iter().filter(|read| kept.is_copy || i.saturating_add(read.distance) < stages);
            let end = read.map(|read| read.until + shift).max();
            let carried = !kept.is_copy && i + 1 == stages && kept.reads.iter().any(|read| read.distance > 0);
            let end = if carried { Some(last.0) } else { end };
            let (operation, start, amount) = (kept.operation, kept.start + shift, kept.amount);
            lives.extend(end.filter(|end| *end > start).map(|end| Life { operation, start, end, amount }));
        }
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
