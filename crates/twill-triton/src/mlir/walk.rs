//! Visits operations in the order of the text.

use super::ast::{Module, OperationId};

/// An iterator over an operation and everything nested in it; see [`Module::walk`].
#[derive(Debug, Clone)]
pub struct Walk<'module> {
    module: &'module Module,
    pending: Vec<OperationId>,
}

impl Iterator for Walk<'_> {
    type Item = OperationId;

    fn next(&mut self) -> Option<OperationId> {
        let id = self.pending.pop()?;
        for region in self.module.operation(id).regions.iter().rev() {
            for block in self.module.region(*region).blocks.iter().rev() {
                self.pending.extend(self.module.block(*block).operations.iter().rev());
            }
        }
        Some(id)
    }
}

impl Module {
    /// The operation, then everything nested in it, each before what is nested in it in turn.
    pub fn walk(&self, root: OperationId) -> Walk<'_> {
        Walk { module: self, pending: vec![root] }
    }

    /// The operations around this one, from the inside out.
    pub fn ancestors(&self, id: OperationId) -> impl Iterator<Item = OperationId> {
        std::iter::successors(self.parent(id), |ancestor| self.parent(*ancestor))
    }

    /// Returns whether `inner` is nested in `outer`, at any depth; an operation is not nested in itself.
    pub fn is_nested_in(&self, inner: OperationId, outer: OperationId) -> bool {
        self.ancestors(inner).any(|ancestor| ancestor == outer)
    }
}
