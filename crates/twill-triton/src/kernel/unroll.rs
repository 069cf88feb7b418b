//! Unrolls loops in loops that run few times, each known: what is pipelined is then the loop around them.
//!
//! Kernels go through a head's dimension, or a tile's columns, in parts; their number is a constant of the kernel's.

use crate::mlir::{Attribute, Copies, ForLoop, Module, NewOperation, OperationId, Type, ValueId};

/// Iterations of a loop that is unrolled, at most.
const MOST_TRIPS: i128 = 8;
/// Operations that a kernel's loops are unrolled to, at most.
const MOST_OPERATIONS: usize = 2000;
/// Bytes of the tiles that a loop loads once it is unrolled, at most: each has a slot in shared memory at the same time.
const MOST_LOADED: u64 = 200 * 1024;

/// The module with a function's loops in loops unrolled that run few times.
pub(crate) fn unrolled(mut module: Module, function: OperationId) -> Module {
    let mut changed = false;
    let mut left = MOST_OPERATIONS;
    // Inner ones first.
    let loops: Vec<OperationId> = module.for_loops(function).map(|parts| parts.operation).collect();
    for id in loops.into_iter().rev() {
        let Some(trips) = module.for_loop(id).and_then(|parts| trips(&module, &parts)) else { continue };
        let size = module.walk(id).count() * trips.len();
        let fits = loaded(&module, id).saturating_mul(trips.len() as u64) <= MOST_LOADED;
        if size <= left && fits && is_in_loop(&module, id) && is_straight(&module, id) {
            left -= size;
            unroll(&mut module, id, &trips);
            changed = true;
        }
    }
    if changed {
        module.number_uses();
    }
    module
}

/// The numbers that the induction variable is, where they are known and few.
fn trips(module: &Module, parts: &ForLoop<'_>) -> Option<Vec<i128>> {
    let number = |value| module.integer_constant(value);
    let (lower, upper, step) = (number(parts.lower)?, number(parts.upper)?, number(parts.step)?);
    let count = upper.checked_sub(lower)?.checked_add(step)?.checked_sub(1)?.checked_div(step)?;
    (step > 0 && (0..=MOST_TRIPS).contains(&count)).then(|| (0..count).map(|k| lower + k * step).collect())
}

/// Bytes of the tiles of two dimensions and more that an iteration loads.
fn loaded(module: &Module, id: OperationId) -> u64 {
    let is_load = |id: &OperationId| matches!(module.operation(*id).name.as_str(), "tt.load" | "tt.descriptor_load");
    let bytes = |value: &ValueId| {
        let kind = module.type_of(*value);
        let shape = kind.known_shape().filter(|shape| shape.len() > 1).unwrap_or_default();
        let bits = u64::from(kind.element().scalar_bits().unwrap_or(0));
        if shape.is_empty() { 0 } else { shape.iter().product::<u64>() * bits / 8 }
    };
    module.walk(id).filter(is_load).flat_map(|id| &module.operation(id).results).map(bytes).sum()
}

fn is_in_loop(module: &Module, id: OperationId) -> bool {
    module.parent(id).is_some_and(|parent| module.operation(parent).name == "scf.for")
}

/// Without other loops, and with tiles in it: loops over numbers are left to the compiler.
fn is_straight(module: &Module, id: OperationId) -> bool {
    let mut inner = module.walk(id).skip(1).map(|inner| module.operation(inner).name.as_str());
    let has_tiles = module.walk(id).any(|inner| {
        let operation = module.operation(inner);
        operation.operands.iter().chain(&operation.results).any(|value| module.type_of(*value).is_tensor())
    });
    let has_blocks = module.walk(id).any(|inner| !module.operation(inner).successors.is_empty());
    has_tiles && !has_blocks && inner.all(|name| !matches!(name, "scf.for" | "scf.while"))
}

fn unroll(module: &mut Module, id: OperationId, trips: &[i128]) {
    let Some(parts) = module.for_loop(id) else { return };
    let (induction, carried, yielded) = (parts.induction, parts.carried.to_vec(), parts.yielded.to_vec());
    let (mut values, results, terminator) = (parts.initial.to_vec(), parts.results.to_vec(), parts.terminator);
    let body = module.block(parts.body).operations.clone();
    let kind = module.type_of(induction).clone();
    let name = module.value(induction).name.clone();
    for (number, value) in trips.iter().enumerate() {
        let constant = Attribute::Integer {
            value: *value,
            kind: match &kind {
                Type::Index => Type::Integer(64),
                other => other.clone(),
            },
        };
        let new = NewOperation {
            name: "arith.constant",
            operands: Vec::new(),
            attributes: vec![("value", constant)],
            result: (kind.clone(), &name),
            like: id,
        };
        let suffix = if number == 0 { String::new() } else { format!("_{number}") };
        let mut copies = Copies::from([(induction, module.insert_before(id, new))]);
        copies.extend(carried.iter().copied().zip(values.iter().copied()));
        for operation in body.iter().filter(|operation| **operation != terminator) {
            module.clone_before(*operation, id, &mut copies, &suffix);
        }
        values = yielded.iter().map(|value| copies.get(value).copied().unwrap_or(*value)).collect();
    }
    for (result, value) in results.into_iter().zip(values) {
        module.replace_uses(result, value);
    }
    module.remove(id);
}
