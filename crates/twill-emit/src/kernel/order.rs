//! Loads that must see what the kernel itself has stored are refused: groups load ahead, and nothing orders the two.
//!
//! Different arguments are taken to be different memory.

use super::lowering::Lowering;
use super::stores::is_store;
use crate::error::Error;
use twill_triton::mlir::{Definition, OperationId, ValueId};

/// Refuses loads behind stores to the same argument, in the text or around a loop.
pub(crate) fn check(lowering: &Lowering<'_>) -> Result<(), Error> {
    let module = lowering.module;
    let all: Vec<OperationId> = module.walk(lowering.kernel.function()).collect();
    let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<(usize, OperationId, ValueId)> {
        let base = |(k, id): (usize, &OperationId)| {
            let operation = module.operation(*id);
            let address = operation.operands.first().copied().filter(|_| wanted(&operation.name))?;
            Some((k, *id, argument(lowering, address, 0)?))
        };
        all.iter().enumerate().filter_map(base).collect()
    };
    let stores = of(&is_store);
    for (place, id, base) in of(&|name| matches!(name, "tt.load" | "tt.descriptor_load")) {
        let block = |id: OperationId| module.operation(id).block;
        let around = |id: OperationId| lowering.loops.iter().position(|l| block(id) == Some(l.parts.body));
        let behind = |(stored, store, written): &(usize, OperationId, ValueId)| {
            *written == base && (*stored < place || (around(id).is_some() && around(id) == around(*store)))
        };
        if stores.iter().any(behind) {
            return Err(lowering.unsupported(
                id,
                "a load of what the kernel itself has stored",
                "keep the value in a variable, or use two kernels",
            ));
        }
    }
    Ok(())
}

/// The kernel's argument that an address is counted from.
fn argument(lowering: &Lowering<'_>, value: ValueId, depth: u32) -> Option<ValueId> {
    if depth > 256 {
        return None;
    }
    let from = match lowering.module.definition(value) {
        Definition::Argument { block, .. } if block == lowering.block => return Some(value),
        Definition::Argument { .. } => {
            lowering.loops.iter().find_map(|l| l.parts.initial.get(l.carried(value)?).copied())
        }
        Definition::Result { operation, index } => match lowering.module.for_loop(operation) {
            Some(parts) => parts.initial.get(index).copied(),
            None => lowering.module.operation(operation).operands.first().copied(),
        },
    };
    argument(lowering, from?, depth + 1)
}
