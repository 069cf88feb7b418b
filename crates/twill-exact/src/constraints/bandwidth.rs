//! The bytes that an iteration moves through shared memory take no longer than the interval:
//! `Σ_v shared(v) ≤ I · bytes per cycle`.
//!
//! A count, not a reservation: neither issue cycles nor groups matter, so it is a bound on `I` and nothing else.

use std::cmp::Reverse;
use twill_graph::saturate;
use twill_graph::{Bytes, Cycles, LowerBound, LowerBoundKind, OpId, Problem};

/// The least interval that moves the bytes of an iteration; `None` where there is no limit, or nothing to move.
pub(crate) fn bound(problem: &Problem) -> Option<LowerBound> {
    let bytes_per_cycle = problem.resources().shared_bytes_per_cycle?;
    let graph = problem.graph();
    let moved = |op: OpId| graph.operation(op).traffic.shared;
    let bytes: Bytes = graph.op_ids().map(moved).sum();
    if bytes == Bytes(0) {
        return None;
    }
    let mut movers: Vec<OpId> = graph.op_ids().filter(|op| moved(*op) > Bytes(0)).collect();
    movers.sort_by_key(|op| Reverse(moved(*op)));
    let operations = movers.into_iter().map(|op| graph.operation(op).name.clone()).collect();
    let kind = LowerBoundKind::SharedBandwidth { bytes, bytes_per_cycle, operations };
    let cycles = bytes.0.div_ceil(bytes_per_cycle.0.max(1));
    Some(LowerBound { interval: Cycles(saturate::<i64>(cycles)), kind })
}

/// Returns whether shared memory moves the bytes of an iteration in an interval.
pub(crate) fn holds(problem: &Problem, interval: i64) -> bool {
    bound(problem).is_none_or(|bound| bound.interval.0 <= interval)
}
