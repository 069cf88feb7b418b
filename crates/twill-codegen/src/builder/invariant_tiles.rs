//! Tiles that are loaded before the loops and stay in shared memory.

use crate::builder::kernel::KernelBuilder;
use crate::builder::planned::InvariantTile;
use crate::builder::source::LoopFacts;
use crate::error::Error;
use crate::ir::*;
use twill_graph::saturate;
use twill_triton::mlir::{OperationId, ValueId};
use twill_triton::tile::Origin;

impl KernelBuilder<'_> {
    /// The part of a tile of before the loops that a group gets at once: cut along the rows that the loops are
    /// cut along.
    pub fn invariant_tiles(
        &mut self,
        load: OperationId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Vec<usize>, Error> {
        let value = self.module.operation(load).results[0];
        let shape = self.shape(value);
        let mut extents = shape.clone();
        if self.programs.is_none() {
            let cut = self.loops.iter().find_map(|l| Some((cut_along(l, value)?, l.tiles.sub_tiles().max(1))));
            if let Some((d, parts)) = cut
                && shape[d].is_multiple_of(u64::from(parts))
            {
                extents[d] = shape[d] / u64::from(parts);
            } else if cut.is_none() && self.options.shares.epilogue_subtile.is_some() && !self.has_tensor_memory() {
                // Each group has its rows, of which it reads some columns at a time.
                if let ([rows, _], [part, _]) = (shape.as_slice(), region.extents.as_slice())
                    && rows.is_multiple_of(*part)
                {
                    extents[0] = *part;
                }
            }
        }
        let program = program.filter(|_| self.depends_on_program(value));
        let count = shape.iter().zip(&extents).map(|(w, p)| w / p).product::<u64>();
        let mut found = Vec::new();
        for k in 0..saturate::<u32>(count) {
            let part = Region::part(&shape, &extents, k);
            if part.overlap(region).is_none() {
                continue;
            }
            let known =
                self.invariant_tiles.iter().position(|p| p.load == load && p.region == part && p.program == program);
            let position = match known {
                Some(position) => position,
                None => self.new_invariant_tile(load, value, part, program, (count > 1).then_some(k))?,
            };
            found.push(position);
        }
        Ok(found)
    }

    fn new_invariant_tile(
        &mut self,
        load: OperationId,
        value: ValueId,
        region: Region,
        program: Option<u32>,
        number: Option<u32>,
    ) -> Result<usize, Error> {
        let stem = crate::ir::names::of_value(self.module, value);
        let name = match number.or(program) {
            Some(k) => format!("{stem}_{k}"),
            None => stem,
        };
        let element = self.element(value);
        let buffer = Buffer {
            name: format!("{name}_buffer"),
            shape: region.extents.clone(),
            element,
            slots: 1,
            least_slots: 1,
            memory: Memory::Shared,
            plain: false,
            source: self.place(load).source,
        };
        let buffer = self.buffer(buffer);
        let full = self.barrier(format!("{name}_full"), 1, vec![Arrival::Unit]);
        let empty = self.barrier(format!("{name}_empty"), 1, Vec::new());
        self.invariant_tiles.push(InvariantTile { load, region, program, buffer, full, empty, readers: Vec::new() });
        Ok(self.invariant_tiles.len() - 1)
    }
}

/// The dimension of a tile of before the loop along which its readers' sub-tiles cut it.
pub(crate) fn cut_along(facts: &LoopFacts<'_>, value: ValueId) -> Option<usize> {
    let is = |origin: &Origin| matches!(origin, Origin::Invariant { value: v, .. } if *v == value);
    let mut operands = facts.tiles.operations().iter().flat_map(|op| &op.operands);
    operands.find_map(|operand| {
        let reads = operand.tiles.iter().any(|t| is(&facts.tiles.tile(*t).origin));
        let row = operand.row_dimension.filter(|_| reads)?;
        operand.dimensions.get(row).copied().flatten()
    })
}
