//! Phase 1: the throughput-optimal modulo schedule, without warps: the least interval, and at it the
//! least length.

use crate::bounds;
use crate::encoding::{Candidate, Encoding, Reply};
use crate::limits::Meter;
use crate::query::{self, Found, Verdict};
use twill_graph::{Families, Problem};

/// What is known of the shortest schedule at one interval.
#[derive(Clone, Debug)]
pub(crate) struct Shortest {
    pub(crate) candidate: Candidate,
    /// No shorter one exists.
    pub(crate) proved: bool,
}

/// The least interval that dependences and units allow, and its shortest schedule.
pub(crate) enum Modulo {
    Found {
        interval: i64,
        shortest: Shortest,
    },
    /// Stopped; no interval below this one exists.
    Stopped {
        bound: i64,
    },
    /// Nothing up to the limit.
    Exhausted,
}

/// Work for the length, which is only reported: a few tenths of a second.
const LENGTH_WORK: u64 = 300_000;

/// Searches upwards from the bound: one by one, or with widening steps and then halving the gap
/// where feasibility is monotone.
pub(crate) fn schedule(problem: &Problem, limit: i64, meter: &Meter) -> Modulo {
    let monotone = bounds::tables_start_at_issue(problem);
    let (mut excluded, mut step) = (bounds::lower_bound(problem, Families::THROUGHPUT).interval.0, 1);
    let mut interval = excluded;
    let mut best: Option<(i64, Box<Found>)> = None;
    while best.as_ref().map_or(interval <= limit, |(found, _)| excluded < *found) {
        match query::ask(problem, interval, Families::THROUGHPUT, meter) {
            Verdict::Found(found) => best = Some((interval, found)),
            Verdict::Excluded { .. } => excluded = interval + 1,
            Verdict::Stopped => return Modulo::Stopped { bound: excluded },
        }
        interval = match &best {
            Some((found, _)) => excluded + (found - excluded) / 2,
            None if monotone && interval < limit => interval.saturating_add(step).min(limit),
            None => interval + 1,
        };
        step = if monotone { step.saturating_mul(2) } else { 1 };
    }
    let Some((interval, found)) = best else { return Modulo::Exhausted };
    let floor = bounds::least_length(problem, interval);
    let shortest = meter.within(LENGTH_WORK, || shorten(found.encoding, found.candidate, floor));
    Modulo::Found { interval, shortest }
}

/// The least length at one interval.
pub(crate) fn shortest_at(problem: &Problem, interval: i64, meter: &Meter) -> Option<Shortest> {
    match query::ask(problem, interval, Families::THROUGHPUT, meter) {
        Verdict::Found(found) => {
            let floor = bounds::least_length(problem, interval);
            Some(shorten(found.encoding, found.candidate, floor))
        }
        Verdict::Excluded { .. } | Verdict::Stopped => None,
    }
}

fn shorten(mut encoding: Encoding, mut candidate: Candidate, floor: i64) -> Shortest {
    while candidate.length > floor {
        let shorter = encoding.length_at_most(candidate.length - 1);
        match encoding.solve(&[shorter]) {
            Reply::Found(better) => candidate = better,
            Reply::None => break,
            Reply::Stopped => return Shortest { candidate, proved: false },
        }
    }
    Shortest { candidate, proved: true }
}
