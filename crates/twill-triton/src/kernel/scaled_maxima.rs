//! The maximum of scaled numbers, `max(x · c)`, as the scaled maximum, `max(x) · c`.
//!
//! Softmax scales its scores, masks them, takes each row's maximum and subtracts it. Where nothing but the subtraction reads the
//! scaled scores, it is one fused multiply-add for each, and the multiplication for the maximum one for each row: so scores are
//! masked before they are scaled, and scaled after their maximum is taken. A positive `c` keeps the order of numbers, and rounding
//! keeps it too (IEEE 754-2019, 4.3), so both ways give the same bits: infinities, numbers that overflow or become zero, and
//! no-number included.
//!
//! `c` is a constant, or an argument of the kernel, perhaps times constants: the launcher sees to it that such arguments are
//! positive ([`POSITIVE`]). `x · c + 0`, as `s = 0; s += c · x` is, is taken for `x · c` where only an exponential tells them
//! apart: it does not.

use crate::mlir::{Attribute, FloatValue, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::combine;
use crate::tile::Combine;

/// The attribute of an argument that launches only have between [`LEAST`] and [`MOST`].
pub const POSITIVE: &str = "twill.positive";
/// The least factor: products of three such, and of numbers that are not too small, are no zero.
const LEAST: f64 = 1.0 / MOST;
/// The greatest factor: products of three such are finite.
const MOST: f64 = (1_u64 << 32) as f64;

/// The module with maxima and minima of a function taken before the scaling, where that saves work.
pub(crate) fn before_scaling(mut module: Module, function: OperationId) -> Module {
    let all: Vec<OperationId> = module.walk(function).filter(|id| module.operation(*id).name == "tt.reduce").collect();
    for reduce in all {
        // What was scaled may be a maximum that was taken before.
        let Some(found) = scaled(&module, function, reduce) else { continue };
        take_before(&mut module, function, &found);
        module.number_uses();
        for id in found.chain {
            let is_read = module.operation(id).results.iter().any(|value| !module.uses(*value).is_empty());
            if !is_read {
                module.remove(id);
                module.number_uses();
            }
        }
    }
    module
}

/// A maximum or minimum of numbers that are scaled, and perhaps masked.
struct Scaled {
    reduce: OperationId,
    /// The numbers before they are scaled.
    of: ValueId,
    by: Factor,
    /// The tile of factors.
    factors: ValueId,
    /// What masks the scaled numbers, the first one first: conditions, and infinities for what they leave out.
    masks: Vec<OperationId>,
    /// Whether zero is added to them.
    adds_zero: bool,
    /// What made the numbers that were reduced, the last one first.
    chain: Vec<OperationId>,
}

/// A positive number.
enum Factor {
    Constant(FloatValue),
    /// A scalar, and the positions of the arguments that have to be positive.
    Scalar(ValueId, Vec<usize>),
}

/// The maximum or minimum that a `tt.reduce` takes of a tile times a positive number, if what else reads the product only adds or subtracts.
fn scaled(module: &Module, function: OperationId, reduce: OperationId) -> Option<Scaled> {
    let operation = module.operation(reduce);
    let (&[reduced], [_]) = (operation.operands.as_slice(), operation.results.as_slice()) else { return None };
    let left_out = match combine(module, reduce) {
        Combine::Maximum => f64::NEG_INFINITY,
        Combine::Minimum => f64::INFINITY,
        _ => return None,
    };
    let is_sum = |id: OperationId| matches!(module.operation(id).name.as_str(), "arith.subf" | "arith.addf");
    let others = module.uses(reduced).iter().map(|one| one.operation).filter(|id| *id != reduce);
    let others: Vec<OperationId> = others.collect();
    if !others.iter().all(|id| is_sum(*id)) {
        return None;
    }
    let (mut masks, mut adds_zero, mut value) = (Vec::new(), false, reduced);
    let mut chain = Vec::new();
    loop {
        let id = module.defining_operation(value)?;
        // Only the next one reads it.
        if value != reduced && module.uses(value).len() > 1 {
            return None;
        }
        chain.push(id);
        match (module.operation(id).name.as_str(), module.operation(id).operands.as_slice()) {
            ("arith.select", &[_, inner, other]) if module.float_constant(other) == Some(left_out) => {
                masks.push(id);
                value = inner;
            }
            ("arith.addf", &[a, b]) => {
                let is_zero = |value| module.float_constant(value) == Some(0.0);
                let (inner, _) = [(a, b), (b, a)].into_iter().find(|(_, other)| is_zero(*other))?;
                let is_exponential = |id: &OperationId| {
                    let result = module.operation(*id).results.first();
                    let uses = result.map(|result| module.uses(*result)).unwrap_or_default();
                    uses.iter()
                        .all(|one| matches!(module.operation(one.operation).name.as_str(), "math.exp" | "math.exp2"))
                };
                if !others.iter().all(is_exponential) {
                    return None;
                }
                (adds_zero, value) = (true, inner);
            }
            ("arith.mulf", &[a, b]) => {
                let of = |(of, factors)| Some((of, factors, factor(module, function, factors)?));
                let (of, factors, by) = [(a, b), (b, a)].into_iter().find_map(of)?;
                masks.reverse();
                return Some(Scaled { reduce, of, by, factors, masks, adds_zero, chain });
            }
            _ => return None,
        }
    }
}

/// The positive number that every element of a tile is.
fn factor(module: &Module, function: OperationId, tile: ValueId) -> Option<Factor> {
    if let Some(Attribute::Float { value, .. }) = module.constant(tile).and_then(Attribute::number) {
        return (value.0 > 0.0 && value.0.is_finite()).then_some(Factor::Constant(*value));
    }
    let splat = module.operation(module.defining_operation(tile)?);
    let &[scalar] = splat.operands.as_slice() else { return None };
    let mut arguments = Vec::new();
    let is_positive = splat.name == "tt.splat" && is_positive(module, function, scalar, 3, &mut arguments)? <= 3;
    is_positive.then_some(Factor::Scalar(scalar, arguments))
}

/// Of how many factors a scalar is the product, all of which are positive if these arguments are; at most so many.
fn is_positive(
    module: &Module,
    function: OperationId,
    scalar: ValueId,
    most: usize,
    arguments: &mut Vec<usize>,
) -> Option<usize> {
    if let Some(value) = module.float_constant(scalar) {
        return (LEAST..=MOST).contains(&value).then_some(1);
    }
    if let Some(index) = module.arguments(function).iter().position(|argument| *argument == scalar) {
        arguments.push(index);
        // Of smaller types such factors are zero or infinite.
        return matches!(module.type_of(scalar), Type::Float(float) if float.bits() >= 32).then_some(1);
    }
    let operation = module.operation(module.defining_operation(scalar)?);
    match (operation.name.as_str(), operation.operands.as_slice()) {
        ("arith.mulf", &[a, b]) if most > 1 => {
            let count = is_positive(module, function, a, most - 1, arguments)?;
            Some(count + is_positive(module, function, b, most - 1, arguments)?)
        }
        _ => None,
    }
}

/// Masks the numbers, takes their maximum, and scales both.
fn take_before(module: &mut Module, function: OperationId, found: &Scaled) {
    let Scaled { reduce, of, by, factors, masks, adds_zero, .. } = found;
    let (&[reduced], &[result]) =
        (module.operation(*reduce).operands.as_slice(), module.operation(*reduce).results.as_slice())
    else {
        return;
    };
    let add = |module: &mut Module, name: &str, operands: Vec<ValueId>, like: ValueId, before: OperationId| {
        let (kind, wish) = (module.type_of(like).clone(), module.value(like).name.clone());
        let new = NewOperation { name, operands, attributes: Vec::new(), result: (kind, &wish), like: before };
        module.insert_before(before, new)
    };
    // The last operation that makes what is reduced: what reads that is after it.
    let Some(last) = module.defining_operation(reduced) else { return };
    let mut masked = *of;
    for mask in masks {
        let &[condition, scaled, other] = module.operation(*mask).operands.as_slice() else { return };
        masked = add(module, "arith.select", vec![condition, masked, other], scaled, last);
    }
    if module.operation(last).name != "arith.mulf" {
        let scaled = add(module, "arith.mulf", vec![masked, *factors], reduced, last);
        module.replace_uses(reduced, scaled);
    }
    module.replace_operands(*reduce, vec![masked]);

    let Some((block, position)) = module.position(*reduce) else { return };
    let (kind, wish) = (module.type_of(result).clone(), module.value(result).name.clone());
    let new = |name, operands, attributes, wish| NewOperation {
        name,
        operands,
        attributes,
        result: (kind.clone(), wish),
        like: *reduce,
    };
    let (at, factor) = match by {
        Factor::Constant(value) => {
            let constant = vec![("value", filled(*value, &kind))];
            (2, module.insert(block, position + 1, new("arith.constant", Vec::new(), constant, "scale")))
        }
        Factor::Scalar(scalar, arguments) => {
            for index in arguments {
                module.set_argument_attribute(function, *index, POSITIVE, 1);
            }
            if kind.is_tensor() {
                (2, module.insert(block, position + 1, new("tt.splat", vec![*scalar], Vec::new(), "scale")))
            } else {
                (1, *scalar)
            }
        }
    };
    let product = module.insert(block, position + at, new("arith.mulf", vec![factor, factor], Vec::new(), &wish));
    let mut maximum = product;
    if *adds_zero {
        // So that no zero has another sign.
        let zero = vec![("value", filled(FloatValue(0.0), &kind))];
        let zero = module.insert(block, position + at + 1, new("arith.constant", Vec::new(), zero, "zero"));
        maximum = module.insert(block, position + at + 2, new("arith.addf", vec![product, zero], Vec::new(), &wish));
    }
    // The product's own operand is put in once nothing else reads the maximum any more.
    module.replace_uses(result, maximum);
    if let Some(multiply) = module.defining_operation(product) {
        module.replace_operands(multiply, vec![result, factor]);
    }
}

/// A constant of a type of floating-point numbers, or of tensors of them.
fn filled(value: FloatValue, kind: &Type) -> Attribute {
    let number = Attribute::Float { value, kind: kind.element().clone() };
    if kind.is_tensor() { Attribute::Splat { value: Box::new(number), kind: kind.clone() } } else { number }
}
