//! Tiles of matrices that are addressed through pointers.

use crate::grid::Axis;
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
    /// Rows that are there before the first one of `base`, so that coordinates of rows may be negative; else 0.
    pub rows_before: u64,
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
    /// Numbers of the launch that must not be negative, or else it is another tile.
    pub natural: Vec<LaunchNumber>,
}

/// The tile of a matrix without an end that a load through pointers reads where all of it is to be read: in most iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeTile {
    /// The tile; it is this one only where its coordinates are not negative.
    pub tile: MatrixTile,
    /// They are not, whatever the memory.
    pub is_natural: bool,
    /// Numbers, of the element's indices too, all of which are positive for an element that is to be read.
    pub positive: Vec<Polynomial>,
    /// Scalars have more than 32 bits.
    pub wide: bool,
}

/// A number that is known when the kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchNumber {
    /// An argument of the kernel.
    Argument(ValueId),
    /// A constant.
    Constant(u32),
    /// The grid's programs along an axis.
    Programs(Axis),
    /// Of two numbers.
    Of(LaunchOperator, Box<LaunchNumber>, Box<LaunchNumber>),
}

/// How two numbers of a launch become one. Quotients are of numbers that are not negative, and round down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchOperator {
    /// Their sum.
    Plus,
    /// Their difference.
    Minus,
    /// Their product.
    Times,
    /// Their quotient.
    Over,
    /// The smaller one.
    Min,
    /// The greater one.
    Max,
}
