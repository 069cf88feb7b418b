//! Value numbering of what a group computes outside of its loops: equal numbers are equal computations, in whichever groups they are.

use crate::ir::{Expression, ExpressionKind, VariableId};
use std::collections::HashMap;

/// The numbers of a group's variables; none for one that is not known.
pub(super) type Values = HashMap<VariableId, Option<usize>>;

/// Numbers of computations.
#[derive(Default)]
pub(super) struct Numbers {
    known: HashMap<String, usize>,
}

impl Numbers {
    /// The number of an expression; none where it has what is not known to be the same in another group.
    pub fn of(&mut self, value: &Expression, values: &Values) -> Option<usize> {
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
        Some(self.named(format!("{what} {:?} {:?} {:?}", operands?, value.shape, value.element)))
    }

    /// The number of something with a name of its own.
    pub fn named(&mut self, key: String) -> usize {
        let next = self.known.len();
        *self.known.entry(key).or_insert(next)
    }
}
