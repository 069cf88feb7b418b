//! Row sums of which each thread holds its own partial, as expressions.

use crate::ir::{Elementwise, Expression, ExpressionKind, PARTIALS, Region};
use twill_triton::mlir::Type;

/// The per-thread partials of a tile's row sums.
pub(crate) fn partials(tile: Expression) -> Expression {
    let shape = vec![tile.shape[0], PARTIALS];
    let element = tile.element.clone();
    Expression { kind: ExpressionKind::PartialSums(Box::new(tile)), shape, element }
}

/// The partials of a sum that begins with a constant, where tiles have this many columns: a row of equal parts of it. They
/// add up to the constant, as it is zero or the number of columns a power of two.
pub(crate) fn initial(constant: f64, columns: u64, region: &Region, element: Type) -> Expression {
    let part = constant / columns.max(1) as f64;
    let shape = tile_region(region, columns).extents;
    partials(Expression { kind: ExpressionKind::Float(part), shape, element })
}

/// The row sums of partials: an all-reduce over the four threads (a quad) that hold a row.
pub(crate) fn quad_all_reduce(partials: Expression) -> Expression {
    let shape = vec![partials.shape[0]];
    let element = partials.element.clone();
    let kind = ExpressionKind::Reduce { axis: 1, combine: Elementwise::AddF, operand: Box::new(partials) };
    Expression { kind, shape, element }
}

/// The partials of the next iteration: `old · factor + sum`.
pub(crate) fn accumulate(old: Expression, factor: Option<Expression>, sum: Expression) -> Expression {
    let (shape, element) = (old.shape.clone(), old.element.clone());
    let scaled = match factor {
        None => old,
        Some(factor) => {
            let column = Expression {
                shape: vec![factor.shape[0], 1],
                element: factor.element.clone(),
                kind: ExpressionKind::ExpandDims(1, Box::new(factor)),
            };
            let spread = Expression {
                shape: shape.clone(),
                element: element.clone(),
                kind: ExpressionKind::Broadcast(Box::new(column)),
            };
            Expression::apply(Elementwise::MulF, vec![old, spread])
        }
    };
    Expression::apply(Elementwise::AddF, vec![scaled, sum])
}

/// The region of a tile whose row sums have this region.
pub(crate) fn tile_region(sums: &Region, columns: u64) -> Region {
    sums.with(1, columns)
}
