//! The SASS estimate of a loop's cycles: the instructions of one scheduler of a multiprocessor, one by one.
//!
//! ptxas decides where the instructions of a tile go: between those of an MMA, ahead of a wait or after it. So the
//! simulation of the warp programs does not tell schedules of one interval apart, and this one does: every warp group has a
//! warp on each of the four schedulers, and all four do the same, so that one of them, with a warp of each group, is the
//! multiprocessor.

mod instruction;
mod rates;
mod scheduler;

pub use instruction::{Instruction, NoInstruction, Work};
pub use rates::Rates;
pub use scheduler::cycles_of_loop;
