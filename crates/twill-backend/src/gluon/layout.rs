//! Layouts as Gluon names and defines them.

pub(super) use crate::layout::{Layout, Reach, infer, inlined, of_variables};
use std::collections::BTreeSet;

impl Layout {
    /// Its name in the code.
    pub fn name(&self) -> String {
        match self {
            Layout::Accumulator(columns) => format!("ACC_{columns}"),
            Layout::LeftOperand { columns, bits: 16 } => format!("LEFT_{columns}"),
            Layout::LeftOperand { columns, bits } => format!("LEFT_{columns}_{bits}BIT"),
            Layout::Slice(dimension, parent) => format!("gl.SliceLayout({dimension}, {})", parent.name()),
            Layout::Tensor { rows, columns, warps: 4 } => format!("TENSOR_{rows}X{columns}"),
            Layout::Tensor { rows, columns, warps } => format!("TENSOR_{rows}X{columns}_{warps}"),
            Layout::Like(variable) => format!("{variable}.type.layout"),
            Layout::Blocked { rank, warps } => format!("BLOCKED_{rank}D_{warps}"),
        }
    }

    /// The layouts that must be defined so that it can be named.
    pub fn roots(&self, roots: &mut BTreeSet<Layout>) {
        match self {
            Layout::Slice(_, parent) => parent.roots(roots),
            Layout::Like(_) => {}
            Layout::LeftOperand { columns, .. } => {
                roots.insert(Layout::Accumulator(*columns));
                roots.insert(self.clone());
            }
            _ => {
                roots.insert(self.clone());
            }
        }
    }

    /// Its definition.
    pub fn definition(&self) -> String {
        match self {
            Layout::Accumulator(columns) => format!(
                "gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, {}, 16])",
                columns.min(&256)
            ),
            Layout::LeftOperand { columns, bits } => {
                let width = 32 / bits.max(&1);
                format!("gl.DotOperandLayout(operand_index=0, parent=ACC_{columns}.value, k_width={width})")
            }
            Layout::Slice(..) | Layout::Like(_) => self.name(),
            Layout::Tensor { rows, columns, warps } => super::tensor_memory::register_layout(*rows, *columns, *warps),
            Layout::Blocked { rank: 1, warps } => format!("gl.BlockedLayout([1], [32], [{warps}], [0])"),
            Layout::Blocked { warps, .. } => format!("gl.BlockedLayout([1, 8], [4, 8], [{warps}, 1], [1, 0])"),
        }
    }
}
