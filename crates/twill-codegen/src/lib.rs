//! From verified schedules to warp programs: the passes between a schedule and the text of a kernel.
//!
//! A schedule says when each operation issues; code has no clock. A [`WarpProgram`] is the step between them: for every warp
//! group the operations it issues, waits and arrives, and the buffers and barriers through which groups pass values.
//! [`pipeline`] lists the passes that make one, in order. [`verify`](mod@verify) proves that its barriers are enough; the back
//! ends print nothing else ([`Checked`]). [`pseudocode`] prints the steps of one loop for people.
//!
//! | folder | contents |
//! |---|---|
//! | `ir` | the warp program: control flow, operations, expressions, buffers, its text |
//! | `options` | how code is generated |
//! | `pipeline` | the passes in order |
//! | `passes` | one pass a file |
//! | `builder` | what passes share while a program is built: the kernel, one group's code, reads of values |
//! | `in_order` | a kernel without a pipeline: the TTIR as it stands |
//! | `target` | what differs between Hopper and Blackwell |
//! | `verify` | registers and barriers, proved |

mod builder;
mod error;
pub mod in_order;
pub mod ir;
mod options;
pub mod passes;
pub mod pipeline;
mod target;
pub mod verify;

pub use builder::source::ScheduledLoop;
pub use error::Error;
pub use ir::WarpProgram;
pub use options::{GroupShares, Options};
pub use passes::steps::program::{Iteration, LoopProgram};
pub use passes::steps::pseudocode::pseudocode;
pub use pipeline::{lower, lower_checked};
pub use target::hopper::{entry_registers, register_share};
pub use verify::{Checked, check};
