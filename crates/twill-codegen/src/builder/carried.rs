//! Values that a loop carries: tiles that it makes, and pointers and indices that go on by the same amount.

use crate::builder::group::shifted;
use crate::builder::reader::Reader;
use crate::builder::source::LoopFacts;
use crate::error::Error;
use crate::ir::Elementwise;
use crate::ir::Region;
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use crate::passes::steps::program::Iteration;
use twill_triton::mlir::{Module, Type, ValueId};

impl Reader<'_, '_> {
    /// What a carried value is in an iteration.
    pub(crate) fn carried(
        &mut self,
        index: usize,
        k: usize,
        iteration: Iteration,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        let module = self.lowering.module;
        let parts = self.lowering.loops[index].parts;
        let (argument, yielded) = (parts.carried[k], parts.yielded[k]);
        if let Some(producers) = self.lowering.loops[index].producers.get(&yielded) {
            if producers.iter().any(|p| self.lowering.loops[index].is_load(p.op)) {
                return Err(self.lowering.unsupported(
                    parts.operation,
                    "a loaded tile that the loop carries to its next iteration",
                    "load it in the iteration that reads it",
                ));
            }
            return self.made(index, yielded, region, program, shifted(iteration, -1));
        }
        if yielded == argument || yielded == parts.initial[k] {
            return self.value(parts.initial[k], region, program, None);
        }
        let Some((id, amount)) = self.steady_amount(index, k) else {
            return self.recurrent(index, k, iteration, region);
        };
        // A pointer or an index that goes on by the same amount: counted from the first iteration.
        let operation = module.operation(id);
        let first = self.value(parts.initial[k], region, program, None)?;
        let amount = self.value(amount, region, program, Some((index, iteration)))?;
        let number = Expression {
            kind: ExpressionKind::Iteration(IterationNumber { index, iteration }),
            shape: Vec::new(),
            element: Type::Integer(32),
        };
        let times = |amount: Expression, number: Expression| match amount.kind {
            _ if is_single(&amount) => {
                let (scalar, shape, element) = (unspread(amount.clone()), amount.shape.clone(), amount.element);
                let product = Expression::scalar(Elementwise::MulI, number, scalar);
                if shape.is_empty() {
                    product
                } else {
                    Expression { kind: ExpressionKind::Broadcast(Box::new(product)), shape, element }
                }
            }
            _ => Expression::apply(Elementwise::MulI, vec![amount, number]),
        };
        // Addresses have more bits than indices.
        let wide = |number: Expression| Expression {
            kind: ExpressionKind::Apply { operation: Elementwise::ExtSI, operands: vec![number] },
            shape: Vec::new(),
            element: Type::Integer(64),
        };
        let number = if operation.name == "tt.addptr" { wide(number) } else { number };
        let ahead = times(amount, number);
        let adds = if operation.name == "tt.addptr" { Elementwise::AddPtr } else { Elementwise::AddI };
        Ok(Expression::apply(adds, vec![first, ahead]))
    }

    /// Whether a value of a loop's body is the same in all iterations.
    pub fn is_invariant(&self, index: usize, value: ValueId) -> bool {
        if self.lowering.loop_of(value) != Some(index) {
            return true;
        }
        match self.lowering.module.defining_operation(value) {
            None => false,
            Some(id) => {
                let operation = self.lowering.module.operation(id);
                let pure = crate::builder::views::is_view(&operation.name) || Elementwise::is_known(&operation.name);
                pure && operation.operands.iter().all(|v| self.is_invariant(index, *v))
            }
        }
    }
}

/// Whether two carried values are the same from the second iteration on, but not in the first: one variable holds both.
pub(crate) fn begin_differently(module: &Module, facts: &LoopFacts<'_>) -> bool {
    let parts = &facts.parts;
    let used = |k: usize| [parts.carried[k], parts.results[k]].iter().any(|v| !module.uses(*v).is_empty());
    let constant = |value: ValueId| module.constant(value);
    let alike = |a: ValueId, b: ValueId| a == b || (constant(a).is_some() && constant(a) == constant(b));
    let made: Vec<usize> =
        (0..parts.carried.len()).filter(|k| used(*k) && facts.producers.contains_key(&parts.yielded[*k])).collect();
    made.iter().any(|a| {
        made.iter().any(|b| parts.yielded[*a] == parts.yielded[*b] && !alike(parts.initial[*a], parts.initial[*b]))
    })
}

/// Whether all elements are one scalar.
fn is_single(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Broadcast(inner) => is_single(inner),
        ExpressionKind::Integer(_) => true,
        _ => expression.shape.is_empty(),
    }
}

/// The scalar that is the same in all elements.
fn unspread(expression: Expression) -> Expression {
    match expression.kind {
        ExpressionKind::Broadcast(inner) => unspread(*inner),
        kind => Expression { kind, shape: Vec::new(), element: expression.element },
    }
}
