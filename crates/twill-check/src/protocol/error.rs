//! Errors for systems that are not accepted.

use super::counterexample::Counterexample;
use thiserror::Error;

/// Why a system is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// It does not make sense: names something that does not exist, a cursor that runs over the end.
    #[error("{place}: {problem}")]
    Malformed {
        /// Where.
        place: String,
        /// The fault, and the remedy.
        problem: String,
    },
    /// Something can go wrong; this is how.
    #[error("{0}")]
    Violated(Box<Counterexample>),
    /// A case is neither proved nor refuted within the limit.
    #[error(
        "with {case}, the order of events alone does not prove the barriers, and there are more than {states} states to \
         look through; allow more states"
    )]
    Undecided {
        /// Trip counts.
        case: String,
        /// The limit.
        states: usize,
    },
    /// A case has too many events.
    #[error(
        "a case has {events} events or more, {limit} are allowed; fewer slots or smaller bounds make shorter cases"
    )]
    TooLarge {
        /// At least this many.
        events: usize,
        /// The limit.
        limit: usize,
    },
    /// There are too many combinations of trip counts.
    #[error("there are more than {limit} combinations of trip counts; allow more, or split the kernel's loops")]
    TooManyCases {
        /// The limit.
        limit: usize,
    },
}
