//! Lifetimes of values: spans of storage, and their sums.
//!
//! The result of `v` of iteration 0 is live from its issue to the last moment at which someone
//! reads it, `max over its value dependences (v, u, δ) of t_u + δI + hold`; a result that nobody
//! reads is not kept.
//!
//! Under [`Liveness::Folded`] the loop is run to its steady state. Under [`Liveness::Paper`] it is
//! run for `N = ⌈L / I⌉` iterations from its first cycle to its last: reads by iterations that
//! do not exist do not count, and the last copy of a value with a carried read is live to the end.

use crate::placed::{Placed, amount, completion};
use crate::unroll::{Instance, Peak, Run, Span};
use crate::{Held, Holders, Moment, Violation};
use twill_graph::{Cycles, Liveness, OpId, Storage};

/// Most stretches of storage and reads of them that a straight-line program may have.
const STRAIGHT_LINE: i128 = 1 << 22;

/// A stretch of storage that every iteration takes.
pub(crate) struct Life {
    pub op: OpId,
    pub held: Held,
    /// When it begins, for the copy of iteration 0.
    pub start: i128,
    /// Until when each reader needs it, as if it were in iteration 0 too, and by how many iterations
    /// the reader is later.
    pub reads: Vec<(i128, u32)>,
    pub amount: u64,
}

impl Life {
    /// The life of the result of `op`.
    pub fn of_result(placed: &Placed, op: OpId, amount: u64) -> Life {
        let reads =
            placed.readers(op).iter().map(|d| (placed.issue(d.to) + i128::from(d.hold.0), d.distance)).collect();
        Life { op, held: Held::Result, start: placed.issue(op), reads, amount }
    }

    /// When the copy of iteration 0 ends, in a loop that goes on.
    pub fn end(&self, interval: i128) -> i128 {
        self.reads.iter().map(|(end, later)| end + i128::from(*later) * interval).max().unwrap_or(self.start)
    }
}

/// The most that `lives` take together, if they take anything, and the run in which that was seen.
pub(crate) fn most(placed: &Placed, lives: &[Life]) -> Option<(Peak, Run)> {
    let interval = placed.interval;
    let spans = lives.iter().map(|life| Span {
        op: life.op,
        held: life.held,
        start: life.start,
        end: life.end(interval),
        amount: life.amount,
    });
    let run = match placed.problem.options().liveness {
        Liveness::Folded => Run::unroll(spans.collect(), interval),
        Liveness::Paper => Run::of(spans.collect(), straight_line(placed, lives), interval),
    };
    run.peak().map(|peak| (peak, run))
}

fn straight_line(placed: &Placed, lives: &[Life]) -> Vec<Instance> {
    let (interval, copies) = (placed.interval, copies(placed));
    let over = (copies - 1) * interval + placed.length();
    let mut instances = Vec::new();
    for iteration in 0..copies {
        for (span, life) in lives.iter().enumerate() {
            let in_time = life.reads.iter().filter(|(_, later)| iteration + i128::from(*later) < copies);
            let last = in_time.map(|(end, later)| end + (iteration + i128::from(*later)) * interval).max();
            let carried = life.reads.iter().any(|(_, later)| *later > 0);
            let end = if carried && iteration == copies - 1 { Some(over) } else { last };
            let start = life.start + iteration * interval;
            instances.extend(end.map(|end| Instance { span, start, end: end.min(over) }));
        }
    }
    instances
}

/// `N`, from the placements.
fn copies(placed: &Placed) -> i128 {
    let (length, interval) = (placed.length(), placed.interval);
    length / interval + i128::from(length % interval != 0)
}

/// Returns whether the storage of this schedule can be replayed: a steady state always, a straight-line
/// program if it is not too long.
pub(crate) fn replayable(placed: &Placed) -> Result<(), Violation> {
    let graph = placed.graph();
    let limit = STRAIGHT_LINE / (graph.operations().len() + graph.dependences().len()).max(1) as i128;
    match placed.problem.options().liveness {
        Liveness::Paper if copies(placed) > limit => {
            Err(Violation::TooManyCopies { copies: amount(copies(placed)), limit: amount(limit) })
        }
        Liveness::Paper | Liveness::Folded => Ok(()),
    }
}

/// Handoff buffers: what a register result takes in shared memory while it passes to other
/// groups, from the issue of the operation until the last consumer elsewhere is over.
pub(crate) fn handoff_buffer(placed: &Placed, op: OpId) -> Option<Life> {
    let Storage::Registers(words) = placed.graph().operation(op).storage else { return None };
    let reads: Vec<(i128, u32)> = placed
        .readers(op)
        .iter()
        .filter(|d| placed.group(d.to) != placed.group(op))
        .map(|d| (placed.issue(d.to) + completion(placed.graph().operation(d.to)), d.distance))
        .collect();
    let bytes = words.0.saturating_mul(4);
    (!reads.is_empty()).then_some(Life { op, held: Held::Handoff, start: placed.issue(op), reads, amount: bytes })
}

/// When the most is taken, and by whom; cycle 0 and nobody when nothing is.
pub(crate) fn place(placed: &Placed, most: Option<(Peak, Run)>) -> (Moment, Holders) {
    match most {
        Some((peak, run)) => (run.moment(peak.cycle), run.holders(placed, peak.cycle)),
        None => (Moment { slot: Cycles::ZERO, cycle: Some(Cycles::ZERO) }, Holders(Vec::new())),
    }
}
