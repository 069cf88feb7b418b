//! Brings a function with early returns to one block: each becomes an operation that ends the program if its condition holds.
//!
//! `cf.cond_br` to a block that only returns becomes [`RETURN_IF`] or [`RETURN_UNLESS`], and the other block follows. So does an
//! `scf.if` without results and without another way, after which the function returns: what is in it follows.

use super::ast::{BlockId, Module, OperationId};

/// Ends the program if its operand holds.
pub const RETURN_IF: &str = "twill.return_if";
/// Ends the program unless its operand holds.
pub const RETURN_UNLESS: &str = "twill.return_unless";

impl Module {
    /// The module with a function brought to one block; as it is where that cannot be.
    pub(crate) fn with_returns_in_line(self, function: OperationId) -> Module {
        let mut changed = self.clone();
        while changed.take_next_block(function) {}
        let Some(entry) = changed.body(function) else { return self };
        let ends = changed.terminator(entry).is_some_and(|last| changed.operation(last).name == "tt.return");
        if !ends {
            return self;
        }
        if let Some(region) = changed.operation(function).regions.first().copied() {
            changed.regions[region.index()].blocks = vec![entry];
        }
        changed.number_uses();
        changed
    }

    /// Puts what follows the first block at its end; false where nothing does.
    fn take_next_block(&mut self, function: OperationId) -> bool {
        let Some(entry) = self.body(function) else { return false };
        let Some(last) = self.terminator(entry) else { return false };
        let operation = self.operation(last);
        match (operation.name.as_str(), operation.successors.as_slice(), operation.operands.len()) {
            ("cf.br", [next], 0) if self.is_joined_once(function, *next) => {
                let next = *next;
                self.blocks[entry.index()].operations.pop();
                self.move_operations(next, entry);
                true
            }
            ("cf.cond_br", [then, otherwise], 1) => {
                let (then, otherwise) = (*then, *otherwise);
                let (name, next) = match (self.only_returns(then), self.only_returns(otherwise)) {
                    (true, _) => (RETURN_IF, otherwise),
                    (_, true) => (RETURN_UNLESS, then),
                    _ => return false,
                };
                if !self.is_joined_once(function, next) && !self.only_returns(next) {
                    return false;
                }
                self.make_return(last, name);
                self.move_operations(next, entry);
                true
            }
            ("tt.return", ..) => self.take_branch(entry),
            _ => false,
        }
    }

    /// The same for a branch that the function ends with.
    fn take_branch(&mut self, entry: BlockId) -> bool {
        let operations = self.block(entry).operations.clone();
        let [.., branch, last] = operations.as_slice() else { return false };
        let operation = self.operation(*branch);
        let blocks = |k: usize| {
            let region = operation.regions.get(k).map(|region| self.region(*region));
            region.map_or(&[][..], |region| region.blocks.as_slice())
        };
        let has_loop = self.walk(*branch).any(|id| self.operation(id).name == "scf.for");
        let ([body], []) = (blocks(0), blocks(1)) else { return false };
        if operation.name != "scf.if" || !operation.results.is_empty() || !has_loop {
            return false;
        }
        let (body, branch, last) = (*body, *branch, *last);
        self.make_return(branch, RETURN_UNLESS);
        self.operations[branch.index()].regions.clear();
        self.blocks[entry.index()].operations.pop();
        self.blocks[body.index()].operations.pop();
        self.move_operations(body, entry);
        self.blocks[entry.index()].operations.push(last);
        true
    }

    fn make_return(&mut self, id: OperationId, name: &str) {
        let operation = &mut self.operations[id.index()];
        name.clone_into(&mut operation.name);
        operation.successors.clear();
        operation.attributes.forget("operandSegmentSizes");
    }

    fn move_operations(&mut self, from: BlockId, to: BlockId) {
        let moved = std::mem::take(&mut self.blocks[from.index()].operations);
        moved.iter().for_each(|id| self.operations[id.index()].block = Some(to));
        self.blocks[to.index()].operations.extend(moved);
    }

    fn only_returns(&self, block: BlockId) -> bool {
        let names: Vec<&str> =
            self.block(block).operations.iter().map(|id| self.operation(*id).name.as_str()).collect();
        self.block(block).arguments.is_empty() && names == ["tt.return"]
    }

    /// Whether one branch leads to a block, which takes no values.
    fn is_joined_once(&self, function: OperationId, block: BlockId) -> bool {
        let region = self.operation(function).regions.first().map(|region| self.region(*region));
        let blocks = region.map_or(&[][..], |region| region.blocks.as_slice());
        let ends = blocks.iter().filter_map(|b| self.terminator(*b)).flat_map(|id| &self.operation(id).successors);
        self.block(block).arguments.is_empty() && ends.filter(|next| **next == block).count() == 1
    }
}
