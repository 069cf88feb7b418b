//! Executes kernels on numbers: their TTIR as it stands, and the warp programs that Twill makes of it, under whatever
//! interleaving a seed picks.
//!
//! [`sequential::run`] does what the TTIR says, one operation after the other. [`warps::run`] lets every warp group of a
//! [`WarpProgram`](twill_codegen::ir::WarpProgram) go through its code by itself: barriers have phases, copies
//! and MMAs take effect at any moment at which they may, and slots of shared memory hold the last value written. Both
//! compute the same numbers, bit by bit, where operations have the same order; `docs/architecture.md` says what is executed and
//! what is left out.

pub mod campaign;
mod compare;
mod compiled;
mod fault;
mod memory;
mod mutate;
mod random;
pub mod sequential;
mod trial;
mod value;
pub mod warps;

pub use compare::{Difference, Tolerance, difference, tolerance};
pub use compiled::{Compiled, Question, Refusal, Way};
pub use fault::Fault;
pub use memory::{Argument, Array, Contested, Launch, Memory, Place, Tensor};
pub use mutate::{Mutant, Site, sites};
pub use random::Recipe;
pub use trial::{Expected, Finding, Machines, Outcome, Trial, fuzz};
pub use value::{Arithmetic, Data, Pointer, Tile};
