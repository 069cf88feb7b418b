//! Values that are combined along a loop, and the neutral elements there.

use std::borrow::Cow;

use super::classes::Node;
use super::{Refused, extents, is_constant};
use crate::mlir::{FloatKind, ForLoop, Module, OperationId, Type, ValueId};
use crate::operations::{combine, is_conversion};
use crate::tile::Combine;

/// The neutral element where a tile is combined over its columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Neutral {
    Zero,
    Least,
    Greatest,
}

/// A value of which the first iteration masks what does not count.
pub(super) struct Mask {
    pub value: ValueId,
    pub neutral: Neutral,
    /// The dimension along the loop.
    pub dimension: usize,
    /// The operation and the operand that reads it masked; all in the loop without one.
    pub only: Option<(OperationId, usize)>,
}

/// Bits of an operand's row that one MMA of the tensor core takes: 16 elements of 16.
const DEPTH_BITS: u64 = 256;

/// The values that are combined along the loop, what does not count in them, and which of their dimensions that is. Of a
/// MMA's operands the left one is masked; the right one must be finite.
///
/// Only the top level of the body is looked at: no kernel is read whose branches hold tiles.
pub(super) fn needed(
    module: &Module,
    parts: &ForLoop<'_>,
    step: u64,
    runs: &dyn Fn(Node) -> bool,
) -> Result<Vec<Mask>, Refused> {
    let body = &module.block(parts.body).operations;
    let along = |id: OperationId, index: usize, value: ValueId, d: usize| match is_constant(module, value) {
        true => runs(Node::Use(id, index, d)),
        false => runs(Node::Value(value, d)),
    };
    let made = |id: OperationId, value: ValueId| {
        let why =
            "what is combined along it must be computed in the loop, not loaded: there is no mask for what is loaded";
        base(module, parts, value).ok_or((id, Cow::Borrowed(why)))
    };
    let mut masks: Vec<Mask> = Vec::new();
    for id in body {
        let operation = module.operation(*id);
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.dot", [left, ..]) if along(*id, 0, *left, 1) => {
                let bits = module.type_of(*left).element().scalar_bits().map_or(1, u64::from);
                if !(step * bits).is_multiple_of(DEPTH_BITS) {
                    return Err((*id, "an MMA takes 256 bits at a time along it".into()));
                }
                let value = made(*id, *left)?;
                if !masks.iter().any(|known| known.value == value) {
                    masks.push(Mask { value, neutral: Neutral::Zero, dimension: 1, only: None });
                }
            }
            ("tt.descriptor_store" | "tt.descriptor_reduce", [_, value, ..])
                if (0..extents(module, *value).len()).any(|d| along(*id, 1, *value, d)) =>
            {
                return Err((*id, "what is stored runs along it".into()));
            }
            _ => {}
        }
    }
    for id in body {
        let operation = module.operation(*id);
        let axis = operation.attributes.axis();
        let ("tt.reduce", [value]) = (operation.name.as_str(), operation.operands.as_slice()) else { continue };
        if !along(*id, 0, *value, axis) {
            continue;
        }
        let neutral = match combine(module, *id) {
            Combine::Sum => Neutral::Zero,
            Combine::Maximum => Neutral::Least,
            Combine::Minimum => Neutral::Greatest,
            _ => return Err((*id, "only sums, maxima and minima along it have a neutral element".into())),
        };
        let base = made(*id, *value)?;
        if !is_wide(module.type_of(*value)) {
            return Err((*id, "what is combined along it must be floating-point numbers of 16 bits or more".into()));
        }
        let is_zero_there = masks.iter().any(|m| m.value == base && m.only.is_none() && m.dimension == axis);
        if neutral != Neutral::Zero || !is_zero_there {
            masks.push(Mask { value: *value, neutral, dimension: axis, only: Some((*id, 0)) });
        }
    }
    Ok(masks)
}

/// Returns whether numbers of a type have infinities and zeros that conversions keep.
fn is_wide(kind: &Type) -> bool {
    matches!(kind.element(), Type::Float(FloatKind::F16 | FloatKind::BF16 | FloatKind::F32 | FloatKind::F64))
}

/// The value that a conversion converts while it keeps zeros, if an operation of the loop computes it.
fn base(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> Option<ValueId> {
    let operation = module.operation(module.defining_operation(value)?);
    let computes = ["tt.dot", "tt.fp_to_fp"].contains(&operation.name.as_str())
        || ["arith.", "math."].iter().any(|dialect| operation.name.starts_with(dialect));
    if operation.block != Some(parts.body) || !computes || is_constant(module, value) || !is_wide(module.type_of(value))
    {
        return None;
    }
    match operation.operands.first() {
        Some(from) if is_conversion(&operation.name) && is_wide(module.type_of(*from)) => {
            // The operand of a conversion may be loaded: then there is nothing to mask.
            base(module, parts, *from)
        }
        _ => Some(value),
    }
}
