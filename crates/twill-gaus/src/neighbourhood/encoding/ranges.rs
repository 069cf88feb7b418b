//! How far a window's operations can go, and how large its encoding would be.

use super::{Around, Window};
use crate::neighbourhood::tracks::Counted;

/// Least and greatest steps of the window's operations, with all others where they are.
pub(super) fn ranges(around: Around<'_, '_>, window: &Window, index: &[u32]) -> Vec<(i64, i64)> {
    let Around { model, steps, .. } = around;
    let range = |&v: &usize| {
        let reach = window.reach.unwrap_or(i64::MAX);
        (model.earliest[v].max(steps[v].saturating_sub(reach)), model.latest[v].min(steps[v].saturating_add(reach)))
    };
    let mut ranges: Vec<(i64, i64)> = window.ops.iter().map(range).collect();
    // To the fixed point, by rounds; the schedule itself is within, so there is one.
    let mut changed = true;
    while changed {
        changed = false;
        for (at, &v) in window.ops.iter().enumerate() {
            let of = |ranges: &[(i64, i64)], op: usize| match ranges.get(index[op] as usize) {
                Some(&range) => range,
                None => (steps[op], steps[op]),
            };
            let lows = model.precedence.predecessors(v).iter().map(|p| of(&ranges, p.op()).0 + p.lag);
            let highs = model.precedence.successors(v).iter().map(|s| of(&ranges, s.op()).1 - s.lag);
            let (low, high) = ranges[at];
            let tight = (lows.fold(low, i64::max), highs.fold(high, i64::min));
            changed |= tight != (low, high);
            ranges[at] = tight;
        }
    }
    ranges
}

/// Literals of clauses and sums, roughly.
pub(super) fn estimate(around: Around<'_, '_>, window: &Window, ranges: &[(i64, i64)]) -> i64 {
    let Around { model, costs, .. } = around;
    let stored = costs.tracks.iter().any(|track| track.counted == Counted::Storage);
    let one = |(&v, &(low, high)): (&usize, &(i64, i64))| {
        let edges = (model.edges_of(v).len() + model.edges_into(v).len()) as i64;
        let (width, uses) = (high - low, model.uses[v].iter());
        // Each live step of a value is a clause for each of its readers.
        let lives = if stored { 4 * edges * (width + 1) } else { 0 };
        2 * width + 2 * edges * width + lives + uses.map(|used| 4 * (width + used.steps)).sum::<i64>()
    };
    window.ops.iter().zip(ranges).map(one).fold(0, i64::saturating_add)
}
