//! What passes find out for later ones.

use crate::ir::{BarrierId, BufferId, NamedBarrierId, Region};
use crate::passes::steps::program::BufferId as LoopBufferId;
use std::collections::HashMap;
use twill_graph::{GroupId, OpId};
use twill_triton::mlir::{OperationId, ValueId};

/// A part of a tile that is loaded before the loops and stays in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct InvariantTile {
    /// The load.
    pub load: OperationId,
    pub region: Region,
    pub program: Option<u32>,
    pub buffer: BufferId,
    pub full: BarrierId,
    pub empty: BarrierId,
    pub readers: Vec<GroupId>,
}

/// Where the values of the loops are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopStorage {
    /// By loop and buffer of its steps, the buffer of the program.
    pub buffers: HashMap<(usize, LoopBufferId), BufferId>,
    /// By loop, buffer and value, the barrier that says that it is full.
    pub full: HashMap<(usize, BufferId, OpId), BarrierId>,
    /// By buffer, the barrier that says that a slot is empty.
    pub empty: HashMap<BufferId, BarrierId>,
}

/// Barriers around the results that a loop leaves in tensor memory.
#[derive(Clone, Debug)]
pub(crate) struct ResultBarriers {
    /// All MMAs of the loop are done.
    pub done: BarrierId,
    /// Everybody has read the results; there where the CTA works on another tile afterwards.
    pub drained: Option<BarrierId>,
    /// Who reads them.
    pub readers: Vec<GroupId>,
}

/// A result in a group's registers that another group reads after the loop.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub index: usize,
    pub op: OpId,
    pub from: GroupId,
    pub to: GroupId,
    pub buffer: BufferId,
    pub full: BarrierId,
    pub empty: Option<BarrierId>,
}

/// A carried sum.
#[derive(Clone, Debug)]
pub(crate) struct CarriedSum {
    /// The carried value: its position.
    pub carried: usize,
    /// The operation that sums a tile's rows.
    pub reduce: OpId,
    /// The tile that is summed.
    pub tile: ValueId,
    /// What the sum so far is multiplied by.
    pub factor: Option<ValueId>,
}

/// The groups that alternate on the tensor core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PingPong {
    /// The groups, in the order of their slots.
    pub order: Vec<GroupId>,
    /// Per loop and group, the MMAs of its slot in order.
    pub slots: Vec<Vec<(GroupId, Vec<OpId>)>>,
}

/// An MMA in its group's slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingPongSlot {
    /// Its position in the slot.
    pub position: usize,
    /// The barrier at which the group waits for its slot.
    pub own: NamedBarrierId,
    /// The barrier at which the next group waits.
    pub next: NamedBarrierId,
}
