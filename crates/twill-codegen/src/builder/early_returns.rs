//! Early returns: each group evaluates their conditions before it does anything else.

use crate::builder::enclosing::Scope;
use crate::builder::group::GroupBuilder;
use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::ir::Node;
use twill_triton::kernel::{RETURN_IF, RETURN_UNLESS};
use twill_triton::mlir::OperationId;

/// Whether an operation ends the program.
pub(crate) fn is_early_return(name: &str) -> bool {
    matches!(name, RETURN_IF | RETURN_UNLESS)
}

impl KernelBuilder<'_> {
    /// Gives a group that has no code yet the kernel's early returns.
    pub fn add_early_returns(&mut self, group: &mut GroupBuilder) -> Result<(), Error> {
        let module = self.module;
        let Some(body) = module.body(self.kernel.function()) else { return Ok(()) };
        let operations: &[OperationId] = &module.block(body).operations;
        let scope = if self.enclosing.is_empty() { Scope::Body } else { Scope::Before(0) };
        for id in operations.iter().filter(|id| is_early_return(&module.operation(**id).name)) {
            let operation = module.operation(*id);
            if self.programs.is_some() {
                let what = "an early return of one of the programs that share a CTA";
                return Err(self.unsupported(*id, what, "let each have a CTA of its own"));
            }
            let Some(condition) = operation.operands.first().copied() else { continue };
            let mut reader = Reader { lowering: self, group };
            let condition = reader.scoped(scope, |reader| reader.scalar(condition, None, None))?;
            let mut ways = [vec![Node::Return], Vec::new()];
            if operation.name == RETURN_UNLESS {
                ways.reverse();
            }
            let [then, otherwise] = ways;
            group.scope = scope;
            group.place(0, Node::If { condition, then, otherwise });
            group.scope = Scope::Body;
        }
        Ok(())
    }
}
