//! Critical sections after the loops that multiply, each as one operation.
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

use crate::mlir::{Attribute, BlockId, Module, Operation, OperationId, ValueId};
use crate::operations::{Memory, is_pure, is_synchronization, memory};

/// Marks the branch, always taken, that a critical section is made.
pub const CRITICAL_SECTION: &str = "twill.critical_section";

/// Operations between two spellings of one address, at most.
const DEPTH: u32 = 16;

/// The module with the critical section of a function, if it has one at the end, as one operation.
pub(crate) fn enclosed(mut module: Module, function: OperationId) -> Module {
    if let Some(section) = module.body(function).and_then(|body| section(&module, body)) {
        let branch = module.enclose(&section);
        module.set_attribute(branch, CRITICAL_SECTION, Attribute::Unit);
        // One thread does an atomic operation on a number, and what all have stored comes before it. None waits in a spin lock.
        let spins =
            |id: OperationId| module.parent(id).is_some_and(|parent| module.operation(parent).name == "scf.while");
        let is_on_number = |id: OperationId| {
            let pointer = module.operation(id).operands.first();
            is_atomic(module.operation(id)) && pointer.is_some_and(|pointer| !module.type_of(*pointer).is_tensor())
        };
        let alone: Vec<OperationId> = module
            .walk(branch)
            .filter(|id| is_on_number(*id) && !spins(*id) && !follows_barrier(&module, *id))
            .collect();
        for id in alone {
            module.insert_plain(id, "gpu.barrier");
        }
        module.number_uses();
    }
    module
}

/// The critical section of a function, if it has one.
pub(super) fn of(module: &Module, function: OperationId) -> Option<OperationId> {
    let is_marked = |id: &OperationId| module.operation(*id).attributes.flag(CRITICAL_SECTION);
    module.block(module.body(function)?).operations.iter().copied().find(is_marked)
}

/// Whether an operation stands in a critical section.
pub(crate) fn has(module: &Module, id: OperationId) -> bool {
    module.ancestors(id).any(|outer| module.operation(outer).attributes.flag(CRITICAL_SECTION))
}

/// Whether an operation comes right after a barrier.
fn follows_barrier(module: &Module, id: OperationId) -> bool {
    let Some((block, at)) = module.position(id) else { return false };
    let before = at.checked_sub(1).and_then(|before| module.block(block).operations.get(before));
    before.is_some_and(|before| module.operation(*before).name == "gpu.barrier")
}

/// From the first atomic operation after the loops whose result is used, or the barrier before it, to the end of the block.
fn section(module: &Module, body: BlockId) -> Option<Vec<OperationId>> {
    let operations = &module.block(body).operations;
    let has = |id: OperationId, holds: &dyn Fn(OperationId) -> bool| module.walk(id).any(holds);
    let first = operations.iter().position(|id| has(*id, &|inner| result_is_used(module, inner)))?;
    let multiplies = |id: OperationId| module.operation(id).name == "tt.dot";
    let last_loop = operations.iter().rposition(|id| has(*id, &multiplies))?;
    let is_barrier = |id: &OperationId| module.operation(*id).name == "gpu.barrier";
    let between = operations.get(last_loop + 1..first)?;
    let first = between.iter().position(is_barrier).map_or(first, |at| last_loop + 1 + at);
    let section = operations.get(first..operations.len().checked_sub(1)?)?.to_vec();
    let releases = |lock: ValueId| section.iter().any(|id| releases(module, *id, lock));
    let is_plain = |id: OperationId| match module.operation(id).name.as_str() {
        "tt.dot" => false,
        "scf.while" => match acquired_lock(module, id) {
            Some(lock) => releases(lock),
            // Who goes on by what memory says may wait for another program.
            None => !has(id, &|inner| memory(&module.operation(inner).name).is_some()),
        },
        name => !super::early_returns::is_early_return(name) && !is_synchronization(name),
    };
    section.iter().all(|id| module.walk(*id).all(is_plain)).then_some(section)
}

fn is_atomic(operation: &Operation) -> bool {
    matches!(memory(&operation.name), Some(Memory::Atomic { .. }))
}

/// Whether what follows depends on what an atomic operation found.
fn result_is_used(module: &Module, id: OperationId) -> bool {
    let operation = module.operation(id);
    is_atomic(operation) && operation.results.iter().any(|result| !module.uses(*result).is_empty())
}

/// The lock that a spin lock's loop acquires: it sets a number that was 0, and goes on while it was not.
fn acquired_lock(module: &Module, id: OperationId) -> Option<ValueId> {
    let (head, tail) = module.while_blocks(id)?;
    let condition = *module.operation(module.terminator(head)?).operands.first()?;
    let comparison = module.operation(module.defining_operation(condition)?);
    let &[found, other] = comparison.operands.as_slice() else { return None };
    let set = module.defining_operation(found)?;
    let &[lock, free, taken] = module.operation(set).operands.as_slice() else { return None };
    let number = |value: ValueId| module.integer_constant(value);
    let goes_on = match comparison.attributes.text("predicate").filter(|_| comparison.name == "arith.cmpi")? {
        "eq" => number(other).is_some() && number(other) == number(taken),
        "ne" => number(other) == Some(0),
        _ => false,
    };
    let sets = module.operation(set).name == "tt.atomic_cas"
        && number(free) == Some(0)
        && number(taken).is_some_and(|taken| taken != 0);
    let mut others = module.block(head).operations.iter().chain(&module.block(tail).operations);
    let is_alone = others.all(|id| {
        let operation = module.operation(*id);
        *id == set || is_pure(operation) || matches!(operation.name.as_str(), "scf.condition" | "scf.yield")
    });
    (goes_on && sets && is_alone && module.operation(id).results.is_empty()).then_some(lock)
}

/// Whether an operation sets a lock to 0.
fn releases(module: &Module, id: OperationId, lock: ValueId) -> bool {
    let operation = module.operation(id);
    let exchanges = operation.name == "tt.atomic_rmw" && operation.attributes.text("atomic_rmw_op") == Some("exch");
    let compares = operation.name == "tt.atomic_cas";
    let (pointer, value) = match *operation.operands.as_slice() {
        [pointer, value, ..] if exchanges => (pointer, value),
        [pointer, _, value] if compares => (pointer, value),
        _ => return false,
    };
    module.integer_constant(value) == Some(0) && is_same(module, pointer, lock, DEPTH)
}

/// Whether two values are computed alike of the same ones: the loop computes the lock's address anew.
fn is_same(module: &Module, a: ValueId, b: ValueId, depth: u32) -> bool {
    if a == b {
        return true;
    }
    let (Some(left), Some(right), 1..) = (module.defining_operation(a), module.defining_operation(b), depth) else {
        return false;
    };
    let (left, right) = (module.operation(left), module.operation(right));
    let places = [(left, a), (right, b)].map(|(of, value)| of.results.iter().position(|result| *result == value));
    is_pure(left)
        && left.regions.is_empty()
        && (&left.name, &left.attributes) == (&right.name, &right.attributes)
        && left.operands.len() == right.operands.len()
        && places[0] == places[1]
        && left.operands.iter().zip(&right.operands).all(|(a, b)| is_same(module, *a, *b, depth - 1))
}
