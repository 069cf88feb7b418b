//! Bounds on the interval without search: `ResMII = max_r ⌈Σ blocking / limit⌉`, `RecMII = max over cycles ⌈Σd / Σδ⌉`
//! (Rau, MICRO 1994).

use super::net::Net;
use twill_graph::saturate;
use twill_graph::{Cycles, LowerBound, LowerBoundKind, ModuloProblem, UnitId};

/// The larger of both, with its witness.
pub(crate) fn lower_bound(net: &Net) -> LowerBound {
    let best = resource_bound(net.problem);
    recurrence_above(net, best.interval.0).unwrap_or(best)
}

fn resource_bound(problem: &ModuloProblem) -> LowerBound {
    let mut best = LowerBound { interval: Cycles(1), kind: LowerBoundKind::Trivial };
    for (index, resource) in problem.resources().iter().enumerate() {
        let Some(limit) = resource.limit else { continue };
        let users = problem.operations().iter().filter(|op| op.resource == UnitId::new(index));
        let operations: Vec<String> = users.map(|op| op.name.clone()).collect();
        let busy = Cycles(operations.len() as i64 * i64::from(resource.blocking));
        let interval = Cycles(busy.div_ceil(Cycles(limit.into())));
        if interval > best.interval {
            let unit = resource.name.clone();
            best = LowerBound { interval, kind: LowerBoundKind::Resource { unit, busy, capacity: limit, operations } };
        }
    }
    best
}

/// RecMII, if it is above `interval`: a cycle that is too long there gives the interval that it allows, until no cycle is
/// too long (Newton's method; few steps).
fn recurrence_above(net: &Net, mut interval: i64) -> Option<LowerBound> {
    let mut critical = None;
    while let Err(cycle) = net.potentials(interval) {
        let delay: i64 = cycle.iter().map(|d| d.delay.0).sum();
        let distance: i64 = cycle.iter().map(|d| i64::from(d.distance)).sum();
        // `ModuloProblem::new` refuses cycles within one iteration.
        interval = Cycles(delay).div_ceil(Cycles(distance));
        critical = Some((cycle, delay, distance));
    }
    let (cycle, delay, distance) = critical?;
    let name = |v: twill_graph::OpId| net.problem.operations()[v.index()].name.clone();
    let operations = cycle.iter().map(|d| name(d.from)).chain(cycle.last().map(|d| name(d.to))).collect();
    let distance = saturate::<u32>(distance);
    let kind = LowerBoundKind::Recurrence { operations, delay: Cycles(delay), distance };
    Some(LowerBound { interval: Cycles(interval), kind })
}
