//! An MMA that `wgmma` does not do, of fewer than 64 rows or of other elements than those of 16 bits: the group does it at once, by
//! `mma.sync` or without the tensor core, and reads its operands to registers.

use crate::error::Error;
use crate::in_order::opaque;
use crate::ir::{Expression, ExpressionKind, Moment, Op, Region, Slot};
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::Iteration;
use twill_graph::OpId;
use twill_triton::mlir::{OperationId, ValueId};

impl LoopBuilder<'_, '_> {
    pub(super) fn synchronous_mma(
        &mut self,
        op: OpId,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<(), Error> {
        let note = std::mem::take(&mut self.reader.group.note);
        let operation = self.reader.lowering.module.operation(id);
        let &[left, right, sum, ..] = operation.operands.as_slice() else {
            return Err(self.reader.lowering.defect(id, "the operands of an MMA"));
        };
        let depth = self.reader.lowering.shape(left).get(1).copied().unwrap_or(0);
        let along = |dimension: usize| {
            let mut part = region.clone();
            (part.starts[dimension], part.extents[dimension]) = (0, depth);
            part
        };
        let left = self.multiplied(left, &along(1), program, iteration)?;
        let right = self.multiplied(right, &along(0), program, iteration)?;
        let sum = self.reader.value(sum, region, program, Some((self.index, iteration)))?;
        let to = self.produce(op, iteration);
        self.timestamp(op, Moment::Issue, iteration);
        self.reader.group.note = note;
        let operation = Box::new(opaque(operation));
        self.reader.group.act(Op::Opaque { operation, operands: vec![left, right, sum], results: vec![to] });
        Ok(())
    }

    /// An operand; one that stands in shared memory is read from there as it is multiplied.
    fn multiplied(
        &mut self,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<Expression, Error> {
        let value = self.reader.value(value, region, program, Some((self.index, iteration)))?;
        let ExpressionKind::Transpose(order, inner) = &value.kind else { return Ok(value) };
        match &inner.kind {
            ExpressionKind::FromShared(slot) if order == &[1, 0] => {
                let slot = Slot { transposed: !slot.transposed, ..slot.clone() };
                Ok(Expression { kind: ExpressionKind::FromShared(slot), ..value })
            }
            _ => Ok(value),
        }
    }
}
