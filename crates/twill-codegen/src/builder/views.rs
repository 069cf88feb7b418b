//! Operations that only say how a value is seen.

use twill_triton::mlir::Operation;

/// Whether an operation computes nothing.
pub(crate) fn is_view(name: &str) -> bool {
    matches!(name, "tt.splat" | "tt.broadcast" | "tt.expand_dims" | "tt.trans" | "tt.make_range" | "arith.constant")
}

/// The order of a transposition.
pub(crate) fn order(operation: &Operation) -> Vec<usize> {
    let order = operation.attributes.integers("order").unwrap_or_default();
    order.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect()
}
