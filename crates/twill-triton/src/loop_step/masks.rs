//! What is combined along a loop, and what does not count there.

use super::classes::Node;
use super::{Refused, extents, is_constant};
use crate::kernel::{combine, is_conversion};
use crate::mlir::{ForLoop, Module, OperationId, Type, ValueId};
use crate::tile::Combine;

/// What does not count where a tile is combined over its columns.
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
}

/// The values that are combined along the loop, what does not count in them, and which of their dimensions that is.
pub(super) fn needed(module: &Module, parts: &ForLoop<'_>, runs: &dyn Fn(Node) -> bool) -> Result<Vec<Mask>, Refused> {
    let mut masks: Vec<Mask> = Vec::new();
    for id in &module.block(parts.body).operations {
        let operation = module.operation(*id);
        let along = |value: ValueId, d: usize| !is_constant(module, value) && runs(Node::Value(value, d));
        let combined = match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.reduce", [value]) => {
                let axis = operation.attributes.integer("axis").and_then(|a| usize::try_from(a).ok()).unwrap_or(0);
                if !along(*value, axis) {
                    continue;
                }
                let neutral = match combine(module, *id) {
                    Combine::Sum => Neutral::Zero,
                    Combine::Maximum => Neutral::Least,
                    Combine::Minimum => Neutral::Greatest,
                    _ => return Err((*id, "only sums, maxima and minima along it have a neutral element".into())),
                };
                (*value, neutral, axis)
            }
            ("tt.dot", [left, ..]) if along(*left, 1) => (*left, Neutral::Zero, 1),
            ("tt.descriptor_store" | "tt.descriptor_reduce", [_, value, ..])
                if (0..extents(module, *value).len()).any(|d| along(*value, d)) =>
            {
                return Err((*id, "what is stored runs along it".into()));
            }
            _ => continue,
        };
        let (value, neutral, dimension) = combined;
        let (base, maker) = base(module, parts, value).ok_or((
            *id,
            "what is combined along it must be computed in the loop, not loaded: there is no mask for what is loaded"
                .into(),
        ))?;
        if !matches!(module.type_of(base).element(), Type::Float(_)) {
            return Err((maker, "what is combined along it must be floating-point numbers".into()));
        }
        match masks.iter().find(|known| known.value == base) {
            Some(known) if known.neutral != neutral || known.dimension != dimension => {
                return Err((maker, "one value is combined along it in two ways".into()));
            }
            Some(_) => {}
            None => masks.push(Mask { value: base, neutral, dimension }),
        }
    }
    Ok(masks)
}

/// What a value is a conversion of, and the operation of the loop that computes it.
fn base(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> Option<(ValueId, OperationId)> {
    let id = module.defining_operation(value)?;
    let operation = module.operation(id);
    if operation.block != Some(parts.body) {
        return None;
    }
    match operation.name.as_str() {
        name if is_conversion(name) => base(module, parts, *operation.operands.first()?),
        name if name == "tt.dot" || name.starts_with("arith.") || name.starts_with("math.") => Some((value, id)),
        _ => None,
    }
}
