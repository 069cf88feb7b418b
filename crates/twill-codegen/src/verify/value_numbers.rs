//! Value numbering of what a group computes outside of its loops: equal numbers are equal computations, in whichever groups they are.

use crate::ir::{Expression, ExpressionKind, Node, Op, VariableId};
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

    /// Goes over a node: numbers of what it makes. Loops and branches that make the same of the same are equal computations too.
    pub fn go_over(&mut self, node: &Node, values: &mut Values) {
        if let Node::Op(Op::Let { to, value }, _) = node {
            let number = self.of(value, values);
            values.insert(*to, number);
            return;
        }
        let mut made = Vec::new();
        made_in(node, &mut made);
        let mut inner = values.clone();
        let begins: Vec<Option<usize>> = made.iter().map(|id| values.get(id).copied().flatten()).collect();
        for (place, id) in made.iter().enumerate() {
            inner.insert(*id, Some(self.named(format!("made at {place}"))));
        }
        let text = self.text(std::slice::from_ref(node), &made, &inner);
        for (place, id) in made.iter().enumerate() {
            let number = text.as_ref().map(|text| self.named(format!("{begins:?} {text} makes {place}")));
            values.insert(*id, number);
        }
    }

    /// What nodes do, by numbers; none where something is not known.
    fn text(&mut self, nodes: &[Node], made: &[VariableId], values: &Values) -> Option<String> {
        let place = |id: &VariableId| made.iter().position(|other| other == id);
        let mut all = String::new();
        for node in nodes {
            let of: Vec<usize> =
                node.expressions().into_iter().map(|e| self.of(e, values)).collect::<Option<Vec<usize>>>()?;
            let head = match node {
                Node::Op(Op::Let { to, value }, _) => format!("let {:?} {:?}", place(to), self.of(value, values)?),
                Node::Op(Op::Copy { to, from }, _) => format!("let {:?} {:?}", place(to), values.get(from)?.as_ref()?),
                Node::Op(Op::Opaque { operation, operands, results }, _) => {
                    let operands: Option<Vec<usize>> = operands.iter().map(|x| self.of(x, values)).collect();
                    let results: Vec<Option<usize>> = results.iter().map(place).collect();
                    format!("{operation:?} {:?} {results:?}", operands?)
                }
                Node::For { variable, .. } => format!("for {:?} {of:?}", place(variable)),
                Node::While { .. } => format!("while {of:?}"),
                Node::If { .. } => format!("if {of:?}"),
                _ => return None,
            };
            all.push_str(&head);
            for block in node.blocks() {
                all.push_str(" { ");
                all.push_str(&self.text(block, made, values)?);
                all.push_str(" }");
            }
            all.push(';');
        }
        Some(all)
    }

    /// The number of something with a name of its own.
    pub fn named(&mut self, key: String) -> usize {
        let next = self.known.len();
        *self.known.entry(key).or_insert(next)
    }
}

/// The variables that a node makes, in the order of the text.
fn made_in(node: &Node, made: &mut Vec<VariableId>) {
    let mut add = |id: VariableId| {
        if !made.contains(&id) {
            made.push(id);
        }
    };
    match node {
        Node::Op(Op::Let { to, .. } | Op::Copy { to, .. } | Op::WgmmaInit(to) | Op::Wgmma { to, .. }, _) => add(*to),
        Node::Op(Op::Opaque { results, .. }, _) => results.iter().for_each(|id| add(*id)),
        Node::For { variable, .. } => add(*variable),
        _ => {}
    }
    for block in node.blocks() {
        block.iter().for_each(|node| made_in(node, made));
    }
}
