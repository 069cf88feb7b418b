//! What counts the parts of a tile in a loop over tiles and their parts.

use crate::mlir::{Module, OperationId, ValueId};

/// A number that is known, or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Constant(i128),
    Value(ValueId),
}

impl Number {
    pub(super) fn of(module: &Module, value: ValueId) -> Number {
        module.integer_constant(value).map_or(Number::Value(value), Number::Constant)
    }
}

/// What counts the parts of a tile.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    /// Which of the carried values it is.
    pub(super) index: usize,
    /// The number of an iteration's part.
    pub(super) part: ValueId,
    /// Parts of a tile.
    pub(super) parts: Number,
    /// The operations that count.
    pub(super) operations: Vec<OperationId>,
}

/// Of how many tiles all iterations are: counts are taken for numbers that are not negative, and whose product does not wrap.
pub(super) fn tiles(module: &Module, all: ValueId, parts: Number) -> Option<Number> {
    if let (Some(all), Number::Constant(parts)) = (module.integer_constant(all), parts) {
        return (parts > 0 && all % parts == 0).then(|| Number::Constant(all / parts));
    }
    let product =
        module.defining_operation(all).map(|id| module.operation(id)).filter(|one| one.name == "arith.muli")?;
    let &[a, b] = product.operands.as_slice() else { return None };
    match (Number::of(module, a), Number::of(module, b)) {
        (tiles, other) if other == parts => Some(tiles),
        (other, tiles) if other == parts => Some(tiles),
        _ => None,
    }
}

/// The operands of a value's operation, if that has this name.
pub(super) fn operands<'m>(module: &'m Module, value: ValueId, name: &str) -> Option<&'m [ValueId]> {
    let operation = module.operation(module.defining_operation(value)?);
    (operation.name == name).then_some(operation.operands.as_slice())
}

/// Both sides of a comparison for equality.
pub(super) fn equals(module: &Module, value: ValueId) -> Option<[ValueId; 2]> {
    let id = module.defining_operation(value)?;
    let is_equality = module.operation(id).attributes.text("predicate") == Some("eq");
    let sides = operands(module, value, "arith.cmpi").filter(|_| is_equality)?;
    sides.try_into().ok()
}

/// Of what a value is one less.
pub(super) fn successor(module: &Module, value: ValueId) -> Option<Number> {
    if let Some(constant) = module.integer_constant(value) {
        return constant.checked_add(1).map(Number::Constant);
    }
    let by = |name, amount| {
        let &[a, b] = operands(module, value, name)? else { return None };
        (module.integer_constant(b) == Some(amount)).then_some(Number::Value(a))
    };
    by("arith.subi", 1).or_else(|| by("arith.addi", -1))
}

impl Counter {
    pub(super) fn of(module: &Module, id: OperationId, index: usize) -> Option<Counter> {
        let parts = module.for_loop(id)?;
        let (before, after) = (*parts.carried.get(index)?, *parts.yielded.get(index)?);
        let is_one_more = |value: ValueId| {
            let sides = operands(module, value, "arith.addi");
            matches!(sides, Some(&[a, b]) if a == before && module.integer_constant(b) == Some(1))
        };
        let choice = module.defining_operation(after)?;
        let (count, next, compared) = match operands(module, after, "arith.select") {
            Some(&[at_end, zero, next]) if module.integer_constant(zero) == Some(0) => {
                let [a, b] = equals(module, at_end)?;
                let last = if a == before {
                    b
                } else if b == before {
                    a
                } else {
                    return None;
                };
                (successor(module, last)?, next, module.defining_operation(at_end))
            }
            Some(_) => return None,
            None => {
                let &[next, count] = operands(module, after, "arith.remsi")? else { return None };
                (Number::of(module, count), next, None)
            }
        };
        if !is_one_more(next) || matches!(count, Number::Constant(..=0)) {
            return None;
        }
        let operations: Vec<OperationId> =
            [compared, module.defining_operation(next), Some(choice)].into_iter().flatten().collect();
        // A value that is counted from another place is none of the body's.
        if operations.iter().any(|one| module.operation(*one).block != Some(parts.body)) {
            return None;
        }
        let initial = parts.initial[index];
        let is_of_counter = |value: ValueId| module.uses(value).iter().all(|one| operations.contains(&one.operation));
        let begins_before = module.integer_constant(initial) == Some(-1) || successor(module, initial) == Some(count);
        let is_yielded_alone = module.uses(after).iter().all(|one| one.operation == parts.terminator);
        let part = match () {
            () if begins_before && is_of_counter(before) => after,
            () if module.integer_constant(initial) == Some(0) && is_yielded_alone => before,
            () => return None,
        };
        Some(Counter { index, part, parts: count, operations })
    }
}
