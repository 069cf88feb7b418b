//! Tiles of numbers, and what operations of the TTIR do to them.

mod convert;
mod dot;
mod elements;
mod integers;
mod number;
mod reduce;
mod tile;

pub(crate) use dot::dot;
pub(crate) use elements::{Elementwise, apply};
pub use number::Arithmetic;
pub(crate) use reduce::{Combine, partials, reduce};
pub use tile::{Data, Pointer, Tile};
