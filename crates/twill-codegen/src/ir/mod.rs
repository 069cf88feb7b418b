//! The warp program: what each warp group does, as data that printers, simulator and interpreter read alike.

pub mod elementwise;
mod expression;
mod memory;
pub mod names;
mod op;
mod program;
mod region;

pub use expression::*;
pub use op::*;
pub use program::*;
pub use region::Region;
