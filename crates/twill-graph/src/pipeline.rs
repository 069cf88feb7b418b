//! A software pipeline without warps: the modulo schedule of phase 1 (docs/model.md).

use crate::{Cycles, GroupId, LoopGraph, Placement, Schedule};

/// When each operation issues; no groups, registers or buffers.
///
/// A `Pipeline` is a claim. Only `twill-check` turns it into a `Verified<Pipeline>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Initiation interval `I`.
    pub interval: Cycles,
    /// Length `L` of one iteration: `max(M + max(1, cycles))`.
    pub length: Cycles,
    /// Issue cycles `M` within an iteration, from 0, in the graph's order.
    pub cycles: Vec<Cycles>,
}

impl Pipeline {
    /// The pipeline of a loop with these issue cycles, in the graph's order; `None` for a loop without operations.
    pub fn of(graph: &LoopGraph, interval: Cycles, cycles: Vec<Cycles>) -> Option<Pipeline> {
        let ends = cycles.iter().zip(graph.operations()).map(|(cycle, op)| *cycle + op.span());
        Some(Pipeline { interval, length: ends.max()?, cycles })
    }

    /// Overlapped copies of the loop body: `N = ⌈L / I⌉`.
    pub fn stages(&self) -> u32 {
        self.times_alone().stages()
    }

    /// The same issue cycles for code that reads nothing else of a schedule: every operation names group 0, and no
    /// group is listed.
    pub fn times_alone(&self) -> Schedule {
        let placement = |&cycle| Placement { cycle, group: GroupId::new(0) };
        Schedule {
            interval: self.interval,
            length: self.length,
            placements: self.cycles.iter().map(placement).collect(),
            groups: Vec::new(),
            channels: Vec::new(),
            rings: Vec::new(),
        }
    }
}

impl AsRef<Pipeline> for Pipeline {
    fn as_ref(&self) -> &Pipeline {
        self
    }
}
