//! Copies of operations with all that is nested in them.

use super::ast::{BlockId, Module, OperationId, ValueId};
use std::collections::HashMap;

/// What stands for a value in a copy.
pub(crate) type Copies = HashMap<ValueId, ValueId>;

impl Module {
    /// Puts a copy of an operation before another one. Values that the copy's own values stand for are added to `copies`; their names
    /// end in `suffix`.
    pub(crate) fn clone_before(&mut self, id: OperationId, before: OperationId, copies: &mut Copies, suffix: &str) {
        let Some((block, position)) = self.position(before) else { return };
        let copy = self.clone_into(id, block, copies, suffix);
        let order = &mut self.blocks[block.index()].operations;
        order.pop();
        order.insert(position, copy);
    }

    /// Puts a copy at the end of a block.
    fn clone_into(&mut self, id: OperationId, block: BlockId, copies: &mut Copies, suffix: &str) -> OperationId {
        let original = self.operation(id).clone();
        let copy = self.add_operation(Some(block), original.line, original.column);
        let operands = original.operands.iter().map(|value| copies.get(value).copied().unwrap_or(*value)).collect();
        self.set_operands(copy, operands);
        let operation = &mut self.operations[copy.index()];
        (operation.name, operation.attributes) = (original.name, original.attributes);
        (operation.location, operation.successors) = (original.location, original.successors);
        for value in original.results {
            let (kind, name) = (self.type_of(value).clone(), format!("{}{suffix}", self.value(value).name));
            let result = self.add_result(copy, kind, &name);
            copies.insert(value, result);
        }
        for region in original.regions {
            let of_copy = self.add_region(copy);
            for block in self.region(region).blocks.clone() {
                let inner = self.add_block(of_copy);
                self.regions[of_copy.index()].blocks.push(inner);
                for argument in self.block(block).arguments.clone() {
                    let (kind, name) =
                        (self.type_of(argument).clone(), format!("{}{suffix}", self.value(argument).name));
                    let of_inner = self.add_argument(inner, kind, &name);
                    copies.insert(argument, of_inner);
                }
                for operation in self.block(block).operations.clone() {
                    self.clone_into(operation, inner, copies, suffix);
                }
            }
        }
        copy
    }
}
