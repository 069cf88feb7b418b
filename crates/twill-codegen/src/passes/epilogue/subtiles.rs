//! Epilogue sub-tiles: what is computed of an MMA's result after the loops, some columns at a time (CUTLASS: epilogue tile).
//!
//! A thread of a group that holds a result of 64 × 256 numbers has 128 registers full of it. An epilogue over all of them at once holds
//! its intermediate values of all of them, and spills; and it wants as much shared memory to store from.

use crate::builder::kernel::KernelBuilder;
use crate::builder::views::is_view;
use crate::ir::{Elementwise, Region};
use crate::passes::epilogue::stores::Part;
use twill_triton::kernel::axis_of;
use twill_triton::mlir::{OperationId, ValueId};

/// Warps of a warp group, which hold whole rows of a result.
const WARPS: u32 = 4;

impl KernelBuilder<'_> {
    /// Into which columns a part of a store falls; itself, where they cannot be computed one after the other.
    pub(super) fn subtiles(&self, id: OperationId, part: &Part) -> Vec<Region> {
        let (operation, region) = (self.module.operation(id), &part.region);
        let whole = || vec![region.clone()];
        let (Some(columns), Some(value)) = (self.options.shares.epilogue_subtile, operation.operands.get(1)) else {
            return whole();
        };
        let is_plain = matches!(operation.name.as_str(), "tt.store" | "tt.descriptor_store");
        let [_, extent] = region.extents[..] else { return whole() };
        // Halves of halves are what threads can tell apart, and eight warps share out columns.
        let is_cut = extent > columns && extent.is_power_of_two() && columns.is_power_of_two();
        let is_plain = is_plain && self.warps(part.group) == WARPS;
        if !(is_plain && is_cut && operation.block == Some(self.block) && self.is_of_columns(*value, 0)) {
            return whole();
        }
        (0..extent / columns)
            .map(|k| Region {
                starts: vec![region.starts[0], region.starts[1] + k * columns],
                extents: vec![region.extents[0], columns],
            })
            .collect()
    }

    /// Whether each column of a tile follows from that column of results of MMAs, and of what is not computed by loops.
    fn is_of_columns(&self, value: ValueId, depth: u32) -> bool {
        if depth > 64 {
            return false;
        }
        if let Some((index, k)) = self.loop_result(value) {
            let facts = &self.loops[index];
            let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
            let is_mma = |op| facts.is_wgmma(self.module, op);
            // What has no columns is read whole.
            return self.shape(value).len() < 2 || !producers.is_empty() && producers.iter().all(|p| is_mma(p.op));
        }
        let Some(id) = self.module.defining_operation(value) else { return true };
        let operation = self.module.operation(id);
        let each = || operation.operands.iter().all(|operand| self.is_of_columns(*operand, depth + 1));
        match operation.name.as_str() {
            "tt.expand_dims" if axis_of(self.module, id) == Some(1) => true,
            "arith.constant" | "tt.get_program_id" | "tt.get_num_programs" | "tt.make_range" => true,
            "tt.load" | "tt.descriptor_load" | "tt.addptr" | "tt.splat" | "tt.broadcast" | "tt.expand_dims" => each(),
            name => self.shape(value).is_empty() || (Elementwise::is_known(name) && !is_view(name) && each()),
        }
    }
}
