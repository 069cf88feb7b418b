//! What a warp group computes, as trees over the operations of the TTIR, cut to the part that it owns.

use super::elementwise::Elementwise;
use crate::ir::{Slot, VariableId};
use twill_triton::mlir::Type;

/// Threads that share a row.
pub const PARTIALS: u64 = 4;

/// A value of a tile or scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Extents; none for a scalar.
    pub shape: Vec<u64>,
    /// Type of an element.
    pub element: Type,
}

/// The number of an iteration of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IterationNumber {
    /// The loop.
    pub index: usize,
    /// Which.
    pub iteration: crate::passes::steps::program::Iteration,
}

/// How an expression is made.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A variable of the group.
    Variable(VariableId),
    /// A parameter of the kernel, by name.
    Parameter(String),
    /// `tl.program_id`; of the instance-th program of those that share the CTA.
    ProgramId {
        /// The axis of the grid.
        axis: u32,
        /// Which of the programs.
        instance: Option<u32>,
    },
    /// `tl.num_programs`.
    ProgramCount(u32),
    /// The number of an iteration, from 0.
    Iteration(IterationNumber),
    /// An integer or boolean constant, in every element.
    Integer(i128),
    /// The number 0, which compilers are not told: what is computed with it is computed where it stands, and held no longer.
    UnknownZero,
    /// A floating-point constant, in every element.
    Float(f64),
    /// `start, start + 1, …, end - 1`.
    Range(u64, u64),
    /// Element by element.
    Apply {
        /// Such as `arith.addf`.
        operation: Elementwise,
        /// Its operands.
        operands: Vec<Expression>,
    },
    /// The same value in all elements of the shape, or along dimensions of extent 1.
    Broadcast(Box<Expression>),
    /// A dimension of extent 1 put in.
    ExpandDims(usize, Box<Expression>),
    /// Dimension `d` is dimension `order[d]` of the operand.
    Transpose(Vec<usize>, Box<Expression>),
    /// Elements along an axis combined by this operation of the TTIR.
    Reduce {
        /// The axis.
        axis: usize,
        /// Such as `arith.addf`.
        combine: Elementwise,
        /// What is reduced.
        operand: Box<Expression>,
    },
    /// Columns of a tile from this one on, as many as the shape has.
    Columns(u64, Box<Expression>),
    /// Row sums of a tile, each thread's share of a row by itself (see `sums`).
    PartialSums(Box<Expression>),
    /// A load through pointers.
    Load {
        /// The pointers.
        pointers: Box<Expression>,
        /// Where to load.
        mask: Option<Box<Expression>>,
        /// What stands elsewhere.
        other: Option<Box<Expression>>,
    },
    /// A tile in shared memory, read into registers.
    FromShared(Slot),
    /// A tile in tensor memory, read into registers.
    FromTensor(Slot),
}

impl Expression {
    /// An integer of 32 bits.
    pub fn integer(value: i128) -> Expression {
        Expression { kind: ExpressionKind::Integer(value), shape: Vec::new(), element: Type::Integer(32) }
    }

    /// A tile of zeros.
    pub fn zeros(shape: &[u64], element: &Type) -> Expression {
        let kind = match element {
            Type::Float(_) => ExpressionKind::Float(0.0),
            _ => ExpressionKind::Integer(0),
        };
        Expression { kind, shape: shape.to_vec(), element: element.clone() }
    }

    /// Element by element, with the shape and the type of its first operand.
    pub fn apply(operation: Elementwise, operands: Vec<Expression>) -> Expression {
        let (shape, element) =
            operands.first().map_or((Vec::new(), Type::Integer(32)), |o| (o.shape.clone(), o.element.clone()));
        Expression { kind: ExpressionKind::Apply { operation, operands }, shape, element }
    }

    /// A scalar operation on integers of 32 bits, folded where a constant makes it trivial.
    pub fn scalar(operation: Elementwise, left: Expression, right: Expression) -> Expression {
        use Elementwise::{AddI, DivSI, MulI, SubI};
        use ExpressionKind::Integer;
        match (&operation, &left.kind, &right.kind) {
            (AddI, Integer(0), _) => return right,
            (AddI | SubI, _, Integer(0)) | (MulI | DivSI, _, Integer(1)) => return left,
            (MulI, Integer(1), _) => return right,
            (AddI, Integer(a), Integer(b)) => return Expression::integer(a + b),
            (SubI, Integer(a), Integer(b)) => return Expression::integer(a - b),
            (MulI, Integer(a), Integer(b)) => return Expression::integer(a * b),
            _ => {}
        }
        Expression::apply(operation, vec![left, right])
    }

    /// Without sums with 0, as the first iteration has them: a compiler folds them too, and forgets what is said of the sum.
    pub fn without_zeros(self) -> Expression {
        let Expression { kind, shape, element } = self;
        let inner = |x: Box<Expression>| Box::new(x.without_zeros());
        let kind = match kind {
            ExpressionKind::Apply { operation, operands } => {
                let mut operands: Vec<Expression> = operands.into_iter().map(Expression::without_zeros).collect();
                match (&operation, operands.as_slice()) {
                    (Elementwise::AddI | Elementwise::AddPtr, [_, right]) if right.is_zero() => {
                        return operands.remove(0);
                    }
                    (Elementwise::AddI, [left, _]) if left.is_zero() => return operands.remove(1),
                    _ => ExpressionKind::Apply { operation, operands },
                }
            }
            ExpressionKind::Broadcast(x) => ExpressionKind::Broadcast(inner(x)),
            ExpressionKind::ExpandDims(axis, x) => ExpressionKind::ExpandDims(axis, inner(x)),
            other => other,
        };
        Expression { kind, shape, element }
    }

    /// Whether all elements are 0, as far as constants say so.
    fn is_zero(&self) -> bool {
        match &self.kind {
            ExpressionKind::Integer(n) => *n == 0,
            ExpressionKind::Iteration(number) => {
                number.iteration == crate::passes::steps::program::Iteration::Absolute(0)
            }
            ExpressionKind::Broadcast(x) | ExpressionKind::ExpandDims(_, x) => x.is_zero(),
            ExpressionKind::Apply { operation, operands } => match operation {
                Elementwise::MulI => operands.iter().any(Expression::is_zero),
                Elementwise::ExtSI | Elementwise::ExtUI | Elementwise::AddI => operands.iter().all(Expression::is_zero),
                _ => false,
            },
            _ => false,
        }
    }

    /// A tile of two dimensions with its rows and columns changed in what it is made of; a scalar is as it was.
    pub fn turned(self) -> Expression {
        let Expression { kind, mut shape, element } = self;
        if shape.len() != 2 {
            return Expression { kind, shape, element };
        }
        let turn = |x: Box<Expression>| Box::new(x.turned());
        let kind = match kind {
            ExpressionKind::Apply { operation, operands } => {
                ExpressionKind::Apply { operation, operands: operands.into_iter().map(Expression::turned).collect() }
            }
            ExpressionKind::Broadcast(x) => ExpressionKind::Broadcast(turn(x)),
            ExpressionKind::ExpandDims(axis, x) => ExpressionKind::ExpandDims(1 - axis.min(1), x),
            ExpressionKind::Load { pointers, mask, other } => {
                ExpressionKind::Load { pointers: turn(pointers), mask: mask.map(turn), other: other.map(turn) }
            }
            ExpressionKind::Transpose(order, x) if order == [1, 0] => return *x,
            kind @ (ExpressionKind::Integer(_) | ExpressionKind::Float(_)) => kind,
            other => {
                let whole = Expression { kind: other, shape: shape.clone(), element: element.clone() };
                ExpressionKind::Transpose(vec![1, 0], Box::new(whole))
            }
        };
        shape.reverse();
        Expression { kind, shape, element }
    }

    /// The same with `zero` added to all ranges, but for those along dimension `except` of a tile of two; also in what variables are
    /// made of, where `definition` says that.
    pub fn with_ranges_from(
        self,
        zero: &Expression,
        except: Option<usize>,
        definition: &dyn Fn(VariableId) -> Option<Expression>,
    ) -> Expression {
        let Expression { kind, shape, element } = self;
        let inner = |x: Expression| x.with_ranges_from(zero, except, definition);
        let kind = match kind {
            ExpressionKind::Range(..) => {
                let range = Expression { kind, shape: shape.clone(), element: element.clone() };
                let (kind, shape) = (ExpressionKind::Broadcast(Box::new(zero.clone())), shape.clone());
                let start = Expression { kind, shape, element: element.clone() };
                ExpressionKind::Apply { operation: Elementwise::AddI, operands: vec![range, start] }
            }
            ExpressionKind::Variable(id) => match definition(id) {
                Some(value) => return inner(value),
                None => ExpressionKind::Variable(id),
            },
            ExpressionKind::Apply { operation, operands } => {
                ExpressionKind::Apply { operation, operands: operands.into_iter().map(inner).collect() }
            }
            ExpressionKind::ExpandDims(axis, x) if except == Some(1 - axis.min(1)) => {
                ExpressionKind::ExpandDims(axis, x)
            }
            ExpressionKind::Broadcast(x) => ExpressionKind::Broadcast(Box::new(inner(*x))),
            ExpressionKind::ExpandDims(axis, x) => ExpressionKind::ExpandDims(axis, Box::new(inner(*x))),
            other => other,
        };
        Expression { kind, shape, element }
    }

    /// Visits it and all that it is made of.
    pub fn walk(&self, visit: &mut impl FnMut(&Expression)) {
        visit(self);
        match &self.kind {
            ExpressionKind::Apply { operands, .. } => operands.iter().for_each(|o| o.walk(visit)),
            ExpressionKind::Broadcast(x)
            | ExpressionKind::ExpandDims(_, x)
            | ExpressionKind::Transpose(_, x)
            | ExpressionKind::Columns(_, x) => x.walk(visit),
            ExpressionKind::Reduce { operand, .. } | ExpressionKind::PartialSums(operand) => operand.walk(visit),
            ExpressionKind::Load { pointers, mask, other } => {
                pointers.walk(visit);
                mask.iter().chain(other).for_each(|x| x.walk(visit));
            }
            _ => {}
        }
    }
}
