//! Errors in a loop graph.

use crate::Cycles;
use crate::names::NameFault;
use thiserror::Error;

/// Why a loop graph is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// There is nothing to schedule.
    #[error("the graph has no operations")]
    Empty,
    /// More operations or dependences than an index can hold.
    #[error("the graph has {count} {what}; at most {limit} are supported")]
    TooLarge {
        /// `operations` or `dependences`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Two operations share a name.
    #[error("two operations are named `{name}`; give each its own name")]
    DuplicateName {
        /// The shared name.
        name: String,
    },
    /// A name that cannot be shown.
    #[error("{what} is named {name}: {fault}")]
    Name {
        /// The kind of thing that has the name.
        what: String,
        /// The name in quotes, or its beginning.
        name: String,
        /// The fault.
        fault: NameFault,
    },
    /// A number is out of range.
    #[error("operation `{operation}`: {field} is {value}; it must be {expected}")]
    Number {
        /// The operation.
        operation: String,
        /// The attribute.
        field: &'static str,
        /// The given value.
        value: i64,
        /// The allowed values.
        expected: &'static str,
    },
    /// A reservation ends after the operation's last cycle.
    #[error(
        "operation `{operation}`: its reservation of `{unit}` ends at cycle {end}, after the operation's {cycles} cycles; raise `cycles`"
    )]
    ReservationOutside {
        /// The operation.
        operation: String,
        /// The unit.
        unit: String,
        /// End of the reservation.
        end: Cycles,
        /// The operation's cycles.
        cycles: Cycles,
    },
    /// A streaming operation that cannot run ahead.
    #[error("operation `{operation}` is streaming, but {why}; clear `streaming`")]
    NotStreaming {
        /// The operation.
        operation: String,
        /// The reason against it.
        why: String,
    },
    /// A dependence that no schedule can satisfy or that says nothing clear.
    #[error("dependence `{from}` → `{to}` (distance {distance}): {why}")]
    Dependence {
        /// Producer.
        from: String,
        /// Consumer.
        to: String,
        /// Iterations.
        distance: u32,
        /// The error, and the way out.
        why: String,
    },
    /// Sums of cycles that do not fit.
    #[error(
        "cycles and distances are too large: all cycles of the graph are {cycles}, and with distances of {distances} in all they must be at most {most}; take a coarser unit of time"
    )]
    TooLong {
        /// Sum of all cycles, or the largest number there is.
        cycles: u64,
        /// Sum of all distances.
        distances: u64,
        /// Most that `cycles` may be.
        most: i64,
    },
    /// Operations that depend on each other within one iteration.
    #[error("operations depend on each other within one iteration: {}; a loop-carried dependence needs a distance of at least 1", cycle.join(" → "))]
    ZeroDistanceCycle {
        /// The operations of the cycle; the first is repeated at the end.
        cycle: Vec<String>,
    },
}
