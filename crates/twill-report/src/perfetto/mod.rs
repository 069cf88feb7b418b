//! Schedules as traces for [Perfetto](https://perfetto.dev): TrackEvent protobuf, files that end in `.pftrace`.
//!
//! One clock cycle is one nanosecond of the trace. docs/report.md says which tracks there are.

mod dataflow;
mod message;
mod schedule;
#[cfg(test)]
mod tests;
mod trace;

pub use dataflow::dataflow_perfetto;

use crate::run::{self, Run};
use schedule::Loops;
use twill_graph::{Problem, Schedule};

/// Iterations that a trace shows unless it is told otherwise: all stages, then the steady state for three intervals.
pub fn trace_iterations(schedule: &Schedule) -> u32 {
    run::iterations(schedule, 3)
}

/// A trace of the first `iterations` iterations (at least one) of each loop, the loops one after the other.
///
/// The loops are of one machine, as those of a kernel are. Without loops, the trace has no events. The same arguments
/// give the same bytes. Deterministic and without side effects.
pub fn perfetto(loops: &[(&Problem, &Schedule)], iterations: u32) -> Vec<u8> {
    let runs: Vec<Run<'_>> = loops.iter().map(|(problem, schedule)| Run::new(problem, schedule, iterations)).collect();
    Loops::new(&runs).trace()
}
