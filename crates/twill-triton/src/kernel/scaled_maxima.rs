//! The maximum of scaled numbers, `max(x · c)`, as the scaled maximum, `max(x) · c`.
//!
//! Softmax scales its scores, takes each row's maximum and subtracts it. Where nothing but the subtraction reads the scaled scores,
//! it is one fused multiply-add for each, and the multiplication for the maximum one for each row. A positive `c` keeps the order
//! of numbers, and rounding keeps it too (IEEE 754-2019, 4.3), so both ways give the same bits: infinities, numbers that overflow
//! or become zero, and no-number included.

use crate::mlir::{Attribute, FloatValue, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::combine;
use crate::tile::Combine;

/// The module with maxima and minima of a function taken before the scaling, where that saves work.
pub(crate) fn before_scaling(mut module: Module, function: OperationId) -> Module {
    let found: Vec<Scaled> = module.walk(function).filter_map(|id| scaled(&module, id)).collect();
    for Scaled { reduce, of, by } in &found {
        let &[result] = module.operation(*reduce).results.as_slice() else { continue };
        let Some((block, position)) = module.position(*reduce) else { continue };
        let (kind, name) = (module.type_of(result).clone(), module.value(result).name.clone());
        let new = |name, operands, attributes, kind, result| NewOperation {
            name,
            operands,
            attributes,
            result: (kind, result),
            like: *reduce,
        };
        let constant = vec![("value", filled(*by, &kind))];
        let factor =
            module.insert(block, position + 1, new("arith.constant", Vec::new(), constant, kind.clone(), "scale"));
        // Its own operand is put in once nothing else reads the maximum any more.
        let product = new("arith.mulf", vec![factor, factor], Vec::new(), kind, &name);
        let product = module.insert(block, position + 2, product);
        module.replace_uses(result, product);
        if let Some(multiply) = module.defining_operation(product) {
            module.replace_operands(multiply, vec![result, factor]);
        }
        module.replace_operands(*reduce, vec![*of]);
    }
    if !found.is_empty() {
        module.number_uses();
    }
    module
}

/// A maximum or minimum of numbers that are scaled.
struct Scaled {
    reduce: OperationId,
    /// The numbers before they are scaled.
    of: ValueId,
    by: FloatValue,
}

/// The maximum or minimum of a tile times a positive constant, if what else reads the product only adds or subtracts.
fn scaled(module: &Module, reduce: OperationId) -> Option<Scaled> {
    let operation = module.operation(reduce);
    let (&[scaled], [_]) = (operation.operands.as_slice(), operation.results.as_slice()) else { return None };
    if operation.name != "tt.reduce" || !matches!(combine(module, reduce), Combine::Maximum | Combine::Minimum) {
        return None;
    }
    let multiply = module.operation(module.defining_operation(scaled)?);
    let &[a, b] = multiply.operands.as_slice() else { return None };
    if multiply.name != "arith.mulf" {
        return None;
    }
    let (of, by) = [(a, b), (b, a)].into_iter().find_map(|(of, by)| Some((of, positive(module, by)?)))?;
    let contracts = module.uses(scaled).iter().all(|one| {
        one.operation == reduce || matches!(module.operation(one.operation).name.as_str(), "arith.subf" | "arith.addf")
    });
    contracts.then_some(Scaled { reduce, of, by })
}

/// The positive finite number that every element of a value is.
fn positive(module: &Module, value: ValueId) -> Option<FloatValue> {
    match module.constant(value)?.number()? {
        Attribute::Float { value, .. } if value.0 > 0.0 && value.0.is_finite() => Some(*value),
        _ => None,
    }
}

/// A constant of a type of floating-point numbers, or of tensors of them.
fn filled(value: FloatValue, kind: &Type) -> Attribute {
    let number = Attribute::Float { value, kind: kind.element().clone() };
    if kind.is_tensor() { Attribute::Splat { value: Box::new(number), kind: kind.clone() } } else { number }
}
