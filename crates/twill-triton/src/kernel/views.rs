//! Views: operations that show a tile under another shape or order and compute nothing.

use crate::mlir::{Attribute, Module, Operation, OperationId};
use crate::retile_loop::FIRST_ITERATION;

/// Where the extents of a view's result come from: for each, the dimension of its operand, or `None` where elements are
/// repeated or dimensions do not correspond.
pub(super) type Mapping = Vec<Option<usize>>;

/// Returns whether the operation of this name is a view.
pub(crate) fn is_view(operation: &str) -> bool {
    matches!(
        operation,
        "tt.trans"
            | "tt.splat"
            | "tt.unsplat"
            | "tt.broadcast"
            | "tt.expand_dims"
            | "tt.reshape"
            | "tt.bitcast"
            | "arith.bitcast"
    )
}

/// Returns whether an operation shows one of its operands and computes nothing that counts: which of them. A mask of
/// the first iteration alone ([`FIRST_ITERATION`]) is no operation of the schedule.
pub(super) fn viewed(operation: &Operation) -> Option<usize> {
    if is_view(&operation.name) {
        return Some(0);
    }
    (operation.name == "arith.select" && operation.attributes.flag(FIRST_ITERATION)).then_some(1)
}

/// Returns whether the operation of this name gives a tile that is known before the loop.
pub(crate) fn is_constant(operation: &str) -> bool {
    matches!(operation, "arith.constant" | "tt.make_range")
}

/// How a view maps dimensions; `from` and `to` are the shapes of its operand and its result.
pub(super) fn mapping(module: &Module, view: OperationId, from: &[u64], to: &[u64]) -> Mapping {
    let mut mapping = unchecked(module, view, from, to);
    // A view with a malformed attribute shows nothing that corresponds.
    mapping.resize(to.len(), None);
    for (dimension, extent) in mapping.iter_mut().zip(to) {
        *dimension = dimension.filter(|source| from.get(*source) == Some(extent));
    }
    mapping
}

fn unchecked(module: &Module, view: OperationId, from: &[u64], to: &[u64]) -> Mapping {
    let operation = module.operation(view);
    match operation.name.as_str() {
        "tt.trans" => match operation.attributes.get("order") {
            Some(Attribute::Integers(order)) => order.iter().map(|d| usize::try_from(*d).ok()).collect(),
            _ => (0..to.len()).rev().map(Some).collect(),
        },
        "tt.expand_dims" => {
            let axis = operation.attributes.axis();
            (0..to.len())
                .map(|d| match d.cmp(&axis) {
                    std::cmp::Ordering::Less => Some(d),
                    std::cmp::Ordering::Equal => None,
                    std::cmp::Ordering::Greater => Some(d - 1),
                })
                .collect()
        }
        "tt.reshape" => reshape(from, to),
        "tt.broadcast" | "tt.bitcast" | "arith.bitcast" | "arith.select" => (0..to.len()).map(Some).collect(),
        _ => vec![None; to.len()],
    }
}

/// Extents that a reshape leaves alone, from the front and from the back; extents of one do not count.
fn reshape(from: &[u64], to: &[u64]) -> Mapping {
    let large = |shape: &[u64]| -> Vec<usize> { (0..shape.len()).filter(|d| shape[*d] > 1).collect() };
    let (sources, targets) = (large(from), large(to));
    let mut result = vec![None; to.len()];
    let same = |(s, t): &(&usize, &usize)| from[**s] == to[**t];
    let front = sources.iter().zip(&targets).take_while(same).count();
    let most = sources.len().min(targets.len()) - front;
    let back = sources.iter().rev().zip(targets.iter().rev()).take(most).take_while(same).count();
    for (source, target) in sources.iter().zip(&targets).take(front) {
        result[*target] = Some(*source);
    }
    for (source, target) in sources.iter().rev().zip(targets.iter().rev()).take(back) {
        result[*target] = Some(*source);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::reshape;

    #[test]
    fn a_reshape_keeps_the_dimensions_that_it_leaves_alone() {
        assert_eq!(reshape(&[128, 64], &[1, 128, 64]), [None, Some(0), Some(1)]);
        assert_eq!(reshape(&[128, 1], &[128]), [Some(0)]);
        assert_eq!(reshape(&[128, 64], &[128, 2, 32]), [Some(0), None, None]);
        assert_eq!(reshape(&[4, 32, 64], &[128, 64]), [None, Some(2)]);
        assert_eq!(reshape(&[16, 16], &[16, 16]), [Some(0), Some(1)]);
        assert_eq!(reshape(&[256], &[16, 16]), [None, None]);
    }
}
