//! The violations of a schedule, and their places.

use crate::{Holders, Moment};
use thiserror::Error;
use twill_graph::{Bytes, ChannelStorage, Cycles, GroupId, GroupRole, grouped};

/// One broken constraint, with the place.
///
/// `required` is what docs/model.md asks for, `given` or `available` what there is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The initiation interval is not a positive number of cycles.
    #[error("the initiation interval is {interval}; it must be at least 1")]
    Interval {
        /// The given value.
        interval: Cycles,
    },
    /// Another interval than the problem's.
    #[error("the schedule is {}; the problem is {}", said(.given), said(.required))]
    OtherInterval {
        /// The problem's; `None` without one.
        required: Option<u64>,
        /// The schedule's.
        given: Option<u64>,
    },
    /// Steps too large to be added up.
    #[error("start steps or the interval are beyond {limit}, or what they cost is beyond 2^127")]
    StepsTooLarge {
        /// Most that is replayed.
        limit: u64,
    },
    /// An operation is finished too late.
    #[error("operation `{operation}` is finished at step {finish}; the latency bound is {bound}")]
    LatencyBound {
        /// The operation.
        operation: String,
        /// `D`.
        bound: u64,
        /// When it is finished.
        finish: Cycles,
    },
    /// Not one placement an operation.
    #[error("the schedule places {given} operations; the graph has {required}")]
    PlacementCount {
        /// Operations of the graph.
        required: usize,
        /// Placements.
        given: usize,
    },
    /// A group outside the pool.
    #[error("operation `{operation}` is on group {}, but the pool has {pool} groups", .group.index())]
    UnknownGroup {
        /// The operation.
        operation: String,
        /// Its group.
        group: GroupId,
        /// Groups of the pool.
        pool: usize,
    },
    /// An operation issues before its iteration begins.
    #[error("operation `{operation}` issues at cycle {cycle}; an iteration begins at cycle 0")]
    NegativeCycle {
        /// The operation.
        operation: String,
        /// Its issue cycle.
        cycle: Cycles,
    },
    /// The length is not that of the placements.
    #[error("the schedule says that an iteration takes {given} cycles; it takes {required}")]
    Length {
        /// `L`, from the placements.
        required: Cycles,
        /// The given value.
        given: Cycles,
    },
    /// A group that runs operations is not listed.
    #[error("group {} runs operations, but the schedule does not list it", .group.index())]
    UnlistedGroup {
        /// The group.
        group: GroupId,
    },
    /// A listed group runs nothing, or is not in the pool.
    #[error("the schedule lists group {}, which runs no operation", .group.index())]
    IdleGroup {
        /// The group.
        group: GroupId,
    },
    /// Groups are not listed by ascending id, each once.
    #[error("group {} is listed twice or out of order", .group.index())]
    GroupOrder {
        /// The group that does not come after the one before it.
        group: GroupId,
    },
    /// A group is not what the pool says.
    #[error("group {} is listed as {given} with {given_warps} warps; in the pool it is {required} with {required_warps}", .group.index())]
    GroupKind {
        /// The group.
        group: GroupId,
        /// Its role in the pool.
        required: GroupRole,
        /// Its warps in the pool.
        required_warps: u32,
        /// The role given.
        given: GroupRole,
        /// The warps given.
        given_warps: u32,
    },
    /// Too many copies overlap for a replay of the paper's straight-line program.
    #[error(
        "{copies} copies overlap; the straight-line program of the paper is replayed for at most {limit} of this loop"
    )]
    TooManyCopies {
        /// `N`.
        copies: u64,
        /// Most that are replayed.
        limit: u64,
    },
    /// A consumer issues too early.
    #[error(
        "`{to}` issues at cycle {given}; `{from}` at cycle {issued} (distance {distance}) allows cycle {required} at the earliest"
    )]
    Dependence {
        /// Producer.
        from: String,
        /// Consumer.
        to: String,
        /// Iterations between them.
        distance: u32,
        /// Issue of the producer, in iteration 0.
        issued: Cycles,
        /// First cycle at which the consumer may issue.
        required: Cycles,
        /// Issue of the consumer, in iteration `distance`.
        given: Cycles,
    },
    /// A unit is held more often than it has instances.
    #[error("unit `{unit}` (capacity {available}) is held {required} times at {at}: {holders}")]
    Resource {
        /// The unit.
        unit: String,
        /// Its instances.
        available: u64,
        /// Instances held at once.
        required: u64,
        /// When it is held most.
        at: Moment,
        /// By whom.
        holders: Holders,
    },
    /// More bytes than shared memory moves in an interval.
    #[error("an iteration moves {} bytes through shared memory, and an interval has time for {}", grouped(*.required), grouped(*.available))]
    Bandwidth {
        /// Bytes that it moves in an interval.
        available: u64,
        /// Bytes of an iteration.
        required: u64,
        /// The operations that move them.
        operations: Vec<String>,
    },
    /// A group has too few warps to issue an operation.
    #[error("operation `{operation}` is issued by {required} warps together; group {} has {available}", .group.index())]
    AssignmentWidth {
        /// The operation.
        operation: String,
        /// Its group.
        group: GroupId,
        /// Warps that issue it.
        required: u32,
        /// Warps of the group.
        available: u32,
    },
    /// An operation is on the variable-latency group and not of variable latency, or the reverse.
    #[error("operation `{operation}` is on group {} ({given}); it is {}of variable latency, and those are exactly what the variable-latency group runs", .group.index(), if *.variable_latency { "" } else { "not " })]
    AssignmentVariableLatency {
        /// The operation.
        operation: String,
        /// Its group.
        group: GroupId,
        /// The role of its group.
        given: GroupRole,
        /// True if it is of variable latency.
        variable_latency: bool,
    },
    /// An operation is on the issue group and issued by a warp group, or the reverse.
    #[error("operation `{operation}` (issue width {width}) is on group {} ({given}); the issue group runs exactly what one warp issues", .group.index())]
    AssignmentIssue {
        /// The operation.
        operation: String,
        /// Its group.
        group: GroupId,
        /// The role of its group.
        given: GroupRole,
        /// Warps that issue it.
        width: u32,
    },
    /// An operation is on another compute group than the fixed assignment puts it on.
    #[error("operation `{operation}` ({}) is on group {}; assigned by sub-tile it runs on group {}", sub_tile.map_or("of no sub-tile".to_owned(), |s| format!("sub-tile {s}")), .group.index(), .required.index())]
    AssignmentSubTile {
        /// The operation.
        operation: String,
        /// Its group.
        group: GroupId,
        /// The sub-tile it belongs to.
        sub_tile: Option<u32>,
        /// The group of its sub-tile.
        required: GroupId,
    },
    /// A value is read on another group before it can have got there.
    #[error("`{to}` on group {} issues at cycle {given}; `{from}` on group {} at cycle {issued} and the handoff allow cycle {required} at the earliest", .to_group.index(), .from_group.index())]
    HandoffEarly {
        /// Producer.
        from: String,
        /// Its group.
        from_group: GroupId,
        /// Consumer.
        to: String,
        /// Its group.
        to_group: GroupId,
        /// Issue of the producer.
        issued: Cycles,
        /// First cycle at which the consumer may issue.
        required: Cycles,
        /// Issue of the consumer.
        given: Cycles,
    },
    /// A register value carried to a later iteration changes groups.
    #[error("`{to}` on group {} reads `{from}` (distance {distance}) from the registers of group {}; a carried register value stays on its group", .to_group.index(), .from_group.index())]
    HandoffCarried {
        /// Producer.
        from: String,
        /// Its group.
        from_group: GroupId,
        /// Consumer.
        to: String,
        /// Its group.
        to_group: GroupId,
        /// Iterations between them.
        distance: u32,
    },
    /// A register value changes groups although the problem forbids that.
    #[error("`{to}` on group {} reads `{from}` from the registers of group {}, and the problem has `cross_group_registers` off", .to_group.index(), .from_group.index())]
    HandoffForbidden {
        /// Producer.
        from: String,
        /// Its group.
        from_group: GroupId,
        /// Consumer.
        to: String,
        /// Its group.
        to_group: GroupId,
    },
    /// A wait stalls another operation of its group.
    #[error("`{waiting}` waits on group {} at {at} while `{stalled}` keeps the group from waiting", .group.index())]
    Concurrency {
        /// The operation that waits.
        waiting: String,
        /// The operation in whose window it waits.
        stalled: String,
        /// Their group.
        group: GroupId,
        /// When it waits.
        at: Moment,
    },
    /// Synchronous operations of one group overlap.
    #[error("`{first}` and `{second}` are both executed by group {} at {at}", .group.index())]
    Exclusive {
        /// The operation that has not ended.
        first: String,
        /// The operation that issues; the same one when it overlaps its own next iteration.
        second: String,
        /// Their group.
        group: GroupId,
        /// When the second issues.
        at: Moment,
    },
    /// Tile words of a group exceed its registers.
    #[error("group {} has registers for {} tile words; at {at} it needs {}: {holders}", .group.index(), grouped(*.available), grouped(*.required))]
    Registers {
        /// The group.
        group: GroupId,
        /// Words.
        available: u64,
        /// Most words needed at once.
        required: u64,
        /// When that is first so.
        at: Moment,
        /// By which values.
        holders: Holders,
    },
    /// Registers are not allocated so finely.
    #[error("group {} is given {given} registers a thread; they are allocated in multiples of {granularity}", .group.index())]
    RegisterGranularity {
        /// The group.
        group: GroupId,
        /// Registers a thread.
        given: u32,
        /// The multiple.
        granularity: u32,
    },
    /// A group is given more or fewer registers than a thread may have.
    #[error("group {} is given {given} registers a thread; it must be from {minimum} to {maximum}", .group.index())]
    RegisterRange {
        /// The group.
        group: GroupId,
        /// Registers a thread.
        given: u32,
        /// Least; for a compute group at least the reserve.
        minimum: u32,
        /// Most; for a compute group the addressable registers rounded up to the granularity.
        maximum: u32,
    },
    /// All groups together exceed the register file.
    #[error("the groups are given {} registers in all; the register file has {}", grouped(*.required), grouped(*.available))]
    RegisterFile {
        /// Registers of all groups.
        required: u64,
        /// Registers of the file.
        available: u64,
    },
    /// Shared memory is exceeded.
    #[error(
        "at {at} the loop needs {} bytes of shared memory of {}: {} reserved, {} for rings; {holders}",
        grouped(*.required), grouped(*.available), grouped(*.reserved), grouped(*.rings)
    )]
    SharedMemory {
        /// Bytes of the machine.
        available: u64,
        /// Most bytes needed at once.
        required: u64,
        /// The part reserved by code around the loop.
        reserved: u64,
        /// The part that rings of streaming loads take.
        rings: u64,
        /// When that is first so.
        at: Moment,
        /// The values that need the rest.
        holders: Holders,
    },
    /// Tensor memory is exceeded.
    #[error(
        "at {at} the loop needs {required} columns of tensor memory of {available}: {reserved} reserved; {holders}"
    )]
    TensorMemory {
        /// Columns of the machine.
        available: u64,
        /// Most columns needed at once.
        required: u64,
        /// The part reserved by code around the loop.
        reserved: u64,
        /// When that is first so.
        at: Moment,
        /// The values that need the rest.
        holders: Holders,
    },
    /// A value is read on another group without a channel.
    #[error("`{value}` passes from group {} to group {} without a channel", .from.index(), .to.index())]
    MissingChannel {
        /// The operation whose result it is.
        value: String,
        /// Its group.
        from: GroupId,
        /// The group that reads it.
        to: GroupId,
    },
    /// A channel through which nothing passes, or one listed twice.
    #[error("the channel of `{value}` from group {} to group {} is listed twice or nothing passes through it", .from.index(), .to.index())]
    UnusedChannel {
        /// The operation, or its number if there is no such operation.
        value: String,
        /// From.
        from: GroupId,
        /// To.
        to: GroupId,
    },
    /// A channel keeps its value in the wrong place.
    #[error("the channel of `{value}` to group {} is listed with {}; it takes {}", .to.index(), place(.given), place(.required))]
    ChannelKind {
        /// The operation whose result it is.
        value: String,
        /// The group that reads it.
        to: GroupId,
        /// Where the value passes.
        required: ChannelStorage,
        /// Where the schedule says.
        given: ChannelStorage,
    },
    /// A channel has not as many copies as are alive at once.
    #[error("the channel of `{value}` to group {} has depth {given}; at most {required} copies are alive at once", .to.index())]
    ChannelDepth {
        /// The operation whose result it is.
        value: String,
        /// The group that reads it.
        to: GroupId,
        /// Copies alive at once, at least 1.
        required: u64,
        /// Its depth.
        given: u32,
    },
    /// A streaming load has no ring.
    #[error("the streaming load `{load}` has no ring")]
    MissingRing {
        /// The load.
        load: String,
    },
    /// A ring of what is no streaming load into shared memory, or one listed twice.
    #[error("the ring of `{load}` is listed twice, or `{load}` is no streaming load into shared memory")]
    UnusedRing {
        /// The operation, or its number if there is no such operation.
        load: String,
    },
    /// A slot of a ring has the wrong size.
    #[error("the ring of `{load}` has slots of {} bytes; the load brings {}", grouped(.given.0), grouped(.required.0))]
    RingBytes {
        /// The load.
        load: String,
        /// Bytes of its result.
        required: Bytes,
        /// Bytes of a slot.
        given: Bytes,
    },
    /// A ring has not as many slots as are filled at once.
    #[error("the ring of `{load}` has {given} slots; {required} are filled or on their way at once")]
    RingDepth {
        /// The load.
        load: String,
        /// Slots needed.
        required: u64,
        /// Its slots.
        given: u32,
    },
}

impl Violation {
    /// The operations that it is about.
    pub fn operations(&self) -> Vec<&str> {
        match self {
            Violation::Interval { .. }
            | Violation::OtherInterval { .. }
            | Violation::StepsTooLarge { .. }
            | Violation::PlacementCount { .. }
            | Violation::Length { .. }
            | Violation::UnlistedGroup { .. }
            | Violation::IdleGroup { .. }
            | Violation::GroupOrder { .. }
            | Violation::GroupKind { .. }
            | Violation::TooManyCopies { .. }
            | Violation::RegisterGranularity { .. }
            | Violation::RegisterRange { .. }
            | Violation::RegisterFile { .. } => Vec::new(),
            Violation::UnknownGroup { operation, .. }
            | Violation::NegativeCycle { operation, .. }
            | Violation::LatencyBound { operation, .. }
            | Violation::AssignmentWidth { operation, .. }
            | Violation::AssignmentVariableLatency { operation, .. }
            | Violation::AssignmentIssue { operation, .. }
            | Violation::AssignmentSubTile { operation, .. } => vec![operation],
            Violation::Dependence { from, to, .. }
            | Violation::HandoffEarly { from, to, .. }
            | Violation::HandoffCarried { from, to, .. }
            | Violation::HandoffForbidden { from, to, .. } => vec![from, to],
            Violation::Concurrency { waiting, stalled, .. } => vec![waiting, stalled],
            Violation::Exclusive { first, second, .. } => vec![first, second],
            Violation::Bandwidth { operations, .. } => operations.iter().map(String::as_str).collect(),
            Violation::Resource { holders, .. }
            | Violation::Registers { holders, .. }
            | Violation::SharedMemory { holders, .. }
            | Violation::TensorMemory { holders, .. } => holders.0.iter().map(|h| h.operation.as_str()).collect(),
            Violation::MissingChannel { value, .. }
            | Violation::UnusedChannel { value, .. }
            | Violation::ChannelKind { value, .. }
            | Violation::ChannelDepth { value, .. } => vec![value],
            Violation::MissingRing { load }
            | Violation::UnusedRing { load }
            | Violation::RingBytes { load, .. }
            | Violation::RingDepth { load, .. } => vec![load],
        }
    }
}

fn said(interval: &Option<u64>) -> String {
    interval.map_or("one without an interval".to_owned(), |interval| format!("one at the interval {interval}"))
}

fn place(storage: &ChannelStorage) -> String {
    match storage {
        ChannelStorage::Handoff(bytes) => format!("{} bytes for handoff", grouped(bytes.0)),
        ChannelStorage::Shared(bytes) => format!("{} bytes of shared memory", grouped(bytes.0)),
        ChannelStorage::Tensor(columns) => format!("{columns} columns of tensor memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_intervals_are_named() {
        let other = Violation::OtherInterval { required: None, given: Some(4) };
        let message = "the schedule is one at the interval 4; the problem is one without an interval";
        assert_eq!(other.to_string(), message);
    }
}
