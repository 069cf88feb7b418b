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
    /// The kernel's early returns.
    pub fn early_returns(&self) -> Vec<OperationId> {
        let body = self.module.body(self.kernel.function());
        let operations = body.map_or(&[][..], |body| self.module.block(body).operations.as_slice());
        operations.iter().copied().filter(|id| is_early_return(&self.module.operation(*id).name)).collect()
    }

    /// Gives a group that has no code yet the kernel's early returns.
    pub fn add_early_returns(&mut self, group: &mut GroupBuilder) -> Result<(), Error> {
        let module = self.module;
        let scope = if self.enclosing.is_empty() { Scope::Body } else { Scope::Before(0) };
        for id in self.early_returns() {
            let operation = module.operation(id);
            if self.programs.is_some() {
                let what = "an early return of one of the programs that share a CTA";
                return Err(self.unsupported(id, what, "let each have a CTA of its own"));
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
