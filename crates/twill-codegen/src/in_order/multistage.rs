//! Loops whose loads run ahead (CUTLASS, a multistage mainloop): the threads that compute start copies of tiles to rings in shared
//! memory, some iterations before they read them.
//!
//! What computes the addresses runs ahead, too, with copies of its own of what the loop carries for it. Beyond the last iteration
//! nothing is loaded: masks say so.
//!
//! ```text
//! for ahead in first iterations: copy tiles to the next slots; commit
//! for each iteration:
//!     wait for the oldest group of copies
//!     compute with the oldest slots
//!     copy tiles of a later iteration to the slots that were read in the one before; commit
//! wait for all copies
//! ```

use super::Builder;
use super::rings::{Ring, RingTile};
use super::runs_ahead::AsyncLoad;
use crate::builder::views::order;
use crate::error::Error;
use crate::ir::{
    Buffer, BufferId, Cursor, CursorId, Elementwise, Expression, ExpressionKind, IntegerPredicate, Memory, MemoryValue,
    Node, Note, Op, Slot, SlotValue, VariableId, names,
};
use std::collections::{BTreeSet, HashSet};
use twill_triton::mlir::{ForLoop, OperationId, Type, ValueId};

/// A tile that is copied ahead.
struct Copied {
    load: OperationId,
    /// Neighbours that a thread copies at once.
    elements: u64,
    /// Neighbours in memory are those along the first dimension: it is put there transposed.
    turned: bool,
    buffer: BufferId,
    /// The slots that are filled and read next.
    fill: CursorId,
    drain: CursorId,
}

/// Something that runs through a loop ahead of it: its iteration, and what it carries.
struct Runner {
    iteration: VariableId,
    /// Whether that is one of the loop's.
    within: VariableId,
    carried: Vec<VariableId>,
    yielded: Vec<ValueId>,
}

/// Loads that are made an iteration ahead, to registers.
struct Prefetch {
    /// Takes what was loaded.
    take: Vec<Node>,
    /// Loads what comes next.
    load: Vec<Node>,
    /// What was taken.
    values: Vec<(ValueId, Expression)>,
}

impl Builder<'_> {
    /// A loop whose loads run ahead; false where there are none that can.
    pub(super) fn multistage(&mut self, parts: &ForLoop<'_>, nodes: &mut Vec<Node>) -> Result<bool, Error> {
        if self.ahead.is_none() {
            return Ok(false);
        }
        let Some(plan) = self.plan(parts) else { return Ok(false) };
        let line = names::line(self.module, parts.operation);
        let op = |op| Node::Op(op, Note { line, ..Note::default() });
        let [lower, upper, step] = [parts.lower, parts.upper, parts.step].map(|v| self.value(v));
        let (lower, upper, step) = (lower?, upper?, step?);
        let mut issue = Vec::new();
        let mut copied = Vec::new();
        if plan.slots > 0 {
            let (fill, last) = (self.cursor("fill", plan.slots), self.cursor("drain", plan.slots));
            let rings = self.rings(&plan.copies, plan.slots);
            copied = plan.copies.iter().zip(rings).map(|(one, ring)| self.copied(*one, ring, fill, last)).collect();
            let is_index = |id: &&OperationId| self.module.operation(**id).name == "tt.load";
            let indices: Vec<OperationId> = plan.slice.iter().filter(is_index).copied().collect();
            let prefetched = self.prefetch(parts, &indices, nodes)?;
            nodes.push(op(Op::CopyCursor { to: fill, from: last }));
            // What runs ahead has values of its own.
            let before = self.values.clone();
            let runner = self.runner(parts, &plan.carried, nodes, &mut issue)?;
            issue.extend(prefetched.take);
            issue.extend(prefetched.load);
            self.values.extend(prefetched.values);
            // A block that several lead to is written for each: values of the time before are none of these.
            for id in plan.slice.iter().filter(|id| !indices.contains(id)) {
                self.ahead(*id, runner.within, &mut issue)?;
            }
            for one in &copied {
                self.copy(one, runner.within, &mut issue)?;
            }
            issue.push(op(Op::CpAsyncCommit));
            issue.push(op(Op::AdvanceCursor(fill)));
            self.advance(&runner, &step, &mut issue)?;
            self.values = before;
            match plan.slots - 1 {
                1 => nodes.extend(issue.iter().cloned()),
                distance => {
                    let variable = self.variable("stage", Vec::new(), Type::Integer(32));
                    let [from, to, by] = [0, i128::from(distance), 1].map(Expression::integer);
                    nodes.push(Node::For { variable, lower: from, upper: to, step: by, body: issue.clone() });
                }
            }
        }
        let prefetch = self.prefetch(parts, &plan.prefetched, nodes)?;
        let mut body = prefetch.take;
        issue.extend(prefetch.load);
        if plan.slots > 0 {
            body.push(op(Op::CpAsyncWait(plan.slots - 2)));
        }
        // Addresses are computed while the tensor core works, if what is copied then has time enough.
        let operations = self.module.block(parts.body).operations.clone();
        let is_mma = |id: &OperationId| self.module.operation(*id).name == "tt.dot";
        let first_mma = operations.iter().copied().find(|id| is_mma(id)).filter(|_| plan.slots > 2);
        if first_mma.is_none() {
            body.extend(issue.iter().cloned());
        }
        if copied.iter().any(|one| self.is_multiplied(one.load)) {
            body.push(op(Op::FenceProxyAsync));
        }
        let variables = self.carry(parts.carried, parts.initial, nodes)?;
        let variable = self.variable_of(parts.induction);
        let counter = self.read(variable);
        self.values.insert(parts.induction, counter);
        self.values.extend(prefetch.values);
        // What threads read of slots they read while the tensor core works, if nothing reads it before.
        let mut unread: Vec<&Copied> = Vec::new();
        for id in operations {
            if id == parts.terminator {
                continue;
            }
            let (read_now, later): (Vec<&Copied>, Vec<&Copied>) =
                unread.into_iter().partition(|one| self.is_read_by(id, one.load));
            unread = later;
            read_now.into_iter().for_each(|one| self.read_slot(one, &mut body));
            match copied.iter().find(|one| one.load == id) {
                Some(one) if self.is_multiplied(id) => self.read_slot(one, &mut body),
                Some(one) => unread.push(one),
                _ if plan.prefetched.contains(&id) => {}
                _ => self.operation(id, &mut body)?,
            }
            if is_mma(&id) {
                unread.drain(..).for_each(|one| self.read_slot(one, &mut body));
            }
            if first_mma == Some(id) {
                body.extend(issue.iter().cloned());
            }
        }
        unread.into_iter().for_each(|one| self.read_slot(one, &mut body));
        self.assign(&variables, parts.yielded, &mut body)?;
        body.extend(copied.first().map(|one| op(Op::AdvanceCursor(one.drain))));
        nodes.push(Node::For { variable, lower, upper, step, body });
        if plan.slots > 0 {
            nodes.push(op(Op::CpAsyncWait(0)));
        }
        self.name(parts.results, &variables);
        Ok(true)
    }

    /// Something that runs ahead from the first iteration on; until values are restored, those of the loop are its own.
    fn runner(
        &mut self,
        parts: &ForLoop<'_>,
        carried: &BTreeSet<usize>,
        nodes: &mut Vec<Node>,
        step: &mut Vec<Node>,
    ) -> Result<Runner, Error> {
        let note = Note { line: names::line(self.module, parts.operation), ..Note::default() };
        let (lower, upper) = (self.value(parts.lower)?, self.value(parts.upper)?);
        let iteration = self.variable("ahead", Vec::new(), lower.element.clone());
        nodes.push(Node::Op(Op::Let { to: iteration, value: lower }, note.clone()));
        let of = |all: &[ValueId]| carried.iter().map(|k| all[*k]).collect::<Vec<_>>();
        let own = self.carry(&of(parts.carried), &of(parts.initial), nodes)?;
        // A number that does not change between what is computed of it and where that is used.
        let now = self.variable("now", Vec::new(), self.variables[iteration.index()].element.clone());
        step.push(Node::Op(Op::Let { to: now, value: self.read(iteration) }, note.clone()));
        let counter = self.read(now);
        self.values.insert(parts.induction, counter.clone());
        let within = self.variable("is_within", Vec::new(), Type::Integer(1));
        let operation = Elementwise::CmpI(IntegerPredicate::Slt);
        let kind = ExpressionKind::Apply { operation, operands: vec![counter, upper] };
        let value = Expression { kind, shape: Vec::new(), element: Type::Integer(1) };
        step.push(Node::Op(Op::Let { to: within, value }, note));
        Ok(Runner { iteration, within, carried: own, yielded: of(parts.yielded) })
    }

    /// To the next iteration.
    fn advance(&mut self, runner: &Runner, step: &Expression, nodes: &mut Vec<Node>) -> Result<(), Error> {
        self.assign(&runner.carried, &runner.yielded, nodes)?;
        // Beyond the loop's bound it stays where it is: it must not begin again behind the largest number.
        let (now, within) = (self.read(runner.iteration), self.read(runner.within));
        let next = Expression::apply(Elementwise::AddI, vec![now.clone(), step.clone()]);
        let (shape, element) = (Vec::new(), now.element.clone());
        let kind = ExpressionKind::Apply { operation: Elementwise::Select, operands: vec![within, next, now] };
        let value = Expression { kind, shape, element };
        nodes.push(Node::Op(Op::Let { to: runner.iteration, value }, Note::default()));
        Ok(())
    }

    /// Loads to registers that are made an iteration ahead; those of the first iteration are among the nodes.
    fn prefetch(
        &mut self,
        parts: &ForLoop<'_>,
        loads: &[OperationId],
        nodes: &mut Vec<Node>,
    ) -> Result<Prefetch, Error> {
        let module = self.module;
        let mut prefetch = Prefetch { take: Vec::new(), load: Vec::new(), values: Vec::new() };
        let (mut slice, mut carried) = (HashSet::new(), BTreeSet::new());
        for id in loads {
            let Some((needed, of_loop)) = self.needs(parts, &module.operation(*id).operands) else { continue };
            slice.extend(needed);
            carried.extend(of_loop);
        }
        if loads.is_empty() {
            return Ok(prefetch);
        }
        let before = self.values.clone();
        let runner = self.runner(parts, &carried, nodes, &mut prefetch.load)?;
        let mut next = Vec::new();
        for id in module.block(parts.body).operations.clone() {
            let is_loaded = loads.contains(&id);
            if is_loaded || slice.contains(&id) {
                self.ahead(id, runner.within, &mut prefetch.load)?;
            }
            if is_loaded {
                let result = module.operation(id).results[0];
                let loaded = self.value(result)?;
                let stem = format!("{}_next", names::of_value(module, result));
                let variable = self.variable_of(result);
                self.rename(variable, &stem);
                prefetch.load.push(Node::Op(Op::Let { to: variable, value: loaded }, Note::default()));
                next.push((result, variable));
            }
        }
        let step = self.value(parts.step)?;
        self.advance(&runner, &step, &mut prefetch.load)?;
        self.values = before;
        nodes.extend(prefetch.load.iter().cloned());
        for (result, variable) in next {
            let to = self.variable_of(result);
            let value = self.read(variable);
            prefetch.take.push(Node::Op(Op::Let { to, value }, Note { line: None, ..Note::default() }));
            prefetch.values.push((result, self.read(to)));
        }
        Ok(prefetch)
    }

    fn rename(&mut self, variable: VariableId, stem: &str) {
        let name = names::unique(stem, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        self.variables[variable.index()].name = name;
    }

    fn cursor(&mut self, stem: &str, slots: u32) -> CursorId {
        let name = names::unique(stem, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        self.cursors.push(Cursor { name, slots, phase: false });
        CursorId::at(self.cursors.len() - 1)
    }

    /// What a load brings, to a ring.
    fn copied(&mut self, of: AsyncLoad, ring: Ring, fill: CursorId, drain: CursorId) -> Copied {
        let AsyncLoad { id: load, elements, turned } = of;
        let buffer = match ring {
            Ring::Earlier(buffer, slots) => {
                let earlier = &mut self.buffers[buffer.index()];
                (earlier.slots, earlier.least_slots) = (slots, slots);
                buffer
            }
            Ring::New(tile, slots) => {
                let value = self.module.operation(load).results[0];
                let stem = format!("{}_ring", names::of_value(self.module, value));
                let name = names::unique(&stem, |name| self.taken.contains(name));
                self.taken.insert(name.clone());
                let RingTile { shape, element, plain } = tile;
                let (memory, source) = (Memory::Shared, None);
                self.buffers.push(Buffer { name, shape, element, slots, least_slots: slots, memory, plain, source });
                BufferId::at(self.buffers.len() - 1)
            }
        };
        Copied { load, elements, turned, buffer, fill, drain }
    }

    /// An operation that an address needs. What it loads is none beyond the last iteration.
    fn ahead(&mut self, id: OperationId, within: VariableId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let operation = self.module.operation(id);
        if operation.name != "tt.load" {
            return self.operation(id, nodes);
        }
        let [pointers, rest @ ..] = operation.operands.as_slice() else { return Ok(()) };
        let pointers = self.value(*pointers)?;
        let mask = rest.first().map(|mask| self.value(*mask)).transpose()?;
        let mask = Some(Box::new(self.masked(within, mask, &pointers.shape)));
        let other = rest.get(1).map(|other| self.value(*other)).transpose()?;
        let result = operation.results[0];
        let kind = self.module.type_of(result);
        let (shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        let other = other.unwrap_or_else(|| Expression::zeros(&shape, &element));
        let kind = ExpressionKind::Load { pointers: Box::new(pointers), mask, other: Some(Box::new(other)) };
        self.bind(result, Expression { kind, shape, element }, names::line(self.module, id), nodes);
        Ok(())
    }

    /// A mask that holds nowhere beyond the last iteration.
    fn masked(&self, within: VariableId, mask: Option<Expression>, shape: &[u64]) -> Expression {
        let scalar = self.read(within);
        let all = match shape {
            [] => scalar,
            _ => Expression {
                kind: ExpressionKind::Broadcast(Box::new(scalar)),
                shape: shape.to_vec(),
                element: Type::Integer(1),
            },
        };
        match mask {
            Some(mask) => Expression::apply(Elementwise::AndI, vec![mask, all]),
            None => all,
        }
    }

    /// Starts a copy.
    fn copy(&mut self, one: &Copied, within: VariableId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let operation = self.module.operation(one.load);
        let [pointers, rest @ ..] = operation.operands.as_slice() else { return Ok(()) };
        let pointers = self.value(*pointers)?;
        let mask = rest.first().map(|mask| self.value(*mask)).transpose()?;
        let mask = self.masked(within, mask, &pointers.shape);
        let lie = |e: Expression| match one.turned {
            true => Expression {
                shape: e.shape.iter().rev().copied().collect(),
                element: e.element.clone(),
                kind: ExpressionKind::Transpose(vec![1, 0], Box::new(e)),
            },
            false => e,
        };
        let to = self.slot(one, one.fill, false);
        let (pointers, mask) = (lie(pointers), Some(lie(mask)));
        let copy = Op::CpAsync { pointers, mask, elements: one.elements, whole: None, to, full: None };
        nodes.push(Node::Op(copy, Note { line: names::line(self.module, one.load), ..Note::default() }));
        Ok(())
    }

    fn slot(&self, one: &Copied, at: CursorId, transposed: bool) -> Slot {
        let value = SlotValue::outside(MemoryValue::Staged(one.load.index() as u32));
        Slot { buffer: one.buffer, at: Some(at), slice: None, transposed, value }
    }

    /// The tile of this iteration: where only the tensor core reads it, it stays in its slot.
    fn read_slot(&mut self, one: &Copied, nodes: &mut Vec<Node>) {
        let value = self.module.operation(one.load).results[0];
        let kind = self.module.type_of(value);
        let (shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        let from =
            Expression { kind: ExpressionKind::FromShared(self.slot(one, one.drain, one.turned)), shape, element };
        if self.is_multiplied(one.load) {
            self.values.insert(value, from);
        } else {
            self.bind(value, from, names::line(self.module, one.load), nodes);
        }
    }

    /// Whether an operation, or one in it, reads what a load brings.
    fn is_read_by(&self, id: OperationId, load: OperationId) -> bool {
        let value = self.module.operation(load).results[0];
        self.module.walk(id).any(|id| self.module.operation(id).operands.contains(&value))
    }

    /// A tile in a slot that changes rows and columns: it is read in another way. False if it is none.
    pub(super) fn is_turned_slot(&mut self, id: OperationId) -> bool {
        let operation = self.module.operation(id);
        let ("tt.trans", [x], [result]) =
            (operation.name.as_str(), operation.operands.as_slice(), operation.results.as_slice())
        else {
            return false;
        };
        if order(operation) != [1, 0] {
            return false;
        }
        match self.values.get(x).cloned() {
            Some(Expression { kind: ExpressionKind::FromShared(slot), mut shape, element }) => {
                shape.reverse();
                let kind = ExpressionKind::FromShared(Slot { transposed: !slot.transposed, ..slot });
                self.values.insert(*result, Expression { kind, shape, element });
                true
            }
            _ => false,
        }
    }

    /// Whether all that reads what an operation makes, as it is or transposed, is MMAs of the same iteration.
    fn is_multiplied(&self, id: OperationId) -> bool {
        let module = self.module;
        let operation = module.operation(id);
        let (value, body) = (operation.results[0], operation.block);
        let mut users =
            module.walk(self.function).filter(|id| module.operation(*id).operands.contains(&value)).peekable();
        users.peek().is_some()
            && users.all(|id| {
                let user = module.operation(id);
                let is_sum = user.operands.get(2) == Some(&value);
                let is_mma = user.name == "tt.dot" && !is_sum;
                user.block == body
                    && (is_mma || user.name == "tt.trans" && order(user) == [1, 0] && self.is_multiplied(id))
            })
    }
}
