//! Early returns, after [`structure`](crate::passes::structure_returns::structure): branches that a group's code ends with, on
//! conditions that are the same in all groups.

use crate::ir::{Expression, ExpressionKind, Group, Node, Op, VariableId};
use std::collections::HashMap;

/// A condition, and whether it returns where it holds.
type Return = (Expression, bool);

/// How many early returns the code of every group begins with, where they are the same in all groups; else none.
pub(super) fn same_in_all(groups: &[Group]) -> usize {
    let mut all = groups.iter().map(returns_of);
    let Some(first) = all.next() else { return 0 };
    if all.all(|other| other == first) { first.len() } else { 0 }
}

/// The early returns of a group, in order, what is computed for them put in.
fn returns_of(group: &Group) -> Vec<Return> {
    let (mut values, mut found) = (HashMap::new(), Vec::new());
    let mut nodes = group.body.as_slice();
    while let Some((last, before)) = nodes.split_last() {
        for node in before {
            match node {
                Node::Op(Op::Let { to, value }, _) => {
                    let value = resolved(value, &values);
                    values.insert(*to, value);
                }
                Node::Op(..) => {}
                // What follows other branches and loops is none.
                _ => return found,
            }
        }
        match last {
            Node::If { condition, then, otherwise } if then.is_empty() != otherwise.is_empty() => {
                let condition = resolved(condition, &values);
                let mut is_known = true;
                condition.walk(&mut |e| is_known &= !matches!(e.kind, ExpressionKind::Variable(_)));
                if !is_known {
                    return found;
                }
                found.push((condition, then.is_empty()));
                nodes = if then.is_empty() { otherwise } else { then };
            }
            _ => return found,
        }
    }
    found
}

/// An expression with what variables hold in their place.
fn resolved(value: &Expression, values: &HashMap<VariableId, Expression>) -> Expression {
    let boxed = |x: &Expression| Box::new(resolved(x, values));
    let kind = match &value.kind {
        ExpressionKind::Variable(id) => match values.get(id) {
            Some(known) => return known.clone(),
            None => value.kind.clone(),
        },
        ExpressionKind::Apply { operation, operands } => ExpressionKind::Apply {
            operation: operation.clone(),
            operands: operands.iter().map(|x| resolved(x, values)).collect(),
        },
        ExpressionKind::Broadcast(x) => ExpressionKind::Broadcast(boxed(x)),
        ExpressionKind::ExpandDims(axis, x) => ExpressionKind::ExpandDims(*axis, boxed(x)),
        ExpressionKind::Transpose(order, x) => ExpressionKind::Transpose(order.clone(), boxed(x)),
        ExpressionKind::Reduce { axis, combine, operand } => {
            ExpressionKind::Reduce { axis: *axis, combine: combine.clone(), operand: boxed(operand) }
        }
        ExpressionKind::PartialSums(x) => ExpressionKind::PartialSums(boxed(x)),
        ExpressionKind::Load { pointers, mask, other } => ExpressionKind::Load {
            pointers: boxed(pointers),
            mask: mask.as_deref().map(boxed),
            other: other.as_deref().map(boxed),
        },
        other => other.clone(),
    };
    Expression { kind, ..value.clone() }
}
