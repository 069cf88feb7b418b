//! What a loop that loads computes ahead of it: what is the same in every iteration, and no compiler moves out of it.
//!
//! LLVM moves no division out of a loop that waits at barriers: by 0 it may do anything, and the loop's body may not come to
//! it. `rows % M` takes some 25 instructions an element, more than all else that a warp does for a copy. Here what is divided
//! by 0 is divided by 1, and read by no iteration. Nor does it move rows that were loaded, such as a list of tokens, when they
//! come to other threads: through shared memory, past a barrier of the group.

use std::collections::HashSet;
use twill_codegen::ir::{Elementwise, Expression, ExpressionKind, Group, IntegerPredicate, IterationNumber, Node, Op};
use twill_codegen::ir::{VariableId, any, visit};
use twill_triton::mlir::Type;

/// The same where no divisor is 0.
pub(super) fn without_zeros(value: &Expression) -> Expression {
    let mut value = value.clone();
    let ExpressionKind::Apply { operation, operands } = &mut value.kind else {
        match &mut value.kind {
            ExpressionKind::Broadcast(x) | ExpressionKind::ExpandDims(_, x) | ExpressionKind::Transpose(_, x) => {
                **x = without_zeros(x);
            }
            _ => {}
        }
        return value;
    };
    operands.iter_mut().for_each(|operand| *operand = without_zeros(operand));
    if divides(operation)
        && let [_, by] = operands.as_mut_slice()
        && !is_constant(by)
    {
        let number = |n: i128| Expression {
            kind: ExpressionKind::Broadcast(Box::new(Expression {
                element: by.element.clone(),
                ..Expression::integer(n)
            })),
            ..by.clone()
        };
        let is_zero = Expression::apply(Elementwise::CmpI(IntegerPredicate::Eq), vec![by.clone(), number(0)]);
        let is_zero = Expression { element: Type::Integer(1), ..is_zero };
        let kind =
            ExpressionKind::Apply { operation: Elementwise::Select, operands: vec![is_zero, number(1), by.clone()] };
        *by = Expression { kind, ..by.clone() };
    }
    value
}

fn divides(operation: &Elementwise) -> bool {
    matches!(operation, Elementwise::DivSI | Elementwise::RemSI | Elementwise::DivUI | Elementwise::RemUI)
}

/// A tile that is the same in every iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Invariant {
    /// A quotient or remainder by what is no constant.
    Quotient,
    /// Of rows or columns that have a name: they may have to come to other threads.
    Vector,
}

/// Lines that go ahead of a loop while its body is written.
pub(super) struct Ahead {
    /// The loop's number.
    index: usize,
    /// What the body makes.
    made: HashSet<VariableId>,
    /// Names and what they are.
    lines: Vec<(String, String)>,
    /// Names that mean something else, or are of loops before.
    taken: HashSet<String>,
    /// One of them is being written: in it, quotients alone have names of their own.
    is_within: bool,
}

impl Ahead {
    /// For the body of a loop; none for groups that compute, whose registers are full.
    pub fn of(group: &Group, index: usize, body: &[Node], taken: &HashSet<String>) -> Option<Ahead> {
        let computes = |op: &Op| matches!(op, Op::Wgmma { .. } | Op::Tcgen05Mma(_));
        if any(&group.body, computes) || !any(body, |op| matches!(op, Op::CpAsync { .. } | Op::LocalStore { .. })) {
            return None;
        }
        let mut made = HashSet::new();
        visit(body, &mut |op| match op {
            Op::Let { to, .. } | Op::Copy { to, .. } => {
                made.insert(*to);
            }
            Op::Opaque { results, .. } => made.extend(results),
            _ => {}
        });
        Some(Ahead { index, made, lines: Vec::new(), taken: taken.clone(), is_within: false })
    }

    /// What a tile is that goes ahead.
    pub fn takes(&self, value: &Expression) -> Option<Invariant> {
        let invariant = if is_quotient(value) {
            Invariant::Quotient
        } else if !self.is_within && is_vector(value) && reads_tile(value) {
            Invariant::Vector
        } else {
            return None;
        };
        self.is_invariant(value).then_some(invariant)
    }

    /// The same while one of them is written.
    pub fn within(self, is_within: bool) -> Ahead {
        Ahead { is_within, ..self }
    }

    fn is_invariant(&self, value: &Expression) -> bool {
        let mut varies = false;
        value.walk(&mut |e| {
            varies |= match &e.kind {
                ExpressionKind::Variable(id) => self.made.contains(id),
                ExpressionKind::Iteration(IterationNumber { index, .. }) => *index == self.index,
                ExpressionKind::UnknownZero
                | ExpressionKind::Load { .. }
                | ExpressionKind::FromShared(_)
                | ExpressionKind::FromTensor(_) => true,
                _ => false,
            };
        });
        !varies
    }

    /// The name of what this text computes.
    pub fn name(&mut self, text: String) -> String {
        if let Some((name, _)) = self.lines.iter().find(|(_, known)| *known == text) {
            return name.clone();
        }
        let names = (0..).map(|k| format!("invariant_{k}"));
        let name = names.into_iter().find(|name| !self.taken.contains(name)).unwrap_or_default();
        self.taken.insert(name.clone());
        self.lines.push((name.clone(), text));
        name
    }

    /// The lines, in the order in which they are needed.
    pub fn into_lines(self) -> Vec<(String, String)> {
        self.lines
    }
}

fn is_quotient(value: &Expression) -> bool {
    let ExpressionKind::Apply { operation, operands } = &value.kind else { return false };
    divides(operation) && operands.get(1).is_some_and(|by| !is_constant(by))
}

/// Whether a tile extends along one dimension alone: a thread has few of its elements.
fn is_vector(value: &Expression) -> bool {
    value.shape.iter().filter(|&&extent| extent > 1).count() == 1
}

/// Whether a tile has something of another one that has a name.
fn reads_tile(value: &Expression) -> bool {
    let mut reads = false;
    value.walk(&mut |e| reads |= matches!(e.kind, ExpressionKind::Variable(_)) && !e.shape.is_empty());
    reads
}

fn is_constant(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Broadcast(x) => is_constant(x),
        ExpressionKind::Integer(_) => true,
        _ => false,
    }
}
