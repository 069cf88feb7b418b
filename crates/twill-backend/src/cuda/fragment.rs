//! How threads hold tiles, as types of `twill.cuh`.

use crate::layout::Layout;
use twill_codegen::ir::PARTIALS;

/// A layout of a tile of known extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fragment {
    /// As an MMA leaves a result, and reads a left operand.
    Accumulator { rows: u64, columns: u64 },
    /// A value for each row of an accumulator.
    Rows { rows: u64 },
    /// For each row, and each of the four threads that hold it.
    PartialSums { rows: u64 },
    /// A value for each column of an accumulator.
    Columns { columns: u64 },
    /// One dimension over all threads.
    Blocked { extent: u64, warps: u32 },
    /// Two dimensions over all threads.
    BlockedTile { rows: u64, columns: u64, warps: u32 },
    /// A value for each row of those.
    BlockedRows { rows: u64, warps: u32 },
    /// A value for each column of those.
    BlockedColumns { columns: u64, warps: u32 },
    /// As it comes from tensor memory, of 64 or 128 rows.
    Tensor { rows: u64, columns: u64 },
    /// A value for each row of those.
    TensorRows { rows: u64 },
    /// A value for each column of those, which may have other rows.
    TensorColumns { rows: u64, columns: u64 },
    /// Any number of dimensions over all threads, one element after another.
    Linear { shape: Vec<u64>, warps: u32 },
}

/// Which index of a tile a dimension of an expression runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Row,
    Column,
    /// Of a tile of any number of dimensions.
    Dimension(usize),
}

impl Axis {
    /// The index of the element `e`.
    pub fn index(self) -> String {
        match self {
            Axis::Row => "e.row()".into(),
            Axis::Column => "e.column()".into(),
            Axis::Dimension(d) => format!("dimension<{d}>(e)"),
        }
    }
}

/// Rows that the result of an MMA has here: fewer than 64 are held several times.
fn is_rows_of_mma(rows: u64) -> bool {
    rows.is_multiple_of(64) || matches!(rows, 16 | 32)
}

/// Tiles whose neighbours are one thread's are held over all threads too.
fn as_blocked(layout: &Layout) -> Layout {
    match layout {
        Layout::Coalesced { shape, warps, .. } => Layout::blocked(shape.len(), *warps),
        Layout::Slice(dimension, parent) => Layout::Slice(*dimension, Box::new(as_blocked(parent))),
        other => other.clone(),
    }
}

impl Fragment {
    /// For a tile of this shape that nothing else decides about.
    pub fn of_shape(shape: &[u64], warps: u32) -> Fragment {
        match *shape {
            [extent] => Fragment::Blocked { extent, warps },
            [rows, 1] => Fragment::BlockedRows { rows, warps },
            [1, columns] => Fragment::BlockedColumns { columns, warps },
            [rows, columns] => Fragment::BlockedTile { rows, columns, warps },
            _ => Fragment::Linear { shape: shape.to_vec(), warps },
        }
    }

    /// Of a layout, for a tile of this shape that a group of this many warps holds. What a layout has no type for is held over
    /// all threads.
    pub fn of(layout: &Layout, shape: &[u64], warps: u32) -> Fragment {
        let layout = &as_blocked(layout);
        let is_mma = |layout: &Layout| matches!(layout, Layout::Accumulator { .. } | Layout::LeftOperand { .. });
        match (layout, shape) {
            (layout, [rows, 1]) if is_mma(layout) && is_rows_of_mma(*rows) => Fragment::Rows { rows: *rows },
            (layout, [1, columns]) if is_mma(layout) && columns % 8 == 0 => Fragment::Columns { columns: *columns },
            (layout, [rows, columns]) if is_mma(layout) && is_rows_of_mma(*rows) && columns % 8 == 0 => {
                Fragment::Accumulator { rows: *rows, columns: *columns }
            }
            // What is made of a row's whole sum, of its partials, and of tiles that either is broadcast over.
            (Layout::Like(_), [rows, 1]) if is_rows_of_mma(*rows) => Fragment::Rows { rows: *rows },
            (Layout::Like(_), [rows, PARTIALS]) if is_rows_of_mma(*rows) => Fragment::PartialSums { rows: *rows },
            (Layout::Like(_), [rows, columns]) if is_rows_of_mma(*rows) && columns % 8 == 0 => {
                Fragment::Accumulator { rows: *rows, columns: *columns }
            }
            (Layout::Tensor { warps: 4, .. }, [rows @ (64 | 128), 1]) => Fragment::TensorRows { rows: *rows },
            (Layout::Tensor { rows: rows @ (64 | 128), warps: 4, .. }, [1, columns]) if columns % 8 == 0 => {
                Fragment::TensorColumns { rows: *rows, columns: *columns }
            }
            (Layout::Tensor { warps: 4, .. }, [rows @ (64 | 128), columns]) if columns % 8 == 0 => {
                Fragment::Tensor { rows: *rows, columns: *columns }
            }
            (Layout::Slice(dimension, parent), [extent]) => match (parent.as_ref(), dimension) {
                (parent, 1) if is_mma(parent) && is_rows_of_mma(*extent) => Fragment::Rows { rows: *extent },
                (parent, 0) if is_mma(parent) && extent % 8 == 0 => Fragment::Columns { columns: *extent },
                (Layout::Like(_), 1) if is_rows_of_mma(*extent) => Fragment::Rows { rows: *extent },
                (Layout::Tensor { warps: 4, .. }, 1) if matches!(extent, 64 | 128) => {
                    Fragment::TensorRows { rows: *extent }
                }
                (Layout::Tensor { rows: rows @ (64 | 128), warps: 4, .. }, 0) if extent % 8 == 0 => {
                    Fragment::TensorColumns { rows: *rows, columns: *extent }
                }
                (Layout::Blocked { rank: 2, warps }, 1) => Fragment::BlockedRows { rows: *extent, warps: *warps },
                (Layout::Blocked { rank: 2, warps }, 0) => Fragment::BlockedColumns { columns: *extent, warps: *warps },
                _ => Fragment::of_shape(shape, warps),
            },
            _ => Fragment::of_shape(shape, warps),
        }
    }

    /// The type.
    pub fn name(&self) -> String {
        match self {
            Fragment::Accumulator { rows, columns } => format!("accumulator<{rows}, {columns}>"),
            Fragment::Rows { rows } => format!("accumulator_rows<{rows}>"),
            Fragment::PartialSums { rows } => format!("accumulator_partials<{rows}>"),
            Fragment::Columns { columns } => format!("accumulator_columns<{columns}>"),
            Fragment::Blocked { extent, warps } => format!("blocked<{extent}, {warps}>"),
            Fragment::BlockedTile { rows, columns, warps } => format!("blocked_tile<{rows}, {columns}, {warps}>"),
            Fragment::BlockedRows { rows, warps } => format!("blocked_rows<{rows}, {warps}>"),
            Fragment::BlockedColumns { columns, warps } => format!("blocked_columns<{columns}, {warps}>"),
            Fragment::Tensor { rows, columns } => format!("tensor_tile<{rows}, {columns}>"),
            Fragment::TensorRows { rows } => format!("tensor_rows<{rows}>"),
            Fragment::TensorColumns { rows, columns } => format!("tensor_columns<{rows}, {columns}>"),
            Fragment::Linear { shape, warps } => {
                let extents: Vec<String> = shape.iter().map(|extent| format!(", {extent}")).collect();
                format!("linear<{warps}{}>", extents.concat())
            }
        }
    }

    /// Along which index each dimension of a tile in it runs.
    pub fn axes(&self, dimensions: usize) -> Vec<Option<Axis>> {
        match (self, dimensions) {
            (Fragment::Linear { .. }, _) => (0..dimensions).map(|d| Some(Axis::Dimension(d))).collect(),
            (Fragment::Columns { .. } | Fragment::BlockedColumns { .. } | Fragment::TensorColumns { .. }, 1) => {
                vec![Some(Axis::Column)]
            }
            (_, 1) => vec![Some(Axis::Row)],
            _ => vec![Some(Axis::Row), Some(Axis::Column)],
        }
    }

    /// What is left of it where an expression runs along some of its indices.
    pub fn part(&self, axes: &[Option<Axis>]) -> Fragment {
        let (row, column) = (axes.contains(&Some(Axis::Row)), axes.contains(&Some(Axis::Column)));
        match (self, row, column) {
            (Fragment::Accumulator { rows, .. } | Fragment::PartialSums { rows }, true, false) => {
                Fragment::Rows { rows: *rows }
            }
            (Fragment::Accumulator { columns, .. }, false, true) => Fragment::Columns { columns: *columns },
            (Fragment::BlockedTile { rows, warps, .. }, true, false) => {
                Fragment::BlockedRows { rows: *rows, warps: *warps }
            }
            (Fragment::BlockedTile { columns, warps, .. }, false, true) => {
                Fragment::BlockedColumns { columns: *columns, warps: *warps }
            }
            (Fragment::Tensor { rows, .. }, true, false) => Fragment::TensorRows { rows: *rows },
            (Fragment::Tensor { rows, columns }, false, true) => {
                Fragment::TensorColumns { rows: *rows, columns: *columns }
            }
            _ => self.clone(),
        }
    }

    /// Whether it keeps neighbours of a row side by side.
    pub fn is_paired(&self) -> bool {
        match self {
            Fragment::Accumulator { .. } | Fragment::Columns { .. } => true,
            Fragment::Tensor { .. } | Fragment::TensorColumns { .. } => true,
            Fragment::BlockedTile { columns, .. } | Fragment::BlockedColumns { columns, .. } => *columns > 1,
            _ => false,
        }
    }
    /// How many neighbours of a row a thread holds side by side, a power of two.
    pub fn neighbours(&self) -> u64 {
        match self {
            Fragment::BlockedTile { columns, .. } if columns.is_power_of_two() => (*columns).min(8),
            _ => 1,
        }
    }

    /// Whether a thread holds many neighbours of a row, so that they are copied 16 bytes at a time.
    pub fn is_in_vectors(&self) -> bool {
        matches!(self, Fragment::Tensor { .. } | Fragment::TensorColumns { .. })
    }
    /// Whether every thread holds the same elements in it as in another.
    pub fn is_held_as(&self, other: &Fragment) -> bool {
        use Fragment::{Blocked, TensorRows};
        let is_by_threads = |a: &Fragment, b: &Fragment| {
            matches!((a, b), (Blocked { extent: 128, warps: 4 }, TensorRows { rows: 128 }))
        };
        self == other || is_by_threads(self, other) || is_by_threads(other, self)
    }
}
