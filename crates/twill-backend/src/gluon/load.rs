//! Loads through pointers as Gluon source.

use twill_codegen::ir::{Expression, ExpressionKind};
use twill_triton::mlir::Type;

/// A load of elements of a type. mask, other: their source, and what stands where the mask is off as it is in the program; more:
/// further arguments, each after a comma.
///
/// Triton before 3.9 extends the sign of a constant `other` of 8 or 16 bits over its neighbours in a register, so that −2 is −2, −1,
/// −1, −1. Such numbers are selected after the load.
pub(super) fn load(
    element: &Type,
    pointers: &str,
    mask: Option<&str>,
    other: Option<(&str, &Expression)>,
    more: &str,
) -> String {
    match (mask, other) {
        (Some(mask), Some((other, value))) if may_be_extended(element, value) => {
            format!("load_or({pointers}, {mask}, {other}{more})")
        }
        _ => {
            let mask = mask.map_or(String::new(), |mask| format!(", mask={mask}"));
            let other = other.map_or(String::new(), |(other, _)| format!(", other={other}"));
            format!("gl.load({pointers}{mask}{other}{more})")
        }
    }
}

/// Whether a number that fills tiles is narrow and may be negative, but −1.
fn may_be_extended(element: &Type, other: &Expression) -> bool {
    let is_narrow = matches!(element, Type::Integer(8 | 16));
    is_narrow && constant(other).is_none_or(|number| number < -1)
}

/// The integer that is in each element.
fn constant(value: &Expression) -> Option<i128> {
    match &value.kind {
        ExpressionKind::Integer(number) => Some(*number),
        ExpressionKind::Broadcast(inner) | ExpressionKind::ExpandDims(_, inner) => constant(inner),
        _ => None,
    }
}
