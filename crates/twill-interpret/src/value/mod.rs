//! Tiles of numbers, and what operations of the TTIR do to them.

mod convert;
mod dot;
mod elements;
mod integers;
mod number;
mod ptx;
mod reduce;
mod region;
mod scaled;
mod tile;

pub(crate) use dot::dot;
pub(crate) use elements::{Elementwise, apply};
pub(crate) use integers::{unsigned, wrapped};
pub use number::Arithmetic;
pub(crate) use ptx::inline_ptx;
pub(crate) use reduce::{Combine, partials, reduce};
pub(crate) use region::{gather, histogram, join, reduce_by, scan_by, split};
pub(crate) use scaled::Scaled;
pub use tile::{Data, Pointer, Tile};
