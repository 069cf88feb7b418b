//! Which variables a loop surely changes from iteration to iteration.
//!
//! `ptxas` before 13.1 gives the registers of a left operand that a loop does not change to another operand in that loop
//! (`bench.random_programs`, seed 1213); compilers before it move what is computed of such values out of the loop. So a left operand
//! stays in registers only where it surely changes.

use std::collections::HashSet;
use twill_codegen::ir::{Expression, ExpressionKind, Node, Op, VariableId, visit};

/// The variables of a loop's body that surely have other values in the next iteration: what is loaded or multiplied there, counts
/// iterations or goes on from one to the next, and what is computed of these.
pub(super) fn changing(body: &[Node], induction: Option<VariableId>) -> HashSet<VariableId> {
    let mut found: HashSet<VariableId> = induction.into_iter().collect();
    loop {
        let before = found.len();
        visit(body, &mut |op| match op {
            Op::Copy { to, .. } => {
                found.insert(*to);
            }
            Op::Let { to, value } if is_changing(value, &found) => {
                found.insert(*to);
            }
            Op::Opaque { operation, operands, results } => {
                let is_new = ["dot", "load", "atomic"].iter().any(|word| operation.name.contains(word));
                if is_new || operands.iter().any(|operand| is_changing(operand, &found)) {
                    found.extend(results);
                }
            }
            _ => {}
        });
        if found.len() == before {
            return found;
        }
    }
}

/// Whether an expression has another value where these variables have others.
pub(super) fn is_changing(value: &Expression, changing: &HashSet<VariableId>) -> bool {
    let mut is = false;
    value.walk(&mut |part| {
        is |= match &part.kind {
            ExpressionKind::Variable(id) => changing.contains(id),
            ExpressionKind::Load { .. } | ExpressionKind::FromShared(_) | ExpressionKind::Iteration(_) => true,
            _ => false,
        }
    });
    is
}
