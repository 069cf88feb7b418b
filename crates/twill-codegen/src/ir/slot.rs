//! Slots of buffers, their values, and the operands of MMAs in them.

use super::{BarrierId, BufferId, CursorId, IterationNumber, VariableId};
use crate::passes::steps::program::Iteration;
use twill_graph::{LoopOperation, OpId};

/// A part of a tile in shared or tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The buffer.
    pub buffer: BufferId,
    /// The slot; the only one if there is none.
    pub at: Option<CursorId>,
    /// Dimension, first index and extent of a part.
    pub slice: Option<(usize, u64, u64)>,
    /// Rows and columns change places.
    pub transposed: bool,
    /// The value in it.
    pub value: SlotValue,
}

/// A value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryValue {
    /// The result of an operation of a loop.
    Result(LoopOperation),
    /// An invariant tile, or a part of one.
    Invariant(u32),
    /// What a group stores outside of loops, by the number in its module of the store of the source, or of what makes it.
    Staged(u32),
    /// A loop's result that a group hands to another after the loop.
    Exported(u32),
}

/// A value of an iteration, in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotValue {
    /// Which value.
    pub id: MemoryValue,
    /// Of which iteration; the first where no loop makes it.
    pub at: IterationNumber,
}

impl SlotValue {
    /// The result of an operation of loop `index`.
    pub fn result(index: usize, op: OpId, iteration: Iteration) -> SlotValue {
        SlotValue { id: MemoryValue::Result(LoopOperation { index, op }), at: IterationNumber { index, iteration } }
    }

    /// A value that no loop makes.
    pub fn outside(id: MemoryValue) -> SlotValue {
        SlotValue { id, at: IterationNumber { index: 0, iteration: Iteration::Absolute(0) } }
    }
}

/// An operand of an MMA.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// In shared or tensor memory.
    Shared(Slot),
    /// In registers.
    Registers(VariableId),
}

/// An MMA whose result stays in tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcgen05Mma {
    /// Rows × depth.
    pub left: Slot,
    /// Depth × columns.
    pub right: Slot,
    /// The result.
    pub to: Slot,
    /// What it adds to.
    pub addend: Addend,
    /// Signalled when it and all MMAs before it are done.
    pub signals: Vec<(BarrierId, CursorId)>,
}

/// What an MMA in tensor memory adds to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addend {
    /// Nothing.
    Zero,
    /// What another operation put in the place of its result.
    Value(SlotValue),
    /// Its result of the iteration before.
    Before,
    /// Its result of the iteration before; nothing in the first.
    BeforeUnlessFirst(crate::ir::IterationNumber),
}
