//! Faults in the execution of a program.

use std::fmt;

/// Why an execution ended before its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// An operation that the interpreter does not know.
    #[error("the interpreter does not know {what}; leave it out, or teach it in twill-interpret's value/")]
    Unknown {
        /// The operation.
        what: String,
    },
    /// Operands of shapes or types that do not belong together.
    #[error("{what} has operands of shapes or types that do not belong together")]
    Shapes {
        /// The operation.
        what: String,
    },
    /// A name of the program that denotes nothing.
    #[error("nothing is known as {what}")]
    Undefined {
        /// A value, parameter, descriptor or buffer.
        what: String,
    },
    /// An address outside of its array.
    #[error("element {offset} of {array}, which has {length}; masks must keep it out")]
    OutOfBounds {
        /// The array.
        array: String,
        /// The element.
        offset: i64,
        /// Elements of the array.
        length: usize,
    },
    /// A division by zero.
    #[error("{what} by zero")]
    DivisionByZero {
        /// The operation.
        what: String,
    },
    /// A group used an MMA's result that it had not waited for.
    #[error("{group} uses {variable} before it has waited for the MMA that makes it")]
    NotWaitedFor {
        /// The group.
        group: String,
        /// The variable.
        variable: String,
    },
    /// All groups wait, and nothing asynchronous is under way.
    #[error("nobody can go on: {}", Listed(stuck))]
    Deadlock {
        /// The wait of each group.
        stuck: Vec<String>,
    },
    /// An execution of more steps than it was given.
    #[error("not at its end after {steps} steps")]
    Endless {
        /// Steps taken.
        steps: u64,
    },
}

struct Listed<'a>(&'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}
