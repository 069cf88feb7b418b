//! The least latency: the longest path, and the least bound at which no resource is asked for more than there is.

use super::resources::peak;
use crate::control::Clock;
use crate::{Mobility, MobilityError, Precedence};
use twill_graph::{DataflowProblem, UnitId};

/// A lower bound on the latest finish, and whether it is that of the longest path.
pub(super) fn latency(
    problem: &DataflowProblem,
    precedence: &Precedence,
    clock: &Clock<'_>,
) -> Result<(u64, bool), MobilityError> {
    let graph = &problem.graph;
    let within = |bound| Mobility::within(graph, precedence, bound, problem.interval);
    let path = within(None)?.latency;
    let fits = |bound: u64| {
        let Ok(mobility) = within(Some(bound)) else { return false };
        graph.resources().iter().enumerate().all(|(r, resource)| {
            resource.limit.is_none_or(|limit| {
                let limit = i128::from(limit);
                peak(graph, Some(&mobility), problem.interval, UnitId::new(r), limit, clock) <= limit
            })
        })
    };
    // By then everything can be done one after another, if it can be done at this interval at all.
    let uses = graph.operations().iter().flat_map(|op| &op.uses);
    let serial: u64 = uses.map(|u| u64::from(u.offset) + u64::from(u.steps)).sum();
    let (mut low, mut high) = (path, path.saturating_add(serial));
    while low < high && !clock.is_over() {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    Ok((low, low == path))
}
