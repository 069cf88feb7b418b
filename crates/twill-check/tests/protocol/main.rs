//! Correct systems are proved; small mistakes are found, or are none.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agreement;
mod build;
mod faults;
mod mutations;
mod order;
mod proofs;
mod systems;
mod verdicts;
