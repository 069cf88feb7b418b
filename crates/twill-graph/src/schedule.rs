//! A software pipeline with a warp assignment.

use crate::saturate;
use crate::{Bytes, Columns, Cycles, GroupId, GroupRole, OpId};

/// When and where each operation issues, and the storage that follows from it.
///
/// A `Schedule` is a claim. Only `twill-check` turns it into a `Verified<Schedule>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Initiation interval `I`: cycles from one iteration to the next.
    pub interval: Cycles,
    /// Length `L` of one iteration: `max(t + max(1, cycles))`.
    pub length: Cycles,
    /// One placement an operation, in the graph's order.
    pub placements: Vec<Placement>,
    /// The groups in use, by ascending id.
    pub groups: Vec<WarpGroup>,
    /// Values that pass from one group to another.
    pub channels: Vec<Channel>,
    /// Buffers of streaming loads.
    pub rings: Vec<Ring>,
}

/// When an operation issues, and on which group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Issue cycle within its own iteration, from 0.
    pub cycle: Cycles,
    /// The group that issues it.
    pub group: GroupId,
}

/// A warp group in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpGroup {
    /// Its place in the problem's pool.
    pub id: GroupId,
    /// Its purpose.
    pub role: GroupRole,
    /// Warps that work.
    pub warps: u32,
    /// Registers each of its threads is given.
    pub registers_per_thread: u32,
}

/// A value that passes from the group that makes it to another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The operation whose result it is.
    pub value: OpId,
    /// Producing group.
    pub from: GroupId,
    /// Reading group.
    pub to: GroupId,
    /// Where it passes.
    pub storage: ChannelStorage,
    /// Copies that may be in flight at once.
    pub depth: u32,
}

/// Where a channel keeps one copy of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelStorage {
    /// The handoff of a register value through a buffer in shared memory.
    Handoff(Bytes),
    /// The value lives in shared memory.
    Shared(Bytes),
    /// The value lives in tensor memory.
    Tensor(Columns),
}

/// The ring buffer of a streaming load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The load.
    pub load: OpId,
    /// Bytes of one slot.
    pub bytes: Bytes,
    /// Slots.
    pub depth: u32,
}

impl Schedule {
    /// Overlapped copies of the loop body: `N = ⌈L / I⌉`.
    pub fn stages(&self) -> u32 {
        saturate::<u32>(self.length.div_ceil(self.interval).max(1))
    }

    /// Where and when an operation is placed.
    pub fn placement(&self, op: OpId) -> Placement {
        self.placements[op.index()]
    }

    /// The stage in which an operation issues: `⌊t / I⌋`.
    pub fn stage(&self, op: OpId) -> i64 {
        self.placement(op).cycle.stage(self.interval)
    }

    /// The slot of the steady state in which an operation issues: `t mod I`.
    pub fn slot(&self, op: OpId) -> Cycles {
        self.placement(op).cycle.slot(self.interval)
    }
}
