//! Values that a loop carries and that are neither tiles of the schedule nor go on by the same amount: each group that reads one
//! computes it anew in every iteration, in variables of its own.
//!
//! The newest variable holds the value of the newest iteration that the group has asked for, older ones those of iterations before.
//! Where the loop begins and ends, the newest is of the same iteration, counted from the loop's variable.

use crate::builder::group::{iterations_before, shifted};
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::ir::{Expression, Form, Node, Note, Op, Region, VariableId, names};
use crate::passes::steps::program::Iteration;
use twill_triton::mlir::ValueId;

/// A part of a carried value.
pub(crate) type RecurrenceKey = (usize, usize, Region);

/// A carried value that a group computes.
#[derive(Clone, Debug)]
pub(crate) struct Recurrence {
    /// The loop, the position among what it carries, and the part of it.
    pub key: RecurrenceKey,
    /// The newest value, then older ones.
    variables: Vec<VariableId>,
    /// Of which iteration the newest is.
    pub latest: Option<Iteration>,
}

impl Reader<'_, '_> {
    /// Whether a carried value has to be computed in every iteration.
    pub fn is_recurrent(&self, index: usize, k: usize) -> bool {
        let facts = &self.lowering.loops[index];
        let (argument, yielded) = (facts.parts.carried[k], facts.parts.yielded[k]);
        !facts.producers.contains_key(&yielded)
            && yielded != argument
            && yielded != facts.parts.initial[k]
            && self.steady_amount(index, k).is_none()
    }

    /// The amount that a carried value goes on by, where that is the same in all iterations.
    pub fn steady_amount(&self, index: usize, k: usize) -> Option<(twill_triton::mlir::OperationId, ValueId)> {
        let module = self.lowering.module;
        let parts = self.lowering.loops[index].parts;
        let yielded = parts.yielded[k];
        if self.lowering.loop_of(yielded) != Some(index) {
            return None;
        }
        let id = module.defining_operation(yielded)?;
        let operation = module.operation(id);
        let [from, amount] = operation.operands.as_slice() else { return None };
        let steady = self.lowering.loop_of(*amount) != Some(index) || self.is_invariant(index, *amount);
        let adds = matches!(operation.name.as_str(), "tt.addptr" | "arith.addi");
        (*from == parts.carried[k] && steady && adds).then_some((id, *amount))
    }

    /// A value that has to be computed, in an iteration. What the group did not know that it needs is noted.
    pub fn recurrent(
        &mut self,
        index: usize,
        k: usize,
        iteration: Iteration,
        region: &Region,
    ) -> Result<Expression, Error> {
        let key = (index, k, region.clone());
        let Some(number) = self.group.recurrences.iter().position(|r| r.key == key) else {
            if let Some(missing) = &mut self.group.missing {
                missing.push(key);
                return self.value(self.lowering.loops[index].parts.initial[k], region, None, None);
            }
            return Err(self.unknown_recurrence(index));
        };
        let recurrence = &self.group.recurrences[number];
        let age = recurrence.latest.and_then(|latest| iterations_before(iteration, latest));
        let Some(age) = age else { return Err(self.unknown_recurrence(index)) };
        for _ in age..0 {
            self.advance(number)?;
        }
        let at = usize::try_from(age.max(0)).unwrap_or(usize::MAX);
        match self.group.recurrences[number].variables.get(at).copied() {
            Some(variable) => Ok(self.group.read(variable)),
            None => Err(self.unknown_recurrence(index)),
        }
    }

    fn unknown_recurrence(&self, index: usize) -> Error {
        self.lowering.unsupported(
            self.lowering.loops[index].parts.operation,
            "a carried value of an iteration that has gone by",
            "compute it from the loop's index",
        )
    }

    /// Computes the value of the next iteration.
    pub fn advance(&mut self, number: usize) -> Result<(), Error> {
        let Recurrence { key: (index, k, region), variables, latest } = self.group.recurrences[number].clone();
        let Some(latest) = latest else { return Err(self.unknown_recurrence(index)) };
        let yielded = self.lowering.loops[index].parts.yielded[k];
        let note = std::mem::take(&mut self.group.note);
        let value = self.value(yielded, &region, None, Some((index, latest)))?;
        for age in (1..variables.len()).rev() {
            self.group.act(Op::Copy { to: variables[age], from: variables[age - 1] });
        }
        self.group.act(Op::Let { to: variables[0], value });
        self.group.note = note;
        self.group.recurrences[number].latest = Some(shifted(latest, 1));
        Ok(())
    }

    /// Computes the values of a loop up to those of an iteration.
    pub fn advance_to(&mut self, number: usize, iteration: Iteration) -> Result<(), Error> {
        let latest = self.group.recurrences[number].latest;
        let missing = latest.and_then(|latest| iterations_before(latest, iteration)).unwrap_or(0);
        (0..missing).try_for_each(|_| self.advance(number))
    }

    /// Begins to compute a value before its loop: that of its first iteration. `held`: how many iterations are read at a time.
    pub fn begin_recurrence(&mut self, key: RecurrenceKey, held: usize) -> Result<(), Error> {
        let (index, k, region) = key.clone();
        let parts = self.lowering.loops[index].parts;
        let first = self.value(parts.initial[k], &region, None, None)?;
        let wish = names::of_value(self.lowering.module, parts.carried[k]);
        let element = self.lowering.element(parts.carried[k]);
        let mut variables = Vec::new();
        for age in 0..held {
            let wish = if age == 0 { wish.clone() } else { format!("{wish}_before_{age}") };
            let to = self.group.variable(&wish, &region.extents, element.clone(), Form::Any);
            self.group.define(to, index + 1);
            let value = if age == 0 { first.clone() } else { self.group.read(variables[0]) };
            self.group.sections[index].push(Node::Op(Op::Let { to, value }, Note::default()));
            variables.push(to);
        }
        self.group.recurrences.push(Recurrence { key, variables, latest: Some(Iteration::Absolute(0)) });
        Ok(())
    }
}
