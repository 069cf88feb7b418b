//! The warp program: what each warp group does, as data that printers, simulator and interpreter read alike.

mod elementwise;
mod expression;
mod ids;
mod memory;
pub mod names;
mod op;
mod program;
mod region;

pub use crate::passes::steps::program::Iteration;
pub use elementwise::*;
pub use expression::*;
pub use ids::*;
pub use op::*;
pub use program::*;
pub use region::Region;
