//! Tiles of matrices that are addressed through pointers.

use crate::mlir::ValueId;
use crate::polynomial::Polynomial;

/// An amount that a kernel is called with, or that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// An argument of the kernel.
    Argument(ValueId),
    /// A constant.
    Constant(u64),
}

/// An extent beyond all coordinates, which have 32 bits: what reads or writes the matrix asks for no end.
pub const ENDLESS: u64 = (1 << 31) - 1;

/// Matrices in global memory, their rows contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// The argument of the kernel that points to the first element of the first one.
    pub base: ValueId,
    /// Elements from a matrix to the next, for each dimension along which there are several.
    pub batches: Vec<Amount>,
    /// Rows and columns of each.
    pub extents: [Amount; 2],
    /// Elements from a row to the next.
    pub stride: Amount,
}

/// The tile of a matrix that a load through pointers reads, or a store writes; beyond the matrix it reads zeros, or writes
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixTile {
    /// The matrices.
    pub matrix: Matrix,
    /// Which of the matrices it is in, along each of those dimensions.
    pub batch: Vec<Polynomial>,
    /// The matrix's row and column of the tile's first element, in an iteration.
    pub tile_origin: [Polynomial; 2],
    /// The tile's rows are columns of the matrix.
    pub transposed: bool,
    /// Arguments that must not be negative, or else it is another tile.
    pub natural: Vec<ValueId>,
}
