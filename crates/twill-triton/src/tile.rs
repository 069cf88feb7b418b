//! A loop of tile operations: the part of a kernel's innermost loop that is worth scheduling.
//!
//! A *tile operation* computes or moves a whole tile. Views (transposition, broadcasting), constants, scalar arithmetic,
//! the arithmetic of addresses and masks, and whatever does not change from iteration to iteration are not tile
//! operations; an [`Operand`] says through which view it reads its tile, and from how many iterations ago.

mod display;
mod element;
mod matrix;
mod names;
mod recipe;

use std::collections::BTreeMap;
use twill_graph::saturate;

use twill_graph::Source;

use crate::error::OperationLocation;
use crate::mlir;

pub use crate::grid::{Axes, Axis, Split};
pub use element::Element;
pub use matrix::{Amount, ENDLESS, LaunchNumber, LaunchOperator, Matrix, MatrixTile, WholeTile};
pub use recipe::Recipe;
pub(crate) use recipe::{FUSED, elementwise};

macro_rules! index_type {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            pub(crate) fn new(index: usize) -> Self {
                // Text of more than 2^32 operations does not pass the parser.
                Self(saturate::<u32>(index))
            }

            /// The position in the loop's list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// Names a [`TileOperation`] of one [`TileLoop`].
    TileId
}
index_type! {
    /// Names a [`Tile`] of one [`TileLoop`].
    ValueId
}

/// A tile: what an operation of the loop computes, or what the loop finds when it is entered and leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Extents; none for a scalar.
    pub shape: Vec<u64>,
    /// Type of its elements.
    pub element: Element,
    /// Where it comes from.
    pub origin: Origin,
    /// The dimension along the rows of the loop's tile, if it has it.
    pub row_dimension: Option<usize>,
    /// The axes of the grid along which programs differ in it.
    pub differs: Axes,
    /// The sub-tile or the program that it belongs to; `None` while the loop is whole, or if all share it.
    pub part: Option<u32>,
}

/// Where a tile comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An operation of the loop.
    Operation(TileId),
    /// The code before the loop; it stays the same in all iterations.
    Invariant {
        /// Its name in Python, or in the TTIR if it has none there.
        name: String,
        /// The value of the TTIR.
        value: mlir::ValueId,
    },
}

/// The use of an operand by an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Left operand of an MMA: rows × depth.
    Left,
    /// Right operand of an MMA: depth × columns.
    Right,
    /// The accumulator of an MMA.
    Accumulator,
    /// Any other data.
    Input,
    /// It decides about addresses or masks of a memory operation.
    Address,
}

/// A tile that an operation reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The purpose.
    pub role: Role,
    /// The tile; several if it was cut into sub-tiles and all of them are read.
    pub tiles: Vec<ValueId>,
    /// From how many iterations ago.
    pub distance: u32,
    /// Its extents as the operation sees them.
    pub shape: Vec<u64>,
    /// Its element type as the operation sees it.
    pub element: Element,
    /// For every extent, the dimension of the tile that it is; `None` where the tile is repeated or reshaped.
    pub dimensions: Vec<Option<usize>>,
    /// The dimension (of `shape`) that is cut together with the rows of the operation's result.
    pub row_dimension: Option<usize>,
}

impl Operand {
    /// Returns whether dimensions that hold more than one element are read in another order than they have in the tile.
    pub fn is_transposed(&self) -> bool {
        let order: Vec<usize> = self
            .dimensions
            .iter()
            .zip(&self.shape)
            .filter(|(_, extent)| **extent > 1)
            .filter_map(|(d, _)| *d)
            .collect();
        !order.is_sorted()
    }

    /// Number of elements that the operation sees.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// How tiles move to and from global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// By tensor descriptor: the kernel's own, or one that says what its pointers and masks say.
    Tma,
    /// By pointers.
    Pointer,
}

/// How the elements along an axis are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Combine {
    Sum,
    Product,
    Maximum,
    Minimum,
    /// Anything else, with integer or logical arithmetic.
    Other,
}

/// The kind of a tile operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOpKind {
    /// MMA, added to its accumulator operand if it has one.
    Dot {
        /// The type of the tensor core's operands; `None` where threads multiply and add.
        element: Option<twill_machine::Element>,
    },
    /// Element by element.
    Elementwise {
        /// Its name: `exp2`, `multiply`.
        name: &'static str,
        /// The instructions that an element takes.
        recipe: Recipe,
    },
    /// Change of element type.
    Convert,
    /// Every vector along an axis becomes one value.
    Reduce {
        /// The axis of the operand.
        axis: usize,
        /// How.
        combine: Combine,
    },
    /// Anything else that computes a tile from its operands.
    Opaque {
        /// The dimension that it works along, of its operand or its result, whichever has more; all others of the two run along each
        /// other. One that there is not if it works on elements; `None` where nothing is known.
        axis: Option<usize>,
    },
    /// From global memory.
    Load(Transfer),
    /// To global memory.
    Store(Transfer),
    /// Combined atomically with what stands in global memory.
    AtomicReduce(Transfer),
}

/// An operation on tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileOperation {
    /// The Python variable that its result is assigned to, or what comes nearest to it.
    pub variable: String,
    /// What it does.
    pub kind: TileOpKind,
    /// The tiles that it reads.
    pub operands: Vec<Operand>,
    /// The tile that it computes.
    pub result: Option<ValueId>,
    /// The sub-tile (or, where programs share a CTA, the program) that it belongs to; `None` while the loop is whole, or if
    /// all share it.
    pub sub_tile: Option<u32>,
    /// Where it stands.
    pub place: Box<OperationLocation>,
    /// The operations of the TTIR that it stands for, in the order of the text.
    pub statements: Vec<mlir::OperationId>,
}

impl TileOperation {
    /// The operand in this role.
    pub fn operand(&self, role: Role) -> Option<&Operand> {
        self.operands.iter().find(|o| o.role == role)
    }

    /// Its kind, in a word: `dot`, `exp2`, `load`.
    pub fn label(&self) -> &str {
        match self.kind {
            TileOpKind::Dot { .. } => "dot",
            TileOpKind::Elementwise { name, .. } => name,
            TileOpKind::Convert => "convert",
            TileOpKind::Reduce { combine: Combine::Sum, .. } => "reduce_sum",
            TileOpKind::Reduce { combine: Combine::Product, .. } => "reduce_product",
            TileOpKind::Reduce { combine: Combine::Maximum, .. } => "reduce_max",
            TileOpKind::Reduce { combine: Combine::Minimum, .. } => "reduce_min",
            TileOpKind::Reduce { combine: Combine::Other, .. } => "reduce",
            TileOpKind::Opaque { .. } => {
                let name = self.place.operation.split_whitespace().next().unwrap_or_default();
                name.rsplit('.').next().unwrap_or_default()
            }
            TileOpKind::Load(_) => "load",
            TileOpKind::Store(_) => "store",
            TileOpKind::AtomicReduce(_) => "atomic",
        }
    }
}

/// An innermost loop: a straight line of tile operations in the order of the text.
///
/// Its `Display` lists them, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileLoop {
    pub(crate) name: String,
    pub(crate) place: Box<OperationLocation>,
    pub(crate) operation: mlir::OperationId,
    pub(crate) operations: Vec<TileOperation>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) rows: Option<u64>,
    pub(crate) ambiguous: Option<String>,
    /// The axes of the grid along which programs differ in whether and how often it runs.
    pub(crate) trips: Axes,
    pub(crate) split: Split,
    /// The matrices that TMA loads for loads through pointers.
    pub(crate) matrix_tiles: BTreeMap<mlir::OperationId, MatrixTile>,
    /// What TMA can load for other loads through pointers, where a tile is whole.
    pub(crate) whole_tiles: BTreeMap<mlir::OperationId, WholeTile>,
}

impl TileLoop {
    /// The kernel's name, with the number of the loop if it has several.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the loop stands.
    pub fn place(&self) -> &OperationLocation {
        &self.place
    }

    /// Where the loop stands in the Python source.
    pub fn source(&self) -> Option<&Source> {
        self.place.source.as_ref()
    }

    /// The `scf.for` of the TTIR.
    pub fn statement(&self) -> mlir::OperationId {
        self.operation
    }

    /// The operations, in the order of the text.
    pub fn operations(&self) -> &[TileOperation] {
        &self.operations
    }

    /// One operation.
    pub fn operation(&self, id: TileId) -> &TileOperation {
        &self.operations[id.index()]
    }

    /// The tiles.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// One tile.
    pub fn tile(&self, id: ValueId) -> &Tile {
        &self.tiles[id.index()]
    }

    /// The operation that computes a tile; `None` if the loop only reads it.
    pub fn producer(&self, id: ValueId) -> Option<TileId> {
        match self.tile(id).origin {
            Origin::Operation(operation) => Some(operation),
            Origin::Invariant { .. } => None,
        }
    }

    /// The matrix of a load through pointers, if it reads a tile of a matrix: then TMA does it.
    pub fn matrix_tile(&self, load: mlir::OperationId) -> Option<&MatrixTile> {
        self.matrix_tiles.get(&load)
    }

    /// What TMA can load for a load through pointers where the tile is whole, if that is no box of a matrix everywhere.
    pub fn whole_tile(&self, load: mlir::OperationId) -> Option<&WholeTile> {
        self.whole_tiles.get(&load)
    }

    /// Rows of the whole tile: the extent of the dimension that the loop can be cut along.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// How it is split into parts.
    pub fn split(&self) -> Split {
        self.split
    }

    /// How many sub-tiles it is cut into, or how many programs share a CTA; 1 if it is whole.
    pub fn sub_tiles(&self) -> u32 {
        self.split.parts()
    }

    /// A name for every operation: its Python variable, with what it does where several operations share the variable,
    /// with a number where that is not enough, and with its sub-tile.
    pub fn operation_names(&self) -> Vec<String> {
        names::unique(&self.operations)
    }
}
