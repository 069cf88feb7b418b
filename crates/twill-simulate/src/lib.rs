//! The cycles of warp programs: a simulation of a multiprocessor that runs one CTA of a generated kernel.
//!
//! The schedule's interval is a bound: it knows functional units, dependences and storage. On a GPU the time depends as
//! well on how warp groups get in each other's way: a group that starts an MMA waits at the instruction until the
//! tensor core takes it, groups share issue slots and the special-function unit, barriers take time. Here the warp
//! programs are run, in order, group by group, on a machine of a few shared resources ([`Timing`]); what is measured is
//! the time between iterations.
//!
//! | file | what |
//! |---|---|
//! | `timing` | the numbers |
//! | `sass` | the SASS estimate of a loop, instruction by instruction |
//! | `work` | the units that an expression keeps busy |
//! | `steps` | a group's program with trip counts in place: a list of steps |
//! | `engine` | runs the lists side by side |
//! | `kernel_time` | a launch: tiles, each with its iterations |

mod engine;
mod kernel_time;
pub mod sass;
mod steps;
mod timing;
mod work;

pub use engine::{GroupTime, LoopTime, Simulation, Stuck, simulate};
pub use kernel_time::KernelTime;
pub use timing::Timing;
