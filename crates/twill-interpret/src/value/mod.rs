//! Tiles of numbers, and what operations of the TTIR do to them.

mod convert;
mod dot;
mod elements;
mod integers;
mod number;
mod ptx;
mod reduce;
mod region;
mod tile;

pub(crate) use dot::dot;
pub(crate) use elements::{Elementwise, apply};
pub use number::Arithmetic;
pub(crate) use ptx::inline_ptx;
pub(crate) use reduce::{Combine, partials, reduce};
pub(crate) use region::{gather, join, reduce_by, scan_by, split};
pub use tile::{Data, Pointer, Tile};
