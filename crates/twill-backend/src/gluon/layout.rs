//! Layouts as Gluon names and defines them.

pub(super) use crate::layout::{Layout, Reach, View, infer, inlined, of_other_variables};
use std::collections::BTreeSet;

impl Layout {
    /// Its name in the code.
    pub fn name(&self) -> String {
        match self {
            Layout::Accumulator { columns, bits: 16 } => format!("ACC_{columns}"),
            Layout::Accumulator { columns, bits } => format!("ACC_{columns}_{bits}BIT"),
            Layout::LeftOperand { columns, bits: 16 } => format!("LEFT_{columns}"),
            Layout::LeftOperand { columns, bits } => format!("LEFT_{columns}_{bits}BIT"),
            Layout::Slice(dimension, parent) => format!("gl.SliceLayout({dimension}, {})", parent.name()),
            Layout::Tensor { rows, columns, warps: 4 } => format!("TENSOR_{rows}X{columns}"),
            Layout::Tensor { rows, columns, warps } => format!("TENSOR_{rows}X{columns}_{warps}"),
            Layout::Like(variable) => format!("{variable}.type.layout"),
            Layout::Blocked { rank, warps } => format!("BLOCKED_{rank}D_{warps}"),
            Layout::Coalesced { shape, dimension, vector, warps } => {
                format!("TILE_{}_D{dimension}_V{vector}{}", by(shape), of_warps(*warps))
            }
            Layout::Operand { index, bits, parent } => {
                format!("{}_{}_{bits}BIT", if *index == 0 { "LEFT" } else { "RIGHT" }, parent.name())
            }
            Layout::Mma { version, shape, bits, warps } => {
                format!("MMA{version}_{}_{bits}BIT{}", by(shape), of_warps(*warps))
            }
            Layout::View { of, shape, parent } => {
                let parent: String = parent
                    .name()
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                    .collect();
                match of {
                    View::Permuted(order) => {
                        let order: String = order.iter().map(usize::to_string).collect();
                        format!("{parent}_PERMUTED_{order}_OF_{}", by(shape))
                    }
                    View::Reshaped(extents) => format!("{parent}_AS_{}_OF_{}", by(extents), by(shape)),
                    View::Joined => format!("{parent}_JOINED_OF_{}", by(shape)),
                }
            }
        }
    }

    /// How many layouts it follows from, one from the other; 0 of one that is defined by itself.
    pub fn depth(&self) -> usize {
        match self {
            Layout::View { parent, .. } => 1 + parent.depth(),
            Layout::Slice(_, parent) => parent.depth(),
            _ => 0,
        }
    }

    /// The layouts that must be defined so that it can be named.
    pub fn roots(&self, roots: &mut BTreeSet<Layout>) {
        match self {
            Layout::Slice(_, parent) => parent.roots(roots),
            Layout::Like(_) => {}
            Layout::LeftOperand { columns, bits } => {
                roots.insert(Layout::Accumulator { columns: *columns, bits: *bits });
                roots.insert(self.clone());
            }
            Layout::Operand { parent, .. } | Layout::View { parent, .. } => {
                parent.roots(roots);
                roots.insert(self.clone());
            }
            _ => {
                roots.insert(self.clone());
            }
        }
    }

    /// Its definition; `along_columns`: groups of four warps that share out the columns of an MMA's result; `widest`: columns of the
    /// widest `wgmma` of 8 bits.
    pub fn definition(&self, along_columns: u64, widest: u64) -> String {
        let widest_of = |bits: u32| if bits == 8 { widest } else { 256 };
        match self {
            Layout::Accumulator { columns, bits } => format!(
                "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, {along_columns}], instr_shape=[16, {}, {}])",
                (columns / along_columns).clamp(8, widest_of(*bits)),
                256 / bits.max(&8)
            ),
            Layout::LeftOperand { columns, bits } => {
                let (width, parent) =
                    (32 / bits.max(&1), Layout::Accumulator { columns: *columns, bits: *bits }.name());
                format!("gl.DotOperandLayout(operand_index=0, parent={parent}.value, k_width={width})")
            }
            Layout::Operand { index, bits, parent } => {
                let width = 32 / bits.max(&1);
                format!("gl.DotOperandLayout(operand_index={index}, parent={}.value, k_width={width})", parent.name())
            }
            Layout::Slice(..) | Layout::Like(_) => self.name(),
            Layout::View { of, shape, parent } => {
                let (how, extents) = match of {
                    View::Permuted(order) => ("permuted", format!("{order:?}")),
                    View::Reshaped(extents) => ("reshaped", format!("{extents:?}")),
                    View::Joined => ("joined", "[]".into()),
                };
                format!("view_layout({}, {shape:?}, \"{how}\", {extents})", parent.name())
            }
            Layout::Tensor { rows, columns, warps } => super::tensor_memory::register_layout(*rows, *columns, *warps),
            Layout::Coalesced { shape, dimension, vector, warps } => coalesced(shape, *dimension, *vector, *warps),
            Layout::Mma { version: 3, shape, bits, warps } => {
                let (rows, columns) = (shape.first().copied().unwrap_or(64), shape.get(1).copied().unwrap_or(8));
                // A warp group has 64 rows; others have other rows, else other columns.
                let along_rows = u64::from(*warps).min(rows / 16).max(4);
                let along_columns = u64::from(*warps) / along_rows;
                let width = (columns / along_columns.max(1)).clamp(8, widest_of(*bits));
                format!(
                    "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[{along_rows}, {along_columns}], instr_shape=[16, {width}, {}])",
                    256 / bits.max(&8)
                )
            }
            Layout::Mma { shape, warps, .. } => match shape.as_slice() {
                [rows, _] => {
                    let (along_rows, along_columns) = warps_of_mma_sync(*rows, *warps);
                    format!(
                        "gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[{along_rows}, {along_columns}], instr_shape=[16, 8])"
                    )
                }
                _ => format!(
                    "gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[{warps}, 1, 1], instr_shape=[1, 16, 8])"
                ),
            },
            Layout::Blocked { rank: 1, warps } => format!("gl.BlockedLayout([1], [32], [{warps}], [0])"),
            Layout::Blocked { warps, .. } => format!("gl.BlockedLayout([1, 8], [4, 8], [{warps}, 1], [1, 0])"),
        }
    }
}

/// Warps along the rows and the columns of a result of `mma.sync`, as many along rows as have 16.
pub(super) fn warps_of_mma_sync(rows: u64, warps: u32) -> (u64, u64) {
    let along_rows = u64::from(warps).min(rows / 16).max(1);
    (along_rows, u64::from(warps) / along_rows)
}

/// Definitions of those layouts that follow from others, where a group's function begins: the compiler tells the others' linear form.
pub(super) fn views(layouts: &BTreeSet<Layout>) -> String {
    let mut views: Vec<&Layout> = layouts.iter().filter(|layout| layout.depth() > 0).collect();
    views.sort_by_key(|layout| layout.depth());
    let define = |layout: &&Layout| format!("    {}: gl.constexpr = {}\n", layout.name(), layout.definition(1, 256));
    views.iter().map(define).collect()
}

/// What tells layouts of other groups than those of four warps apart.
fn of_warps(warps: u32) -> String {
    if warps == 4 { String::new() } else { format!("_W{warps}") }
}

/// Extents as a word.
fn by(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("X")
}

/// Elements and lanes along each dimension, the contiguous one first, as in Triton's default layout; warps along the others first, so
/// that a thread has few indices along each of them: what is computed for each row is computed for few.
fn coalesced(shape: &[u64], dimension: usize, vector: u64, warps: u32) -> String {
    if dimension >= shape.len() {
        // A number that stands where a tile should: the compiler refuses it.
        return "None".into();
    }
    let order: Vec<usize> =
        std::iter::once(dimension).chain((0..shape.len()).rev().filter(|d| *d != dimension)).collect();
    let (mut each, mut lanes, mut groups) = (vec![1; shape.len()], vec![1; shape.len()], vec![1; shape.len()]);
    let (mut lanes_left, mut warps_left) = (32, u64::from(warps));
    for (k, d) in order.iter().enumerate() {
        if k == 0 {
            each[*d] = vector.min(shape[*d]).max(1);
        }
        let rest = shape[*d] / each[*d];
        let is_last = k + 1 == order.len();
        lanes[*d] = if is_last { lanes_left } else { rest.clamp(1, lanes_left) };
        lanes_left /= lanes[*d];
    }
    for d in order.iter().rev() {
        let rest = shape[*d] / each[*d] / lanes[*d];
        groups[*d] = if *d == dimension { warps_left } else { rest.clamp(1, warps_left) };
        warps_left /= groups[*d];
    }
    format!("gl.BlockedLayout({each:?}, {lanes:?}, {groups:?}, {order:?})")
}
