//! If-conversion: a branch becomes straight-line code.
//!
//! What is in an `scf.if` is computed in any case; its loads and stores get the condition as a mask, its loops run no iteration where
//! it does not hold, and its results are selected (Allen, Kennedy, Porterfield, Warren: Conversion of control dependence to data
//! dependence, POPL 1983). A pipelined loop has no branches, and neither has the code around it. Branches with barriers or atomic
//! operations whose results are used are left.

use crate::mlir::{Attribute, BlockId, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::{is_hint, is_pure};

/// Marks a parameter of a kernel that must not be 0: tiles are divided by it whether a branch is taken or not.
pub const NOT_ZERO: &str = "twill.not_zero";

/// The module with the branches of a function converted that can be.
pub(crate) fn if_converted(mut module: Module, function: OperationId) -> Module {
    let branches: Vec<OperationId> =
        module.walk(function).filter(|id| module.operation(*id).name == "scf.if").collect();
    let mut changed = false;
    // Inner ones first.
    for id in branches.into_iter().rev() {
        if module.position(id).is_some()
            && is_convertible(&module, function, id)
            && is_in_the_way(&module, function, id)
        {
            convert(&mut module, function, id);
            changed = true;
        }
    }
    if changed {
        module.number_uses();
    }
    module
}

/// Where only branches and loops stand around it, and no critical section.
fn is_in_the_way(module: &Module, function: OperationId, id: OperationId) -> bool {
    if super::critical_sections::has(module, id) {
        return false;
    }
    let mut inner = id;
    while let Some(parent) = module.parent(inner) {
        if parent == function {
            return true;
        }
        if !matches!(module.operation(parent).name.as_str(), "scf.if" | "scf.for" | "scf.while") {
            return false;
        }
        inner = parent;
    }
    false
}

/// A coordinate that no tensor reaches, and that a block's extent may be added to.
const BEYOND: i128 = 1 << 30;

fn is_memory(name: &str) -> bool {
    matches!(name, "tt.load" | "tt.store" | "tt.descriptor_load" | "tt.descriptor_store")
}

/// Whether all that it does may be done in any case, or under a mask.
fn is_convertible(module: &Module, function: OperationId, id: OperationId) -> bool {
    // Outside of loops a branch that chooses an address is executed as it stands, so that it hides nothing of the address.
    let is_in_loop = module.parent(id).is_some_and(|parent| module.operation(parent).name == "scf.for");
    let is_number = |v: &ValueId| match module.type_of(*v).element() {
        Type::Pointer { .. } => is_in_loop,
        kind => !matches!(kind, Type::TensorDescriptor(_)),
    };
    let blocks = module.operation(id).regions.iter().flat_map(|region| &module.region(*region).blocks);
    let mut inner = blocks.flat_map(|block| &module.block(*block).operations);
    module.operation(id).results.iter().all(is_number) && inner.all(|inner| may_be_done(module, function, *inner))
}

fn may_be_done(module: &Module, function: OperationId, id: OperationId) -> bool {
    let operation = module.operation(id);
    let name = operation.name.as_str();
    // A division by 0 is nowhere defined.
    let divides = ["arith.divsi", "arith.divui", "arith.remsi", "arith.remui"].contains(&name);
    let is_tile = || operation.operands.iter().any(|v| module.type_of(*v).is_tensor());
    let is_some = |v: ValueId| {
        is_not_zero(module, v) || argument(module, function, v).is_some() || number_of(module, v).is_some()
    };
    if divides && is_tile() && !operation.operands.get(1).is_some_and(|v| is_some(*v))
        || operation.attributes.get("isVolatile").is_some()
    {
        return false;
    }
    if name == "tt.atomic_rmw" {
        return operation.results.iter().all(|result| module.uses(*result).is_empty());
    }
    if let Some(parts) = module.for_loop(id) {
        return module.block(parts.body).operations.iter().all(|inner| may_be_iterated(module, *inner));
    }
    if let Some((head, tail)) = module.while_blocks(id) {
        // Its head is executed once where its body is not.
        return module.block(head).operations.iter().all(|inner| may_be_done(module, function, *inner))
            && module.block(tail).operations.iter().all(|inner| may_be_iterated(module, *inner));
    }
    // Who drops barriers says why: they order what is never read back.
    is_pure(operation)
        || is_memory(name)
        || is_hint(name)
        || matches!(name, "scf.yield" | "scf.condition" | "gpu.barrier")
}

/// Whether an operation may stand in a loop that runs no iteration: whatever may be pipelined at all.
fn may_be_iterated(module: &Module, id: OperationId) -> bool {
    module.walk(id).all(|inner| module.operation(inner).name != "tt.return")
}

fn is_not_zero(module: &Module, value: ValueId) -> bool {
    module.integer_constant(value).is_some_and(|number| number != 0)
}

/// What a value has in all its elements.
fn repeated(module: &Module, mut value: ValueId) -> Option<ValueId> {
    while let Some(id) = module.defining_operation(value) {
        let operation = module.operation(id);
        let repeats = ["tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "arith.extsi"];
        if !repeats.contains(&operation.name.as_str()) {
            break;
        }
        value = *operation.operands.first()?;
    }
    Some(value)
}

/// The parameter of the kernel that a value has in all its elements, by its index.
fn argument(module: &Module, function: OperationId, value: ValueId) -> Option<usize> {
    let value = repeated(module, value)?;
    module.arguments(function).iter().position(|argument| *argument == value)
}

/// The number that a tile has in all its elements, of their type.
fn number_of(module: &Module, value: ValueId) -> Option<ValueId> {
    repeated(module, value).filter(|number| module.type_of(*number) == module.type_of(value).element())
}

fn convert(module: &mut Module, function: OperationId, id: OperationId) {
    let Some(condition) = module.operation(id).operands.first().copied() else { return };
    let blocks: Vec<Option<BlockId>> =
        module.operation(id).regions.iter().map(|region| module.region(*region).blocks.first().copied()).collect();
    let mut yielded = Vec::new();
    for (which, block) in blocks.into_iter().enumerate() {
        let Some(block) = block else { continue };
        let predicate = if which == 0 { condition } else { negation(module, id, condition) };
        let operations = module.block(block).operations.clone();
        for inner in operations {
            if module.operation(inner).name == "scf.yield" {
                yielded.push(module.operation(inner).operands.clone());
                continue;
            }
            // It holds where the branch is taken.
            if is_hint(&module.operation(inner).name) {
                continue;
            }
            module.move_before(inner, id);
            predicated(module, function, inner, predicate);
        }
    }
    let results = module.operation(id).results.clone();
    if let [then, otherwise] = yielded.as_slice() {
        for ((result, a), b) in results.into_iter().zip(then.clone()).zip(otherwise.clone()) {
            let kind = module.type_of(result).clone();
            let name = module.value(result).name.clone();
            let operands = vec![condition, a, b];
            let select = NewOperation {
                name: "arith.select",
                operands,
                attributes: Vec::new(),
                result: (kind, &name),
                like: id,
            };
            let selected = module.insert_before(id, select);
            module.replace_uses(result, selected);
        }
    }
    module.remove(id);
}

/// Makes an operation one that does nothing that is seen where the predicate does not hold.
fn predicated(module: &mut Module, function: OperationId, id: OperationId, predicate: ValueId) {
    match module.operation(id).name.as_str() {
        "tt.load" => mask(module, id, 1, predicate),
        "tt.store" | "tt.atomic_rmw" => mask(module, id, 2, predicate),
        "tt.descriptor_store" => move_away(module, id, predicate),
        "scf.for" => bound(module, id, predicate),
        "scf.while" => go_on(module, function, id, predicate),
        "arith.divsi" | "arith.divui" | "arith.remsi" | "arith.remui" => guard(module, function, id, predicate),
        _ => {}
    }
}

/// A new operation before another.
fn add(module: &mut Module, before: OperationId, name: &str, operands: Vec<ValueId>, kind: Type) -> ValueId {
    add_with(module, before, name, operands, Vec::new(), kind)
}

fn add_with(
    module: &mut Module,
    before: OperationId,
    name: &str,
    operands: Vec<ValueId>,
    attributes: Vec<(&str, Attribute)>,
    kind: Type,
) -> ValueId {
    let new = NewOperation { name, operands, attributes, result: (kind, "predicate"), like: before };
    module.insert_before(before, new)
}

fn negation(module: &mut Module, before: OperationId, condition: ValueId) -> ValueId {
    let bit = Type::Integer(1);
    let constant = vec![("value", Attribute::Bool(true))];
    let holds = add_with(module, before, "arith.constant", Vec::new(), constant, bit.clone());
    add(module, before, "arith.xori", vec![condition, holds], bit)
}

/// An integer as an operation before another.
fn integer(module: &mut Module, before: OperationId, value: i128, kind: &Type) -> ValueId {
    let constant = Attribute::Integer { value, kind: kind.clone() };
    add_with(module, before, "arith.constant", Vec::new(), vec![("value", constant)], kind.clone())
}

/// The value where the predicate holds, else another.
fn select(module: &mut Module, before: OperationId, predicate: ValueId, value: ValueId, other: ValueId) -> ValueId {
    let kind = module.type_of(value).clone();
    add(module, before, "arith.select", vec![predicate, value, other], kind)
}

/// A loop that runs no iteration where the predicate does not hold.
fn bound(module: &mut Module, id: OperationId, predicate: ValueId) {
    let mut operands = module.operation(id).operands.clone();
    let [lower, upper, ..] = operands[..] else { return };
    operands[1] = select(module, id, predicate, upper, lower);
    module.replace_operands(id, operands);
}

/// A loop that goes on only where the predicate holds, too.
fn go_on(module: &mut Module, function: OperationId, id: OperationId, predicate: ValueId) {
    let Some((head, _)) = module.while_blocks(id) else { return };
    for inner in module.block(head).operations.clone() {
        if module.operation(inner).name != "scf.condition" {
            predicated(module, function, inner, predicate);
            continue;
        }
        let mut operands = module.operation(inner).operands.clone();
        let Some(condition) = operands.first().copied() else { return };
        operands[0] = add(module, inner, "arith.andi", vec![condition, predicate], Type::Integer(1));
        module.replace_operands(inner, operands);
    }
}

/// A division by 1 where the predicate does not hold.
fn guard(module: &mut Module, function: OperationId, id: OperationId, predicate: ValueId) {
    let mut operands = module.operation(id).operands.clone();
    let Some(divisor) = operands.get(1).copied() else { return };
    let kind = module.type_of(divisor).clone();
    if is_not_zero(module, divisor) {
        return;
    }
    if kind.is_tensor() {
        // What is known of a remainder by a parameter is worth more than launches on 0.
        if let Some(index) = argument(module, function, divisor) {
            module.set_argument_attribute(function, index, NOT_ZERO, 1);
            return;
        }
    }
    let number = if kind.is_tensor() { number_of(module, divisor) } else { Some(divisor) };
    let Some(number) = number else { return };
    let one = integer(module, id, 1, kind.element());
    let number = select(module, id, predicate, number, one);
    operands[1] = if kind.is_tensor() { add(module, id, "tt.splat", vec![number], kind) } else { number };
    module.replace_operands(id, operands);
}

/// TMA writes nothing of a block that lies beyond the tensor: it goes there where the predicate does not hold.
fn move_away(module: &mut Module, id: OperationId, predicate: ValueId) {
    let mut operands = module.operation(id).operands.clone();
    // The descriptor, the tile, coordinates.
    let Some(first) = operands.get(2).copied() else { return };
    let kind = module.type_of(first).clone();
    let beyond = integer(module, id, BEYOND, &kind);
    operands[2] = select(module, id, predicate, first, beyond);
    module.replace_operands(id, operands);
}

/// Gives a load or a store, whose mask is its operand at this place, a predicate.
fn mask(module: &mut Module, id: OperationId, place: usize, predicate: ValueId) {
    let mut operands = module.operation(id).operands.clone();
    let Some(pointers) = operands.first().copied() else { return };
    let kind = module.type_of(pointers).with_element(Type::Integer(1));
    let all = match kind.is_tensor() {
        true => add(module, id, "tt.splat", vec![predicate], kind.clone()),
        false => predicate,
    };
    match operands.get(place).copied() {
        Some(own) => operands[place] = add(module, id, "arith.andi", vec![own, all], kind),
        None => operands.push(all),
    }
    module.replace_operands(id, operands);
}
