//! Critical sections after the pipelined loops, each as one operation.
//!
//! Programs that share a result combine their parts of it one after the other (cut-cross-entropy's log-sum-exp, split-K products):
//!
//! ```text
//! while tl.atomic_cas(lock, 0, 1) == 1: pass          ticket = tl.atomic_add(counter, 1)
//! total = tl.load(out); tl.store(out, total + own)    if ticket == last: …
//! tl.atomic_xchg(lock, 0)
//! ```
//!
//! What stands between is not to be moved out of it, and its order counts: one warp group executes it as it stands. A program that
//! waits for another one to write is left: it may wait for one that runs only after it.

use crate::mlir::{Attribute, BlockId, Module, OperationId, ValueId};
use crate::operations::is_pure;

/// Marks the branch, always taken, that a critical section is made.
pub const CRITICAL_SECTION: &str = "twill.critical_section";

/// The module with the critical section of a function, if it has one at the end, as one operation.
pub(crate) fn enclosed(mut module: Module, function: OperationId) -> Module {
    if let Some(section) = module.body(function).and_then(|body| section(&module, body)) {
        let branch = module.enclose(&section);
        module.set_attribute(branch, CRITICAL_SECTION, Attribute::Unit);
        // One thread does an atomic operation on a number, and what all have stored comes before it. None waits in a lock's loop.
        let waits = |id: OperationId| module.parent(id).is_some_and(|parent| module.operation(parent).name == "scf.while");
        let is_on_number = |id: &OperationId| {
            let pointer = module.operation(*id).operands.first();
            is_atomic(&module, *id) && pointer.is_some_and(|pointer| !module.type_of(*pointer).is_tensor())
        };
        let alone: Vec<OperationId> =
            module.walk(branch).filter(|id| is_on_number(id) && !waits(*id)).collect();
        for id in alone {
            module.insert_plain(id, "gpu.barrier");
        }
        module.number_uses();
    }
    module
}

/// Whether an operation stands in a critical section.
pub(crate) fn has(module: &Module, id: OperationId) -> bool {
    module.ancestors(id).any(|outer| module.operation(outer).attributes.flag(CRITICAL_SECTION))
}

/// From the first atomic operation after the loops whose result is used, or the barrier before it, to the end of the block.
fn section(module: &Module, body: BlockId) -> Option<Vec<OperationId>> {
    let operations = &module.block(body).operations;
    let has = |id: OperationId, holds: &dyn Fn(OperationId) -> bool| module.walk(id).any(holds);
    let first = operations.iter().position(|id| has(*id, &|inner| is_asked(module, inner)))?;
    let multiplies = |id: OperationId| module.operation(id).name == "tt.dot";
    let last_loop = operations.iter().rposition(|id| has(*id, &multiplies))?;
    let is_barrier = |id: &OperationId| module.operation(*id).name == "gpu.barrier";
    let between = operations.get(last_loop + 1..first)?;
    let first = between.iter().position(is_barrier).map_or(first, |at| last_loop + 1 + at);
    let section = operations.get(first..operations.len().checked_sub(1)?)?.to_vec();
    let frees = |lock: ValueId| section.iter().any(|id| frees(module, *id, lock));
    let is_plain = |id: OperationId| match module.operation(id).name.as_str() {
        "tt.dot" => false,
        "scf.while" => match takes_lock(module, id) {
            Some(lock) => frees(lock),
            None => !has(id, &|inner| is_atomic(module, inner)),
        },
        name => !super::early_returns::is_early_return(name),
    };
    section.iter().all(|id| module.walk(*id).all(is_plain)).then_some(section)
}

fn is_atomic(module: &Module, id: OperationId) -> bool {
    matches!(module.operation(id).name.as_str(), "tt.atomic_cas" | "tt.atomic_rmw")
}

/// Whether what follows depends on what an atomic operation found.
fn is_asked(module: &Module, id: OperationId) -> bool {
    is_atomic(module, id) && module.operation(id).results.iter().any(|result| !module.uses(*result).is_empty())
}

/// The lock that a loop takes: it sets a number that was 0, and goes on while it was not.
fn takes_lock(module: &Module, id: OperationId) -> Option<ValueId> {
    let operation = module.operation(id);
    let blocks: Vec<BlockId> =
        operation.regions.iter().flat_map(|region| &module.region(*region).blocks).copied().collect();
    let &[head, tail] = blocks.as_slice() else { return None };
    let condition = *module.operation(module.terminator(head)?).operands.first()?;
    let comparison = module.operation(module.defining_operation(condition)?);
    let &[found, other] = comparison.operands.as_slice() else { return None };
    let set = module.operation(module.defining_operation(found)?);
    let &[lock, free, taken] = set.operands.as_slice() else { return None };
    let number = |value: ValueId| module.integer_constant(value);
    let goes_on = match comparison.attributes.text("predicate").filter(|_| comparison.name == "arith.cmpi")? {
        "eq" => number(other) == number(taken),
        "ne" => number(other) == Some(0),
        _ => false,
    };
    let sets = set.name == "tt.atomic_cas" && number(free) == Some(0) && number(taken).is_some_and(|taken| taken != 0);
    let others = module.block(head).operations.iter().chain(&module.block(tail).operations);
    let is_alone = others.map(|id| module.operation(*id)).all(|one| {
        is_pure(one) || std::ptr::eq(one, set) || matches!(one.name.as_str(), "scf.condition" | "scf.yield")
    });
    (goes_on && sets && is_alone && operation.results.is_empty()).then_some(lock)
}

/// Whether an operation sets a lock to 0.
fn frees(module: &Module, id: OperationId, lock: ValueId) -> bool {
    let operation = module.operation(id);
    let exchanges = operation.name == "tt.atomic_rmw" && operation.attributes.text("atomic_rmw_op") == Some("exch");
    let compares = operation.name == "tt.atomic_cas";
    let value = match *operation.operands.as_slice() {
        [pointer, value, ..] if exchanges && pointer == lock => value,
        [pointer, _, value] if compares && pointer == lock => value,
        _ => return false,
    };
    module.integer_constant(value) == Some(0)
}
