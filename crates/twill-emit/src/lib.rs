//! From a verified schedule to code.
//!
//! A schedule says when each operation issues; code has no clock. [`Program`] is the step between
//! them: for each warp group the order in which it issues, waits and signals, as a prologue, a loop
//! and an epilogue, and the buffers and barriers through which groups pass values. Every emitter
//! prints a `Program`; [`pseudocode`] prints it for people.

mod build;
pub mod cuda;
mod error;
mod events;
pub mod gluon;
pub mod kernel;
mod listing;
mod order;
mod places;
pub mod program;
mod pseudocode;
mod reads;
mod storage;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use program::Program;
pub use pseudocode::pseudocode;
