//! The least initiation interval, as resources and recurrences by themselves have it.
//!
//! `ResMII = max_r ⌈Σ amount · steps / limit_r⌉`, and no operation by itself may meet itself on more than there is;
//! `RecMII = max over cycles ⌈Σ delay / Σ distance⌉` (Rau, "Iterative Modulo Scheduling", MICRO 1994).

use super::energy::ceiling;
use crate::Precedence;
use twill_graph::{Dataflow, DataflowOperation};

/// No schedule has a smaller interval than either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBound {
    /// `ResMII`, at least 1.
    pub resources: u64,
    /// `RecMII`, at least 1.
    pub recurrences: u64,
}

impl IntervalBound {
    /// `MII`, the greater of the two.
    pub fn least(self) -> u64 {
        self.resources.max(self.recurrences)
    }
}

/// The bound of a graph.
pub fn least_interval(graph: &Dataflow) -> IntervalBound {
    IntervalBound { resources: resources(graph), recurrences: recurrences(graph) }
}

fn resources(graph: &Dataflow) -> u64 {
    let mut least = 1;
    for (index, resource) in graph.resources().iter().enumerate() {
        let Some(limit) = resource.limit else { continue };
        let uses = graph.operations().iter().flat_map(|op| &op.uses).filter(|u| u.resource.index() == index);
        let energy: i128 = uses.map(|u| i128::from(u.amount) * i128::from(u.steps)).sum();
        // Sums are at most 2^48.
        least = least.max(ceiling(energy, limit.into()) as u64);
    }
    // An operation holds something in at most this many steps in a row; from there on it cannot meet itself.
    let longest = |op: &DataflowOperation| op.uses.iter().map(|u| u64::from(u.offset) + u64::from(u.steps)).max();
    let most = graph.operations().iter().filter_map(longest).max().unwrap_or(1);
    while least < most && !graph.operations().iter().all(|op| fits_alone(graph, op, least)) {
        least += 1;
    }
    least
}

/// Whether an operation does not meet itself on more than there is.
pub(crate) fn fits_alone(graph: &Dataflow, op: &DataflowOperation, interval: u64) -> bool {
    op.uses.iter().all(|used| {
        let Some(limit) = graph.resources()[used.resource.index()].limit else { return true };
        // The most of one resource is in use where one of its uses begins.
        let begin = u64::from(used.offset);
        let at_begin = op.uses.iter().filter(|other| other.resource == used.resource).map(|other| {
            let since = (begin + interval - u64::from(other.offset) % interval) % interval;
            let (rounds, rest) = (u64::from(other.steps) / interval, u64::from(other.steps) % interval);
            u128::from(other.amount) * u128::from(rounds + u64::from(since < rest))
        });
        at_begin.sum::<u128>() <= u128::from(limit)
    })
}

fn recurrences(graph: &Dataflow) -> u64 {
    // Delays and distances of at least 1 around a cycle: the sum of delays is always enough.
    let delays: i64 = graph.dependences().iter().map(|d| d.delay.max(0)).sum();
    let (mut low, mut high) = (1, delays.max(1) as u64);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut starts = vec![0; graph.operations().len()];
        if Precedence::new(graph, Some(middle)).raise(&mut starts) { high = middle } else { low = middle + 1 }
    }
    low
}
