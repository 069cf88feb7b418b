//! Brings a function with early returns to one block: each becomes an operation that ends the program if its condition holds.
//!
//! `cf.cond_br` to a block that only returns becomes [`RETURN_IF`] or [`RETURN_UNLESS`], and the other block follows. So does an
//! `scf.if` without results and without another way, after which the function returns: what is in it follows. Where both blocks do
//! something before they return, they are the two ways of an `scf.if`, which if-conversion brings to one. So they are where the function
//! does something that is seen before the branch: each group returns before it does anything else.

use crate::mlir::{BlockId, Module, OperationId};
use crate::operations;

/// Ends the program if its operand holds.
pub const RETURN_IF: &str = "twill.return_if";
/// Ends the program unless its operand holds.
pub const RETURN_UNLESS: &str = "twill.return_unless";

/// Whether an operation of this name may end the program.
pub fn is_early_return(name: &str) -> bool {
    name == RETURN_IF || name == RETURN_UNLESS
}

/// The module with a function brought to one block; as it is where that cannot be.
pub(super) fn in_line(module: Module, function: OperationId) -> Module {
    let mut changed = module.clone();
    while take_next_block(&mut changed, function) {}
    let Some(entry) = changed.body(function) else { return module };
    let ends = changed.terminator(entry).is_some_and(|last| changed.operation(last).name == "tt.return");
    if !ends {
        return module;
    }
    changed.keep_only(function, entry);
    changed.number_uses();
    changed
}

/// Puts what follows the first block at its end; false where nothing does.
fn take_next_block(module: &mut Module, function: OperationId) -> bool {
    let Some(entry) = module.body(function) else { return false };
    let Some(last) = module.terminator(entry) else { return false };
    let operation = module.operation(last);
    match (operation.name.as_str(), operation.successors.as_slice(), operation.operands.len()) {
        ("cf.br", [next], 0) if is_joined_once(module, function, *next) => {
            let next = *next;
            module.remove(last);
            module.append_operations(entry, next);
            true
        }
        // Who returns early does it before anything else.
        ("cf.cond_br", ..) if has_effect(module, entry) => returns_to_if(module, function, entry),
        ("cf.cond_br", [then, otherwise], 1) => {
            let (then, otherwise) = (*then, *otherwise);
            let (name, next) = match (only_returns(module, then), only_returns(module, otherwise)) {
                (true, _) => (RETURN_IF, otherwise),
                (_, true) => (RETURN_UNLESS, then),
                _ => return returns_to_if(module, function, entry),
            };
            if !is_joined_once(module, function, next) {
                return false;
            }
            module.rename(last, name);
            module.append_operations(entry, next);
            true
        }
        ("tt.return", ..) => take_branch(module, entry),
        _ => false,
    }
}

/// Has a block end with a return: the branches that it ends with become `scf.if`. False where they lead elsewhere.
fn returns_to_if(module: &mut Module, function: OperationId, block: BlockId) -> bool {
    let Some(last) = module.terminator(block) else { return false };
    let operation = module.operation(last);
    match (operation.name.as_str(), operation.successors.as_slice(), operation.operands.len()) {
        ("tt.return", ..) => true,
        ("cf.br", [next], 0) if is_joined_once(module, function, *next) => {
            let next = *next;
            module.remove(last);
            module.append_operations(block, next);
            returns_to_if(module, function, block)
        }
        ("cf.cond_br", [then, otherwise], 1) => {
            let ways = [*then, *otherwise];
            let may = ways
                .into_iter()
                .all(|way| is_joined_once(module, function, way) && returns_to_if(module, function, way));
            if may {
                module.branch_to_if(last);
            }
            may
        }
        _ => false,
    }
}

/// Whether a block does something that is seen before the branch that it ends with.
fn has_effect(module: &Module, block: BlockId) -> bool {
    let last = module.terminator(block).map(|end| module.operation(end).name == "tt.return");
    let ending = if last == Some(true) { 2 } else { 1 };
    let before = module.block(block).operations.iter().rev().skip(ending);
    let is_seen = |id: OperationId| operations::has_effect(&module.operation(id).name);
    before.into_iter().any(|id| module.walk(*id).any(is_seen))
}

/// The same for a branch that the function ends with.
fn take_branch(module: &mut Module, entry: BlockId) -> bool {
    let [.., branch, last] = module.block(entry).operations.as_slice() else { return false };
    let (branch, last) = (*branch, *last);
    let operation = module.operation(branch);
    let blocks = |k: usize| {
        let region = operation.regions.get(k).map(|region| module.region(*region));
        region.map_or(&[][..], |region| region.blocks.as_slice())
    };
    let has_loop = module.walk(branch).any(|id| module.operation(id).name == "scf.for");
    let ([body], []) = (blocks(0), blocks(1)) else { return false };
    if operation.name != "scf.if" || !operation.results.is_empty() || !has_loop || has_effect(module, entry) {
        return false;
    }
    let body = *body;
    module.rename(branch, RETURN_UNLESS);
    if let Some(end) = module.terminator(body) {
        module.remove(end);
    }
    for id in module.block(body).operations.clone() {
        module.move_before(id, last);
    }
    true
}

fn only_returns(module: &Module, block: BlockId) -> bool {
    let block = module.block(block);
    let names: Vec<&str> = block.operations.iter().map(|id| module.operation(*id).name.as_str()).collect();
    block.arguments.is_empty() && names == ["tt.return"]
}

/// Whether one branch leads to a block, which takes no values.
fn is_joined_once(module: &Module, function: OperationId, block: BlockId) -> bool {
    let region = module.operation(function).regions.first().map(|region| module.region(*region));
    let blocks = region.map_or(&[][..], |region| region.blocks.as_slice());
    let ends = blocks.iter().filter_map(|b| module.terminator(*b)).flat_map(|id| &module.operation(id).successors);
    module.block(block).arguments.is_empty() && ends.filter(|next| **next == block).count() == 1
}
