//! Tiles of offsets or pointers that a loop carries and that go on by a number which is another one in every iteration, such as
//! those of a block of keys to the next block of a list: the number is carried instead, and added to the tile of before the loop.
//!
//! So the tile is made where it is read, in the layout in which it is read, and what it begins with is known
//! ([affine](super::affine)). Integers wrap around, so the sum is the same; pointers go on by numbers of 64 bits.

use super::varies::Facts;
use crate::mlir::{Attribute, ForLoop, Module, NewOperation, OperationId, Type, ValueId};

/// The module with numbers carried in the place of such tiles, in all loops of a function.
pub(crate) fn as_numbers(mut module: Module, function: OperationId) -> Module {
    let found: Vec<Carried> = module.for_loops(function).flat_map(|parts| of_loop(&module, &parts)).collect();
    for carried in &found {
        carry_number(&mut module, carried);
    }
    if !found.is_empty() {
        module.number_uses();
    }
    module
}

/// A tile that a loop carries.
struct Carried {
    of: OperationId,
    /// The position among what the loop carries.
    k: usize,
    /// What adds a tile of numbers to it.
    add: &'static str,
    /// The numbers that it goes on by, all of one type.
    amounts: Vec<ValueId>,
}

fn of_loop(module: &Module, parts: &ForLoop<'_>) -> Vec<Carried> {
    let facts = Facts::new(module, parts);
    let carried = |k: usize| {
        let kind = module.type_of(parts.carried[k]);
        let add = match kind.element() {
            Type::Integer(_) if kind.is_tensor() => "arith.addi",
            Type::Pointer { .. } if kind.is_tensor() => "tt.addptr",
            _ => return None,
        };
        let amounts = amounts(module, parts, add, parts.carried[k], parts.yielded[k])?;
        let kind = module.type_of(*amounts.first()?);
        let of_one_type = amounts.iter().all(|value| module.type_of(*value) == kind);
        // Addresses have 64 bits, and their sum wraps around nowhere else.
        if add == "tt.addptr" && *kind != Type::Integer(64) {
            return None;
        }
        let varies = amounts.iter().any(|value| facts.varies(*value));
        (of_one_type && varies).then_some(Carried { of: parts.operation, k, add, amounts })
    };
    (0..parts.carried.len()).filter_map(carried).collect()
}

/// The numbers whose sum a value is ahead of a carried one.
fn amounts(
    module: &Module,
    parts: &ForLoop<'_>,
    add: &str,
    carried: ValueId,
    mut value: ValueId,
) -> Option<Vec<ValueId>> {
    let mut found = Vec::new();
    while value != carried {
        let operation = module.operation(module.defining_operation(value)?);
        let &[a, b] = operation.operands.as_slice() else { return None };
        if operation.name != add || operation.block != Some(parts.body) {
            return None;
        }
        let number = |tile| {
            let splat = module.operation(module.defining_operation(tile)?);
            (splat.name == "tt.splat").then(|| splat.operands.first().copied()).flatten()
        };
        let (from, number) = match (number(b), number(a)) {
            (Some(number), _) => (a, number),
            (None, Some(number)) if add == "arith.addi" => (b, number),
            _ => return None,
        };
        found.push(number);
        value = from;
    }
    Some(found)
}

fn carry_number(module: &mut Module, Carried { of, k, add, amounts }: &Carried) {
    let Some(parts) = module.for_loop(*of) else { return };
    let (initial, carried, result) = (parts.initial[*k], parts.carried[*k], parts.results[*k]);
    let (body, end) = (parts.body, parts.terminator);
    let Some(first) = module.block(body).operations.first().copied() else { return };
    // Every block ends with another operation.
    let Some((outer, at)) = module.position(*of) else { return };
    let Some(after) = module.block(outer).operations.get(at + 1).copied() else { return };
    let is_read_after = !module.uses(result).is_empty();
    let number = module.type_of(amounts[0]).clone();

    ahead(module, first, initial, carried, add, &number);
    if is_read_after {
        ahead(module, after, initial, result, add, &number);
    }
    let zero = NewOperation {
        name: "arith.constant",
        operands: Vec::new(),
        attributes: vec![("value", Attribute::Integer { value: 0, kind: number.clone() })],
        result: (number.clone(), "none"),
        like: *of,
    };
    let zero = module.insert_before(*of, zero);
    module.set_operand(*of, 3 + k, zero);
    let mut sum = carried;
    for amount in amounts {
        let name = module.value(carried).name.clone();
        let next = NewOperation {
            name: "arith.addi",
            operands: vec![sum, *amount],
            attributes: Vec::new(),
            result: (number.clone(), &name),
            like: end,
        };
        sum = module.insert_before(end, next);
    }
    module.set_operand(end, *k, sum);
    module.set_type(carried, number.clone());
    module.set_type(result, number);
}

/// Makes what was a tile a number, which an operation before another adds to the tile that it is ahead of: that is read instead.
fn ahead(module: &mut Module, before: OperationId, from: ValueId, value: ValueId, add: &str, number: &Type) {
    let kind = module.type_of(value).clone();
    let name = module.value(value).name.clone();
    let new = |name, operands, kind, result| NewOperation {
        name,
        operands,
        attributes: Vec::new(),
        result: (kind, result),
        like: before,
    };
    let tile = match &kind {
        Type::Tensor { shape, .. } => {
            Type::Tensor { shape: shape.clone(), element: Box::new(number.clone()), encoding: None }
        }
        _ => return,
    };
    // The number's own use is put in once the others are replaced.
    let splat = module.insert_before(before, new("tt.splat", vec![from], tile, "ahead"));
    let sum = module.insert_before(before, new(add, vec![from, splat], kind, &name));
    module.replace_uses(value, sum);
    if let Some(id) = module.defining_operation(splat) {
        module.replace_operands(id, vec![value]);
    }
}
