//! Expressions over what a group holds.

use super::machine::Machine;
use super::storage::At;
use super::units::Held;
use crate::fault::Fault;
use crate::value::{Combine, Data, Elementwise, Tile, apply, partials, reduce};
use std::rc::Rc;
use twill_codegen::Iteration;
use twill_codegen::ir::{Expression, ExpressionKind, IterationNumber};
use twill_codegen::ir::{Slot, VariableId};

/// Extents as positions.
pub(super) fn extents(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|e| *e as usize).collect()
}

impl Machine<'_, '_> {
    /// Where a slot is for a group, now.
    pub(super) fn at(&self, g: usize, slot: &Slot) -> At {
        At {
            buffer: slot.buffer.index(),
            slot: slot.at.map_or(0, |cursor| self.groups[g].cursors[cursor.index()].slot as usize),
            slice: slot.slice.map(|(d, start, extent)| (d, start as usize, extent as usize)),
            transposed: slot.transposed,
        }
    }

    /// The value of a variable for a group's threads.
    pub(super) fn variable(&self, g: usize, id: VariableId) -> Result<Rc<Tile>, Fault> {
        let group = &self.groups[g];
        let name = || group.group.variables.get(id.index()).map_or_else(String::new, |v| v.name.clone());
        match group.variables.get(id.index()) {
            Some(Some(Held::Tile(tile))) => Ok(tile.clone()),
            Some(Some(Held::InFlight(_))) => {
                Err(Fault::NotWaitedFor { group: group.group.name.clone(), variable: name() })
            }
            _ => Err(Fault::Undefined { what: format!("{} in {}", name(), group.group.name) }),
        }
    }

    /// The trip count of a loop, as a group holds it.
    pub(super) fn trips(&self, g: usize, index: usize) -> Result<i64, Fault> {
        let Some(variable) = self.groups[g].group.trips.get(index).copied().flatten() else { return Ok(0) };
        self.variable(g, variable)?.as_integer().ok_or_else(|| Fault::Shapes { what: "a trip count".into() })
    }

    /// The number of an iteration.
    pub(super) fn iteration(&self, g: usize, number: IterationNumber) -> Result<i64, Fault> {
        match number.iteration {
            Iteration::Absolute(n) => Ok(n),
            Iteration::End(n) => Ok(self.trips(g, number.index)? + n),
            Iteration::Current(n) => {
                let current = self.groups[g].iteration;
                current.map(|i| i + n).ok_or_else(|| Fault::Undefined { what: "the iteration around".into() })
            }
        }
    }

    /// A number.
    pub(super) fn integer(&self, g: usize, value: &Expression) -> Result<i64, Fault> {
        self.evaluate(g, value)?.as_integer().ok_or_else(|| Fault::Shapes { what: "a number".into() })
    }

    /// A tile or number.
    pub(super) fn evaluate(&self, g: usize, value: &Expression) -> Result<Rc<Tile>, Fault> {
        let shape = extents(&value.shape);
        let (element, arithmetic) = (&value.element, self.launch.arithmetic);
        let unfit = |what: &str| Fault::Shapes { what: what.into() };
        let tile = match &value.kind {
            ExpressionKind::Variable(id) => return self.variable(g, *id),
            ExpressionKind::Parameter(name) => return self.launch.scalar(name),
            ExpressionKind::ProgramId { axis, instance } => {
                Tile::integer(self.program_id(g, *axis as usize, *instance))
            }
            ExpressionKind::ProgramCount(axis) => {
                Tile::integer(i64::from(self.launch.grid.get(*axis as usize).copied().unwrap_or(1)))
            }
            ExpressionKind::Iteration(number) => Tile::integer(self.iteration(g, *number)?),
            ExpressionKind::UnknownZero => Tile::integer(0),
            ExpressionKind::Integer(n) => {
                let n = i64::try_from(*n).map_err(|_| unfit("a constant"))?;
                Tile::full(&shape, &Data::Integers(vec![n]))
            }
            ExpressionKind::Float(x) => Tile::full(&shape, &Data::Floats(vec![arithmetic.round(*x, element)])),
            ExpressionKind::Range(start, end) => Tile::range(*start as i64, end.saturating_sub(*start) as usize),
            ExpressionKind::Apply { operation, operands } => {
                let tiles: Result<Vec<Rc<Tile>>, Fault> = operands.iter().map(|o| self.evaluate(g, o)).collect();
                let from = operands.first().map_or(element, |o| &o.element);
                let (operation, predicate) = (operation.name(), operation.predicate());
                let (shape, divides_by_zero) = (&shape, true);
                let one = Elementwise { operation, predicate, shape, element, from, arithmetic, divides_by_zero };
                apply(one, &tiles?)?
            }
            ExpressionKind::Broadcast(x) => {
                self.evaluate(g, x)?.broadcast(&shape).ok_or_else(|| unfit("a broadcast"))?
            }
            ExpressionKind::ExpandDims(_, x) => {
                self.evaluate(g, x)?.reshape(shape).ok_or_else(|| unfit("an expansion"))?
            }
            ExpressionKind::Transpose(order, x) => {
                self.evaluate(g, x)?.transpose(order).ok_or_else(|| unfit("a transposition"))?
            }
            ExpressionKind::Columns(start, x) => {
                let extent = value.shape.get(1).copied().unwrap_or(0) as usize;
                self.evaluate(g, x)?.slice(1, *start as usize, extent).ok_or_else(|| unfit("columns"))?
            }
            ExpressionKind::Reduce { axis, combine, operand } => {
                let how = Combine::of(combine.name()).ok_or_else(|| Fault::Unknown { what: format!("`{combine}`") })?;
                reduce(&*self.evaluate(g, operand)?, *axis, how, element, arithmetic)?
            }
            ExpressionKind::PartialSums(x) => partials(&*self.evaluate(g, x)?, element, arithmetic)?,
            ExpressionKind::Load { pointers, mask, other } => {
                let pointers = self.evaluate(g, pointers)?;
                let mask = mask.as_ref().map(|m| self.evaluate(g, m)).transpose()?;
                let other = other.as_ref().map(|o| self.evaluate(g, o)).transpose()?;
                self.memory.load(&pointers, mask.as_deref(), other.as_deref(), element)?
            }
            ExpressionKind::FromShared(slot) | ExpressionKind::FromTensor(slot) => {
                let tile = self.storage.read_by_threads(&self.at(g, slot))?;
                if !value.shape.is_empty() || tile.shape.is_empty() {
                    return Ok(tile);
                }
                let unfit = || Fault::Shapes { what: "a number in shared memory".into() };
                return Ok(tile.reshape(Vec::new()).ok_or_else(unfit)?.shared());
            }
        };
        Ok(tile.shared())
    }
}
