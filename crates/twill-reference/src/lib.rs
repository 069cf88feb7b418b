//! The model of `docs/model.md`, word by word, for tests: what the checker and the solvers are compared with.
//!
//! It shares no code with them, goes through every slot and every cycle, and suits small numbers only.

#![allow(clippy::unwrap_used, reason = "for tests and fuzzing: a panic is what tells of a disagreement")]

mod derived;
mod literal;

pub use derived::schedule_with;
pub use literal::broken;
