//! Early returns, after [`structure`](crate::passes::structure_returns::structure): branches that a group's code ends with, on
//! conditions that are the same in all groups.
//!
//! Conditions are compared by value numbering: equal numbers are equal computations.

use crate::ir::{Expression, ExpressionKind, Group, Node, Op, VariableId};
use std::collections::HashMap;

/// A condition by its number, and whether the program returns where it holds.
type Return = (usize, bool);

/// How many early returns the code of every group begins with, where they are the same in all groups; else none.
pub(super) fn same_in_all(groups: &[Group]) -> usize {
    let mut numbers = Numbers::default();
    let mut all = groups.iter().map(|group| returns_of(group, &mut numbers));
    let Some(first) = all.next() else { return 0 };
    if all.all(|other| other == first) { first.len() } else { 0 }
}

/// The early returns of a group, in order.
fn returns_of(group: &Group, numbers: &mut Numbers) -> Vec<Return> {
    let (mut values, mut found) = (HashMap::new(), Vec::new());
    let mut nodes = group.body.as_slice();
    while let Some((Node::If { condition, then, otherwise }, before)) = nodes.split_last() {
        for node in before {
            match node {
                Node::Op(Op::Let { to, value }, _) => {
                    values.insert(*to, numbers.of(value, &values));
                }
                Node::Op(..) => {}
                // What follows other branches and loops is none.
                _ => return found,
            }
        }
        let Some(condition) = numbers.of(condition, &values) else { return found };
        if then.is_empty() == otherwise.is_empty() {
            return found;
        }
        found.push((condition, then.is_empty()));
        nodes = if then.is_empty() { otherwise } else { then };
    }
    found
}

/// Numbers of computations.
#[derive(Default)]
struct Numbers {
    known: HashMap<String, usize>,
}

impl Numbers {
    /// The number of an expression; none where it has what is not known to be the same in another group.
    fn of(&mut self, value: &Expression, values: &HashMap<VariableId, Option<usize>>) -> Option<usize> {
        let (what, operands): (String, Vec<&Expression>) = match &value.kind {
            ExpressionKind::Variable(id) => return values.get(id).copied().flatten(),
            ExpressionKind::Apply { operation, operands } => (format!("{operation:?}"), operands.iter().collect()),
            ExpressionKind::Broadcast(x) => ("broadcast".into(), vec![x]),
            ExpressionKind::ExpandDims(axis, x) => (format!("expand {axis}"), vec![x]),
            ExpressionKind::Transpose(order, x) => (format!("transpose {order:?}"), vec![x]),
            ExpressionKind::Reduce { axis, combine, operand } => (format!("reduce {axis} {combine:?}"), vec![operand]),
            ExpressionKind::Load { pointers, mask, other } => {
                let others = mask.iter().chain(other).map(|x| &**x);
                (
                    format!("load {} {}", mask.is_some(), other.is_some()),
                    std::iter::once(&**pointers).chain(others).collect(),
                )
            }
            ExpressionKind::Parameter(_)
            | ExpressionKind::ProgramId { .. }
            | ExpressionKind::ProgramCount(_)
            | ExpressionKind::Integer(_)
            | ExpressionKind::Float(_)
            | ExpressionKind::Range(..) => (format!("{:?}", value.kind), Vec::new()),
            _ => return None,
        };
        let operands: Option<Vec<usize>> = operands.into_iter().map(|x| self.of(x, values)).collect();
        let key = format!("{what} {:?} {:?} {:?}", operands?, value.shape, value.element);
        let next = self.known.len();
        Some(*self.known.entry(key).or_insert(next))
    }
}
