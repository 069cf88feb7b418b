//! Phase 1: the throughput-optimal modulo schedule, without warps: the least interval, and at it the
//! least length.

use crate::bounds;
use crate::encoding::{Candidate, Encoding, Reply};
use crate::limits::Meter;
use crate::query::{self, Verdict};
use twill_graph::Problem;

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

/// Searches upwards from the bound; `work` limits the effort for the length.
pub(crate) fn schedule(problem: &Problem, limit: i64, meter: &Meter, work: Option<u64>) -> Modulo {
    let mut interval = bounds::throughput_bound(problem).interval.0;
    while interval <= limit {
        match query::ask(problem, interval, false, meter) {
            Verdict::Found(found) => {
                let work = work.unwrap_or(u64::MAX);
                let shortest = meter.within(work, || shorten(found.encoding, found.candidate));
                return Modulo::Found { interval, shortest };
            }
            Verdict::Excluded { .. } => interval += 1,
            Verdict::Stopped => return Modulo::Stopped { bound: interval },
        }
    }
    Modulo::Exhausted
}

/// The least length at one interval.
pub(crate) fn shortest_at(problem: &Problem, interval: i64, meter: &Meter) -> Option<Shortest> {
    match query::ask(problem, interval, false, meter) {
        Verdict::Found(found) => Some(shorten(found.encoding, found.candidate)),
        Verdict::Excluded { .. } | Verdict::Stopped => None,
    }
}

fn shorten(mut encoding: Encoding, mut candidate: Candidate) -> Shortest {
    loop {
        let shorter = encoding.length_at_most(candidate.length - 1);
        match encoding.solve(&[shorter]) {
            Reply::Found(better) => candidate = better,
            Reply::None => return Shortest { candidate, proved: true },
            Reply::Stopped => return Shortest { candidate, proved: false },
        }
    }
}
