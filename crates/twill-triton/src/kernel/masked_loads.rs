//! Loads in loops whose masked elements are not zero: asynchronous copies put zeros there, so the others are selected afterwards.

use crate::mlir::{Attribute, Module, NewOperation, OperationId, ValueId};

/// The module with the loads of a function's loops leaving zeros where they are masked.
pub(crate) fn with_zeros(mut module: Module, function: OperationId) -> Module {
    let is_in_loop = |module: &Module, id: OperationId| {
        let name = |id: OperationId| module.operation(id).name.as_str();
        module.parent(id).is_some_and(|parent| name(parent) == "scf.for")
    };
    let loads: Vec<OperationId> = module
        .walk(function)
        .filter(|id| module.operation(*id).name == "tt.load" && is_in_loop(&module, *id))
        .filter(|id| module.operation(*id).operands.get(2).is_some_and(|other| !is_zero(&module, *other)))
        .collect();
    for id in &loads {
        let operation = module.operation(*id);
        let (&[pointers, mask, other], &[result]) = (operation.operands.as_slice(), operation.results.as_slice())
        else {
            continue;
        };
        let Some((block, position)) = module.position(*id) else { continue };
        module.replace_operands(*id, vec![pointers, mask]);
        let kind = module.type_of(result).clone();
        let name = module.value(result).name.clone();
        let new = NewOperation {
            name: "arith.select",
            operands: vec![mask, other, other],
            attributes: Vec::new(),
            result: (kind, &name),
            like: *id,
        };
        let selected = module.insert(block, position + 1, new);
        module.replace_uses(result, selected);
        if let Some(select) = module.defining_operation(selected) {
            module.replace_operands(select, vec![mask, result, other]);
        }
    }
    if !loads.is_empty() {
        module.number_uses();
    }
    module
}

fn is_zero(module: &Module, value: ValueId) -> bool {
    match module.constant(value).and_then(Attribute::number) {
        Some(Attribute::Integer { value, .. }) => *value == 0,
        Some(Attribute::Float { value, .. }) => value.0.to_bits() == 0,
        Some(Attribute::Bool(value)) => !value,
        _ => false,
    }
}
