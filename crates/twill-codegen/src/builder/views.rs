//! Operations that only say how a value is seen, and which program of the grid it belongs to.

use twill_graph::saturate;
use twill_triton::mlir::{Attribute, Operation};

/// Whether an operation computes nothing.
pub(crate) fn is_view(name: &str) -> bool {
    matches!(name, "tt.splat" | "tt.broadcast" | "tt.expand_dims" | "tt.trans" | "tt.make_range" | "arith.constant")
}

/// The order of a transposition.
pub(crate) fn order(operation: &Operation) -> Vec<usize> {
    let order = operation.attributes.integers("order").unwrap_or_default();
    order.iter().map(|d| saturate::<usize>(*d)).collect()
}

/// The axis of a `tt.get_program_id` or `tt.get_num_programs`.
pub(crate) fn program_axis(operation: &Operation) -> u32 {
    let axis = operation.attributes.get("axis");
    match axis {
        Some(Attribute::Enumeration(name) | Attribute::Other(name)) => match name.as_str() {
            "y" | "1" => 1,
            "z" | "2" => 2,
            _ => 0,
        },
        Some(Attribute::Integer { value, .. }) => saturate::<u32>(*value),
        _ => 0,
    }
}
