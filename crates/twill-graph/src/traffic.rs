//! The traffic and FLOP of an iteration: bytes through shared memory, whose bandwidth bounds the interval, and what
//! costs energy as well.

use crate::format::is_default;
use crate::{Bytes, LoopGraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// The bytes and FLOP of one operation in an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// Bytes of shared memory that the tensor core reads and that threads read and write, each time anew: what
    /// [`Resources::shared_bytes_per_cycle`](crate::Resources::shared_bytes_per_cycle) is for.
    #[serde(skip_serializing_if = "is_default")]
    pub shared: Bytes,
    /// Bytes between global memory (its second-level cache) and the streaming multiprocessor.
    #[serde(skip_serializing_if = "is_default")]
    pub global: Bytes,
    /// Floating-point operations of the tensor core (two a product), in whole instructions.
    #[serde(skip_serializing_if = "is_default")]
    pub flop: u64,
}

impl Traffic {
    /// Returns whether nothing is known to move.
    pub fn is_nothing(&self) -> bool {
        *self == Traffic::default()
    }
}

impl Add for Traffic {
    type Output = Traffic;
    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            shared: self.shared + other.shared,
            global: self.global + other.global,
            flop: self.flop.saturating_add(other.flop),
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        *self = *self + other;
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Traffic>>(items: I) -> Traffic {
        items.fold(Traffic::default(), Add::add)
    }
}

/// The bytes and FLOP of one iteration of a loop that cost energy under every schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IterationTraffic {
    /// Bytes that pass through shared memory for the tensor core and for threads.
    pub shared: Bytes,
    /// The part of these bytes that MMAs read: an operand as often as instructions read it again.
    pub mma_operands: Bytes,
    /// Bytes between the second-level cache and the streaming multiprocessor.
    pub global: Bytes,
    /// Floating-point operations of the tensor core.
    pub flop: u64,
}

impl LoopGraph {
    /// The bytes and FLOP of one iteration, without handoffs between warp groups: those depend on the schedule.
    pub fn traffic(&self) -> IterationTraffic {
        let all: Traffic = self.operations().iter().map(|op| op.traffic).sum();
        let mmas = self.operations().iter().map(|op| op.traffic).filter(|t| t.flop > 0);
        let mma_operands = mmas.map(|t| t.shared).sum();
        IterationTraffic { shared: all.shared, mma_operands, global: all.global, flop: all.flop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn an_iteration_adds_up_its_operations() {
        let mut each = [
            Traffic { shared: Bytes(100), global: Bytes(0), flop: 8 },
            Traffic { shared: Bytes(30), global: Bytes(0), flop: 0 },
            Traffic { shared: Bytes(0), global: Bytes(7), flop: 0 },
        ]
        .into_iter();
        let toy = builtin::find("toy-attention").unwrap().graph;
        assert_eq!(toy.traffic(), IterationTraffic::default());
        let moving = toy.map(|op| op.traffic = each.next().unwrap(), |_| {}).unwrap();
        let whole = IterationTraffic { shared: Bytes(130), mma_operands: Bytes(100), global: Bytes(7), flop: 8 };
        assert_eq!(moving.traffic(), whole);
    }
}
