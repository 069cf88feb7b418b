//! That a warp program is well formed, as MLIR's verifier says it after each pass: what operations name is there, shapes of
//! expressions fit their operands, and loops, branches and groups are whole.

use crate::ir::{CursorId, Expression, ExpressionKind, Group, Node, Op, Operand, Slot, VariableId, WarpProgram};
use std::collections::BTreeSet;

/// Says what is wrong, with the group and the operation.
///
/// # Errors
/// The first defect that is found.
pub fn well_formed(program: &WarpProgram) -> Result<(), String> {
    for group in &program.groups {
        let scope = Scope { program, group };
        let trips = group.trips.len();
        require(trips == program.loops.len(), || format!("{}: trip counts of {trips} loops", group.name))?;
        let names: BTreeSet<&str> = group.variables.iter().map(|v| v.name.as_str()).collect();
        require(names.len() == group.variables.len(), || format!("{}: two variables of one name", group.name))?;
        for part in [&group.begin, &group.body, &group.end] {
            scope.nodes(part).map_err(|why| format!("{}: {why}", group.name))?;
        }
    }
    Ok(())
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// What the operations of a group may name.
struct Scope<'p> {
    program: &'p WarpProgram,
    group: &'p Group,
}

impl Scope<'_> {
    fn nodes(&self, nodes: &[Node]) -> Result<(), String> {
        for node in nodes {
            match node {
                Node::Op(op, _) => self.op(op).map_err(|why| format!("{op:?}: {why}"))?,
                Node::PipelinedLoop { index, .. } | Node::TripSwitch { index, .. } => {
                    let there = *index < self.program.loops.len() && self.group.trips.get(*index).is_some();
                    require(there, || format!("loop {index} is missing"))?;
                }
                Node::For { variable, .. } => self.variable(*variable)?,
                Node::While { .. } | Node::If { .. } | Node::Return => {}
            }
            node.expressions().into_iter().try_for_each(|e| self.expression(e))?;
            node.blocks().into_iter().try_for_each(|block| self.nodes(block))?;
        }
        Ok(())
    }

    fn op(&self, op: &Op) -> Result<(), String> {
        let program = self.program;
        let barrier = |id: &crate::ir::BarrierId| require(id.index() < program.barriers.len(), || format!("{id:?}"));
        let named =
            |id: &crate::ir::NamedBarrierId| require(id.index() < program.named_barriers.len(), || format!("{id:?}"));
        let descriptor =
            |id: &crate::ir::DescriptorId| require(id.index() < program.descriptors.len(), || format!("{id:?}"));
        let all = |list: &[Expression]| list.iter().try_for_each(|e| self.expression(e));
        match op {
            Op::Let { to, value } => {
                self.expression(value)?;
                self.variable(*to)?;
                let variable = &self.group.variables[to.index()];
                require(variable.shape == value.shape, || format!("`{}` is {:?}", variable.name, variable.shape))
            }
            Op::Copy { to, from } => {
                self.variable(*to)?;
                self.variable(*from)?;
                let (to, from) = (&self.group.variables[to.index()], &self.group.variables[from.index()]);
                require(to.shape == from.shape, || format!("`{}` and `{}` differ in shape", to.name, from.name))
            }
            Op::Wgmma { to, left, right, accumulator } => {
                self.operand(left)?;
                self.operand(right)?;
                [Some(*to), *accumulator].into_iter().flatten().try_for_each(|v| self.variable(v))
            }
            Op::Tcgen05Mma(mma) => {
                [&mma.left, &mma.right, &mma.to].into_iter().try_for_each(|slot| self.slot(slot))?;
                mma.signals.iter().try_for_each(|(b, at)| barrier(b).and_then(|()| self.cursor(*at)))
            }
            Op::Tcgen05Commit(signals) => {
                signals.iter().try_for_each(|(b, at)| barrier(b).and_then(|()| self.cursor(*at)))
            }
            Op::WgmmaInit(variable) => self.variable(*variable),
            Op::WgmmaWait { completed, in_flight, .. } => {
                completed.iter().chain(in_flight).try_for_each(|v| self.variable(*v))
            }
            Op::TmaLoad { descriptor: from, coordinates, to, full } => {
                descriptor(from)?;
                all(coordinates)?;
                self.slot(to)?;
                barrier(full)
            }
            Op::CpAsync { pointers, mask, whole, to, full, .. } => {
                self.expression(pointers)?;
                all(mask.as_slice())?;
                if let Some(whole) = whole {
                    descriptor(&whole.descriptor)?;
                    self.expression(&whole.condition)?;
                    all(&whole.coordinates)?;
                }
                self.slot(to)?;
                full.as_ref().map_or(Ok(()), barrier)
            }
            Op::LocalStore { value, to } => self.expression(value).and_then(|()| self.slot(to)),
            Op::TmaStore { descriptor: to, coordinates, from, .. } => {
                descriptor(to)?;
                all(coordinates)?;
                self.slot(from)
            }
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                self.expression(pointers)?;
                self.expression(value)?;
                all(mask.as_slice())
            }
            Op::MbarrierWait { barrier: id, at, .. } | Op::MbarrierArrive { barrier: id, at } => {
                barrier(id).and_then(|()| self.cursor(*at))
            }
            Op::AdvanceCursor(cursor) => self.cursor(*cursor),
            Op::CopyCursor { to, from } => self.cursor(*to).and_then(|()| self.cursor(*from)),
            Op::NamedBarrierSync(id) | Op::NamedBarrierArrive(id) => named(id),
            Op::Opaque { operands, results, .. } => {
                all(operands)?;
                results.iter().try_for_each(|v| self.variable(*v))
            }
            Op::CpAsyncCommit
            | Op::CpAsyncWait(_)
            | Op::FenceProxyAsync
            | Op::GroupSync
            | Op::TmaStoreWait(_)
            | Op::Timestamp(_) => Ok(()),
        }
    }

    fn variable(&self, id: VariableId) -> Result<(), String> {
        require(id.index() < self.group.variables.len(), || format!("{id:?} is missing"))
    }

    fn cursor(&self, id: CursorId) -> Result<(), String> {
        require(id.index() < self.group.cursors.len(), || format!("{id:?} is missing"))
    }

    fn operand(&self, operand: &Operand) -> Result<(), String> {
        match operand {
            Operand::Shared(slot) => self.slot(slot),
            Operand::Registers(variable) => self.variable(*variable),
        }
    }

    fn slot(&self, slot: &Slot) -> Result<(), String> {
        let buffer = self.program.buffers.get(slot.buffer.index());
        let buffer = buffer.ok_or_else(|| format!("{:?} is missing", slot.buffer))?;
        slot.at.into_iter().try_for_each(|at| self.cursor(at))?;
        let fits =
            slot.slice.is_none_or(|(d, first, extent)| buffer.shape.get(d).is_some_and(|n| first + extent <= *n));
        require(fits, || format!("{:?} is no part of `{}`, {:?}", slot.slice, buffer.name, buffer.shape))
    }

    fn expression(&self, expression: &Expression) -> Result<(), String> {
        let mut found = Ok(());
        expression.walk(&mut |e| {
            if found.is_ok() {
                found = self.itself(e);
            }
        });
        found
    }

    /// An expression but for those in it.
    fn itself(&self, e: &Expression) -> Result<(), String> {
        let shape = &e.shape;
        match &e.kind {
            ExpressionKind::Variable(id) => {
                self.variable(*id)?;
                let variable = &self.group.variables[id.index()];
                require(variable.shape == *shape, || format!("`{}` is read as {shape:?}", variable.name))
            }
            ExpressionKind::FromShared(slot) | ExpressionKind::FromTensor(slot) => self.slot(slot),
            ExpressionKind::Range(first, end) => {
                require(*shape == [end - first], || format!("numbers from {first} to {end} as {shape:?}"))
            }
            ExpressionKind::Apply { operation, operands } => {
                let wrong = operands.iter().find(|o| !o.shape.is_empty() && o.shape != *shape);
                require(wrong.is_none(), || format!("{operation:?} of {:?} as {shape:?}", wrong.map(|o| &o.shape)))
            }
            ExpressionKind::ExpandDims(axis, x) => {
                let mut expected = x.shape.clone();
                expected.insert((*axis).min(expected.len()), 1);
                require(expected == *shape, || format!("{:?} with dimension {axis} as {shape:?}", x.shape))
            }
            ExpressionKind::Transpose(order, x) => {
                let expected: Option<Vec<u64>> = order.iter().map(|d| x.shape.get(*d).copied()).collect();
                require(expected.as_ref() == Some(shape), || format!("{:?} by {order:?} as {shape:?}", x.shape))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::BarrierId;

    const SUM: &str = "warp_program sum {
  parameter n : i32 {divisible_by_16}
  tiles linear {cta_coarsening = [1, 1, 1]}
  group compute_0 {id = 0, warps = 4, registers = 168} {
    variable %i [] : i32
    variable %sum [] : i32
    begin {
    }
    body {
      let %sum = integer(0) : [] i32
      for %i = integer(0) : [] i32 to parameter n : [] i32 step integer(1) : [] i32 {
        let %sum = arith.addi(%sum : [] i32, %i : [] i32) : [] i32
      }
    }
    end {
    }
  }
}
";

    fn changed(change: impl FnOnce(&mut Group)) -> Result<(), String> {
        let mut program: WarpProgram = SUM.parse().map_err(|e: crate::ir::ReadError| e.to_string())?;
        change(&mut program.groups[0]);
        well_formed(&program)
    }

    #[test]
    fn defects_are_found_with_their_group() {
        assert_eq!(changed(|_| ()), Ok(()));
        let why = |change: fn(&mut Group)| changed(change).err().unwrap_or_default();
        assert!(
            why(|g| g.body.push(Node::Op(Op::Copy { to: VariableId(2), from: VariableId(0) }, Default::default())))
                .contains("VariableId(2) is missing")
        );
        let arrive = |g: &mut Group| {
            g.end.push(Node::Op(Op::MbarrierArrive { barrier: BarrierId(0), at: CursorId(0) }, Default::default()));
        };
        assert!(why(arrive).starts_with("compute_0: MbarrierArrive"));
        assert!(why(|g| g.variables[1].shape = vec![64]).contains("`sum` is [64]"));
        assert!(why(|g| g.variables[1].name = "i".into()).contains("two variables of one name"));
        assert!(
            why(|g| g.body.push(Node::PipelinedLoop { index: 0, first: 0, body: Vec::new() }))
                .contains("loop 0 is missing")
        );
    }
}
