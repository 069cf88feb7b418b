//! An MMA that `wgmma` does not do, of fewer than 64 rows or of other elements than those of 16 bits: the group does it at once, by
//! `mma.sync` or without the tensor core, and reads its operands to registers.

use crate::builder::source::Producer;
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
        let [_, depth] = self.reader.lowering.shape(left)[..] else {
            return Err(self.reader.lowering.unsupported(id, "MMAs of more than two dimensions", "multiply matrices"));
        };
        let left = self.multiplied(left, &region.all_along(1, depth), program, iteration)?;
        let right = self.multiplied(right, &region.all_along(0, depth), program, iteration)?;
        let sum = self.reader.value(sum, region, program, Some((self.index, iteration)))?;
        self.wait_for_value(&sum);
        let to = self.produce(op, iteration);
        self.timestamp(op, Moment::Issue, iteration);
        self.reader.group.note = note;
        let operation = Box::new(opaque(operation));
        self.reader.group.act(Op::Opaque { operation, operands: vec![left, right, sum], results: vec![to] });
        self.stamp_completed(op, iteration);
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
        let module = self.reader.lowering.module;
        if let Some(view) = module.defining_operation(value)
            && module.operation(view).name == "tt.trans"
            && let Some(inner) = module.operation(view).operands.first()
        {
            let inner = self.multiplied(*inner, &region.before_transposition(&[1, 0]), program, iteration)?;
            return Ok(match inner.kind {
                ExpressionKind::FromShared(slot) => Expression {
                    kind: ExpressionKind::FromShared(Slot { transposed: !slot.transposed, ..slot }),
                    shape: inner.shape.into_iter().rev().collect(),
                    element: inner.element,
                },
                _ => inner.turned(),
            });
        }
        let producers = self.reader.lowering.loops[self.index].producers.get(&value);
        let fits = |p: &&Producer| p.region == *region && (p.program.is_none() || p.program == program);
        if let Some(producer) = producers.and_then(|all| all.iter().find(fits)).cloned() {
            let stored = self.reader.stored(self.index, producer.op);
            if stored != producer.op {
                let slot = self.reader.slot(self.index, stored, iteration)?;
                let (shape, element) = (region.extents.clone(), self.reader.lowering.element(value));
                return Ok(Expression { kind: ExpressionKind::FromShared(slot), shape, element });
            }
        }
        self.reader.value(value, region, program, Some((self.index, iteration)))
    }
}
