//! How much of a resource any schedule needs in one step, by [energy](super::energy) and [spaced steps](super::spaced) within
//! mobility windows.

use super::energy::{Part, ceiling, densest};
use super::spaced::spaced;
use crate::Mobility;
use crate::control::Clock;
use twill_graph::{Dataflow, UnitId};

/// A lower bound on the peak of `resource`; stops where it exceeds `enough`. `mobility` where latency is bounded.
pub(super) fn peak(
    graph: &Dataflow,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
    resource: UnitId,
    enough: i128,
    clock: &Clock<'_>,
) -> i128 {
    let uses = graph.operations().iter().enumerate().flat_map(|(op, o)| o.uses.iter().map(move |used| (op, used)));
    let uses = || uses.clone().filter(|(_, used)| used.resource == resource);
    // Each by itself: it overlaps itself every interval.
    let copies = |steps: u32| interval.map_or(1, |ii| ceiling(steps.into(), ii.into()));
    let alone = uses().map(|(_, used)| copies(used.steps) * i128::from(used.amount)).max().unwrap_or(0);
    let Some(mobility) = mobility else {
        let energy: i128 = uses().map(|(_, used)| i128::from(used.steps) * i128::from(used.amount)).sum();
        return alone.max(interval.map_or(0, |ii| ceiling(energy, ii.into())));
    };
    let parts: Vec<Part> = uses()
        .map(|(op, used)| Part {
            first: mobility.earliest[op] as i64 + i64::from(used.offset),
            last: mobility.latest[op] as i64 + i64::from(used.offset),
            steps: used.steps.into(),
            amount: used.amount as i64,
        })
        .collect();
    let energy = alone.max(densest(&parts, interval, enough, clock));
    if energy > enough || clock.is_over() { energy } else { energy.max(spaced(&parts, interval, enough, clock)) }
}
