//! Warp programs: what each warp group does in which order, as plain data.
//!
//! # How it follows from the schedule
//!
//! Everything a group does has a time in the schedule: an operation issues at `t`; the result of an
//! asynchronous one is committed for other groups at `t + latency`, and it gives up a buffer that it
//! reads when the schedule says that it has read it; what a synchronous one needs no more or has
//! made is passed on after it.
//! A streaming load stands `transfer_latency` cycles before its first reader, whatever the
//! schedule says, because its ring was sized for that. A group does its steps in the order of
//! these times; what happens at the same time is ordered by what depends on what, then asynchronous
//! operations before synchronous ones (they only start), then by index, the same way for all groups.
//!
//! # Why it cannot deadlock
//!
//! Every wait is for a step with an earlier place in that one order: operands by the dependence
//! and handoff constraints, free slots because a buffer's depth is its life divided by `I`,
//! rounded up. So among all steps not yet done, the first one can always be done. There is one
//! exception: where operations that hold their operands for no time write over what others read in
//! the same cycle, in a ring, one of the buffers gets one copy more than the schedule accounts for.
//!
//! # What is not done
//!
//! Where a value has other readers than the operation that goes on in its storage, these must come
//! before it by a dependence of the graph; no barrier is made for that.
//!
//! # Iterations before the first and the trip count
//!
//! A wait for an operation or release of an iteration before the first returns at once: values
//! from before the loop are there when it starts, and buffers are free. (On a fresh `mbarrier`, a
//! wait for the phase before the first does just that.) The programs are right for every trip
//! count from 0.

use twill_graph::{Bytes, Columns, GroupId, OpId};

/// A buffer of a [`LoopProgram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(crate) usize);

impl BufferId {
    /// The position in [`LoopProgram::buffers`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// The programs of all warp groups, and the buffers they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopProgram {
    /// Buffers; [`BufferId::index`] is the position.
    pub buffers: Vec<Buffer>,
    /// One program a warp group in use, in the schedule's order.
    pub warps: Vec<GroupSteps>,
}

impl LoopProgram {
    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }
}

/// Copies of a value outside registers, with the barriers that guard them.
///
/// Each value in `values` that is `shared` has `depth` *full* barriers, used in turn by its iterations:
/// signalled when the value is there. If `released_by` is not empty, there are `depth` *empty* barriers, which
/// take one arrival of each of these groups: the slot may be written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What it is for.
    pub kind: BufferKind,
    /// Slots.
    pub depth: u32,
    /// The values that live in a slot one after another: the one that is written first, then its
    /// tied continuations.
    pub values: Vec<BufferedValue>,
    /// The group that waits for a slot to be empty, and writes it first.
    pub writer: GroupId,
    /// Groups that arrive at the empty barrier.
    pub released_by: Vec<GroupId>,
    /// The ring whose barriers guard this one too: it has none of its own.
    pub guarded_by: Option<BufferId>,
}

impl Buffer {
    /// The slot of the buffer that holds `value` of iteration `iteration`.
    pub fn slot(&self, value: OpId, iteration: i64) -> i64 {
        let lag = self.values.iter().find(|v| v.op == value).map_or(0, |v| v.lag);
        (iteration - lag).rem_euclid(i64::from(self.depth))
    }
}

/// A value in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedValue {
    /// The operation whose result it is.
    pub op: OpId,
    /// It is of this many iterations after the buffer's first value in the same slot; 0 but for
    /// values that go on from iteration to iteration.
    pub lag: i64,
    /// Another group reads it, so it has full barriers.
    pub shared: bool,
}

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// The ring of a streaming load.
    Ring(Bytes),
    /// The handoff of a register value through shared memory.
    Handoff(Bytes),
    /// Values that live in shared memory.
    Shared(Bytes),
    /// Values that live in tensor memory.
    Tensor(Columns),
    /// No value: this operation of another group must come after the first.
    Order(OpId),
}

/// What one warp group does.
///
/// ```text
/// prologue
/// for i in first..trip_count: steady
/// epilogue
/// ```
///
/// With fewer iterations than `first`, only blocks of the prologue and the epilogue are done, each under its condition; or
/// `shorter`, where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSteps {
    /// The group.
    pub group: GroupId,
    /// The loop's first iteration.
    pub first: u32,
    /// Steps before the loop; iterations are counted from the first.
    pub prologue: Vec<Block>,
    /// The loop's body; iterations are counted from the loop's variable.
    pub steady: Vec<Step>,
    /// Steps after the loop; iterations are counted from the trip count.
    pub epilogue: Vec<Block>,
    /// The same with fewer stages, for fewer iterations than `first`.
    pub shorter: Option<Box<GroupSteps>>,
}

/// Steps that are done if there are enough iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Only if the trip count is greater than this.
    pub trip_count_above: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

/// An iteration of the original loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Iteration {
    /// This one, from 0.
    Absolute(i64),
    /// The loop's variable plus this.
    Current(i64),
    /// The trip count plus this.
    End(i64),
}

impl Iteration {
    /// Its number, given the loop's variable and the trip count.
    pub fn number(self, variable: i64, trip_count: i64) -> i64 {
        match self {
            Iteration::Absolute(n) => n,
            Iteration::Current(offset) => variable + offset,
            Iteration::End(offset) => trip_count + offset,
        }
    }
}

/// One of a buffer's barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The value is there. Iterations are those of the value.
    Full {
        /// The buffer.
        buffer: BufferId,
        /// The value.
        value: OpId,
    },
    /// The slot may be written. Iterations are those of the buffer's first value.
    Empty {
        /// The buffer.
        buffer: BufferId,
    },
}

/// One step of a warp program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Executes a synchronous operation, or starts an asynchronous one.
    Issue {
        /// The operation.
        op: OpId,
        /// Of which iteration.
        iteration: Iteration,
        /// Barriers that the asynchronous unit itself signals when it is done.
        signals: Vec<(Barrier, Iteration)>,
    },
    /// Copies a register value into its handoff buffer.
    Store {
        /// The value.
        op: OpId,
        /// Of which iteration.
        iteration: Iteration,
        /// The buffer.
        buffer: BufferId,
    },
    /// Waits until a value is there (full), or until the slot that `iteration` will use is free
    /// (empty: released `depth` iterations before).
    MbarrierWait {
        /// The barrier.
        barrier: Barrier,
        /// Of which iteration.
        iteration: Iteration,
    },
    /// Says that a value is there, or that this group needs the slot of `iteration` no more.
    MbarrierArrive {
        /// The barrier.
        barrier: Barrier,
        /// Of which iteration.
        iteration: Iteration,
    },
    /// Waits until an asynchronous operation that this group issued is done.
    WaitAsync {
        /// The operation.
        op: OpId,
        /// Of which iteration.
        iteration: Iteration,
        /// This many operations that the group issued later to the same unit may still run
        /// (`wgmma.wait_group`); fewer may, but never more.
        newer_in_flight: u32,
        /// Why.
        purpose: Purpose,
    },
}

/// Why a group waits for its own asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The next operation reads its result, or must come after it.
    Operand,
    /// The next operation writes into storage that it reads.
    Reuse,
    /// Its result is passed to other groups.
    ProducerCommit,
    /// It reads a buffer that is given back.
    ConsumerRelease,
}
