//! What a traced kernel records the time of.

use super::IterationNumber;
use twill_graph::GroupId;

/// The moment that a timestamp is taken at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The group is about to start the operation.
    Issue,
    /// The group has done it, of an operation that its own threads do.
    End,
    /// A wait after an asynchronous operation is over: it completed then, or before.
    Completed,
}

/// A moment of an operation of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The operation's name in the loop's graph.
    pub operation: String,
    /// Which moment.
    pub moment: Moment,
    /// The loop, and the operation's iteration of it.
    pub at: IterationNumber,
}

/// A timestamp of a kernel: the same moment of an operation in all iterations, seen by one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The loop.
    pub index: usize,
    /// The operation's name in the loop's graph.
    pub operation: String,
    /// The group that sees it.
    pub group: GroupId,
    /// Which moment.
    pub moment: Moment,
}

/// How closely the time is looked at. Nothing is moved over a timestamp, so that timestamps between operations which a compiler would have
/// mixed make them slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Each operation is between timestamps of its own.
    Operations,
    /// Operations that threads do one after the other, with no wait in between, are between the same two timestamps.
    Segments,
    /// Each group's first operation of an iteration, when it begins: how long iterations take, and little else.
    Iterations,
}

/// What a traced kernel records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The parameter, a pointer after those of the source: to a row of 64-bit numbers for each iteration, which has one for
    /// each timestamp.
    pub parameter: String,
    /// Rows: the last iterations of the first tile, iteration `i` in row `i` modulo their number.
    pub iterations: u32,
    /// How closely.
    pub detail: Detail,
    /// The timestamps, in the order of their numbers.
    pub timestamps: Vec<Timestamp>,
}

impl Trace {
    /// Bytes of the buffer.
    pub fn bytes(&self) -> u64 {
        8 * u64::from(self.iterations) * self.timestamps.len() as u64
    }
}

impl Timestamp {
    /// The timestamp that a stamp in a group's code belongs to.
    pub fn of(stamp: &Stamp, group: GroupId) -> Timestamp {
        Timestamp { index: stamp.at.index, operation: stamp.operation.clone(), group, moment: stamp.moment }
    }
}
