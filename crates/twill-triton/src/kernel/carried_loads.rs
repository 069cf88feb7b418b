//! Loaded tiles that a loop carries to its next iteration: they go through registers.
//!
//! A loaded tile stands in the slot of its iteration; what the first iteration finds in its place is in none. So the value that is
//! carried becomes a selection of the tile, which computes nothing.

use crate::kernel::views;
use crate::mlir::{Module, NewOperation, OperationId, ValueId};
use crate::operations::{Memory, memory};

/// The module with no loop of a function yielding what it loads.
pub(crate) fn through_registers(mut module: Module, function: OperationId) -> Module {
    let mut changed = false;
    let ends: Vec<(OperationId, Vec<ValueId>)> =
        module.for_loops(function).map(|parts| (parts.terminator, parts.yielded.to_vec())).collect();
    for (end, yielded) in ends {
        for (k, value) in yielded.into_iter().enumerate() {
            if !is_loaded(&module, end, value) {
                continue;
            }
            let same = copied_before(&mut module, end, value);
            module.set_operand(end, k, same);
            changed = true;
        }
    }
    if changed {
        module.number_uses();
    }
    module
}

/// A copy of a tile before an operation: a selection whose both sides are the tile.
pub(super) fn copied_before(module: &mut Module, before: OperationId, value: ValueId) -> ValueId {
    let always = module.insert_true(before);
    let (kind, name) = (module.type_of(value).clone(), module.value(value).name.clone());
    let same = NewOperation {
        name: "arith.select",
        operands: vec![always, value, value],
        attributes: Vec::new(),
        result: (kind, &name),
        like: before,
    };
    module.insert_before(before, same)
}

/// Whether a value is a tile that the loop with this end loads, however it is seen.
fn is_loaded(module: &Module, end: OperationId, value: ValueId) -> bool {
    let Some(id) = module.defining_operation(value) else { return false };
    let operation = module.operation(id);
    if !module.type_of(value).is_tensor() || operation.block != module.operation(end).block {
        return false;
    }
    match (memory(&operation.name), views::viewed(operation)) {
        (Some(Memory::Load { .. }), _) => true,
        (None, Some(k)) => operation.operands.get(k).is_some_and(|of| is_loaded(module, end, *of)),
        _ => false,
    }
}
