//! How threads hold tiles, as types of `twill.cuh`.

use super::names::missing;
use crate::layout::Layout;
use twill_codegen::Error;
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
}

/// Which index of a tile a dimension of an expression runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Row,
    Column,
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
    /// Of a layout, for a tile of this shape.
    pub fn of(layout: &Layout, shape: &[u64]) -> Result<Fragment, Error> {
        let layout = &as_blocked(layout);
        let unknown = || missing(format!("a tile of shape {shape:?} in the layout {layout:?}"));
        Ok(match (layout, shape) {
            (Layout::Accumulator { .. } | Layout::LeftOperand { .. }, [rows, 1]) => Fragment::Rows { rows: *rows },
            (Layout::Accumulator { .. } | Layout::LeftOperand { .. }, [1, columns]) => {
                Fragment::Columns { columns: *columns }
            }
            (Layout::Accumulator { .. } | Layout::LeftOperand { .. }, [rows, columns])
                if rows % 64 == 0 && columns % 8 == 0 =>
            {
                Fragment::Accumulator { rows: *rows, columns: *columns }
            }
            // What is made of a row's whole sum, of its partials, and of tiles that either is broadcast over.
            (Layout::Like(_), [rows, 1]) => Fragment::Rows { rows: *rows },
            (Layout::Like(_), [rows, PARTIALS]) => Fragment::PartialSums { rows: *rows },
            (Layout::Like(_), [rows, columns]) if rows % 64 == 0 && columns % 8 == 0 => {
                Fragment::Accumulator { rows: *rows, columns: *columns }
            }
            (Layout::Tensor { warps: 4, .. }, [rows @ (64 | 128), 1]) => Fragment::TensorRows { rows: *rows },
            (Layout::Tensor { rows: rows @ (64 | 128), warps: 4, .. }, [1, columns]) if columns % 8 == 0 => {
                Fragment::TensorColumns { rows: *rows, columns: *columns }
            }
            (Layout::Tensor { warps: 4, .. }, [rows @ (64 | 128), columns]) if columns % 8 == 0 => {
                Fragment::Tensor { rows: *rows, columns: *columns }
            }
            (Layout::Blocked { warps, .. }, [extent]) => Fragment::Blocked { extent: *extent, warps: *warps },
            (Layout::Blocked { warps, .. }, [rows, 1]) => Fragment::BlockedRows { rows: *rows, warps: *warps },
            (Layout::Blocked { warps, .. }, [1, columns]) => {
                Fragment::BlockedColumns { columns: *columns, warps: *warps }
            }
            (Layout::Blocked { warps, .. }, [rows, columns]) => {
                Fragment::BlockedTile { rows: *rows, columns: *columns, warps: *warps }
            }
            (Layout::Slice(dimension, parent), [extent]) => match (parent.as_ref(), dimension) {
                (Layout::Accumulator { .. } | Layout::LeftOperand { .. }, 1) if extent % 64 == 0 => {
                    Fragment::Rows { rows: *extent }
                }
                (Layout::Accumulator { .. } | Layout::LeftOperand { .. }, 0) if extent % 8 == 0 => {
                    Fragment::Columns { columns: *extent }
                }
                (Layout::Like(_), 1) => Fragment::Rows { rows: *extent },
                (Layout::Tensor { warps: 4, .. }, 1) if matches!(extent, 64 | 128) => {
                    Fragment::TensorRows { rows: *extent }
                }
                (Layout::Tensor { rows: rows @ (64 | 128), warps: 4, .. }, 0) if extent % 8 == 0 => {
                    Fragment::TensorColumns { rows: *rows, columns: *extent }
                }
                (Layout::Blocked { warps, .. }, 1) => Fragment::BlockedRows { rows: *extent, warps: *warps },
                (Layout::Blocked { warps, .. }, 0) => Fragment::BlockedColumns { columns: *extent, warps: *warps },
                _ => return Err(unknown()),
            },
            _ => return Err(unknown()),
        })
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
        }
    }

    /// Along which index each dimension of a tile in it runs.
    pub fn axes(&self, dimensions: usize) -> Vec<Option<Axis>> {
        match (self, dimensions) {
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
