//! The warp program: what each warp group does, as data that printers, simulator and interpreter read alike.

mod elementwise;
mod expression;
mod formula;
mod ids;
mod memory;
pub mod names;
mod op;
mod parse;
mod print;
mod program;
mod region;
mod slot;
mod tile_scheduler;
mod trace;

pub use crate::passes::steps::program::Iteration;
pub use elementwise::*;
pub use expression::*;
pub use formula::{Formula, Operator, Syntax};
pub use ids::*;
pub use op::*;
pub use parse::ReadError;
pub use program::*;
pub use region::Region;
pub use slot::*;
pub use tile_scheduler::*;
pub use trace::*;
