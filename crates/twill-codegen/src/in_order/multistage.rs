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

use super::{Builder, constant};
use crate::builder::bases::{bases, may_meet};
use crate::builder::views::order;
use crate::error::Error;
use crate::ir::{
    Buffer, BufferId, Cursor, CursorId, Elementwise, Expression, ExpressionKind, IntegerPredicate, Memory, MemoryValue,
    Node, Note, Op, Slot, SlotValue, VariableId, names,
};
use std::collections::{BTreeSet, HashSet};
use twill_triton::kernel::is_pure;
use twill_triton::mlir::{Attribute, Definition, ForLoop, Operation, OperationId, Type, ValueId};

/// Least bytes that a thread copies at once (PTX, `cp.async`).
const LEAST_COPIED: u64 = 4;
/// Least bytes of a tile that is worth a slot.
const LEAST_TILE: u64 = 512;
/// Most bytes of a tile that is loaded to registers ahead.
const MOST_PREFETCHED: u64 = 8 << 10;
/// Most slots of a ring: more were never faster.
const MOST_SLOTS: u32 = 4;
/// Bytes of all rings of a loop up to which there are as many slots: so several CTAs share a multiprocessor.
const SEVERAL_CTAS: u64 = 72 << 10;
/// Bytes of all rings up to which there are three.
const TWO_CTAS: u64 = 104 << 10;
/// Most bytes that the threads that run ahead load at once and wait for: indices.
const MOST_INDICES: u64 = 4096;
/// Rows and bytes of a row from which on a tile has a layout that the tensor core reads.
const LEAST_SWIZZLED: (u64, u64) = (8, 32);

/// A tile that is copied ahead.
pub(super) struct Copied {
    load: OperationId,
    /// Neighbours that a thread copies at once.
    elements: u64,
    /// Neighbours in memory are those along the first dimension: it is put there transposed.
    turned: bool,
    buffer: BufferId,
}

/// What of a loop runs ahead.
struct Plan {
    /// What is copied: the load, how many neighbours at once, and whether they lie along the first dimension.
    copies: Vec<(OperationId, u64, bool)>,
    /// What computes the addresses, in the order of the text.
    slice: Vec<OperationId>,
    /// What the loop carries for it.
    carried: BTreeSet<usize>,
    /// Slots of the rings; none where nothing is copied.
    slots: u32,
    /// What is loaded to registers an iteration ahead.
    prefetched: Vec<OperationId>,
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
        if self.ring_bytes == 0 {
            return Ok(false);
        }
        let Some(plan) = self.plan(parts) else { return Ok(false) };
        let line = names::line(self.module, parts.operation);
        let op = |op| Node::Op(op, Note { line, ..Note::default() });
        let [lower, upper, step] = [parts.lower, parts.upper, parts.step].map(|v| self.value(v));
        let (lower, upper, step) = (lower?, upper?, step?);
        let mut issue = Vec::new();
        let mut copied = Vec::new();
        let mut drain = None;
        if plan.slots > 0 {
            let (fill, last) = (self.cursor("fill", plan.slots), self.cursor("drain", plan.slots));
            drain = Some(last);
            copied = plan.copies.iter().map(|one| self.ring(*one, plan.slots)).collect();
            let bytes: u64 = plan.copies.iter().map(|(id, ..)| self.bytes(self.module.operation(*id).results[0])).sum();
            self.ring_bytes = self.ring_bytes.saturating_sub(bytes * u64::from(plan.slots)).max(1);
            let is_index = |id: &&OperationId| self.module.operation(**id).name == "tt.load";
            let indices: Vec<OperationId> = plan.slice.iter().filter(is_index).copied().collect();
            let indices = self.prefetch(parts, &indices, nodes)?;
            nodes.push(op(Op::CopyCursor { to: fill, from: last }));
            // What runs ahead has values of its own.
            let before = self.values.clone();
            let runner = self.runner(parts, &plan.carried, nodes, &mut issue)?;
            issue.extend(indices.take);
            issue.extend(indices.load);
            self.values.extend(indices.values);
            for id in &plan.slice {
                if !self.module.operation(*id).results.iter().all(|value| self.values.contains_key(value)) {
                    self.ahead(*id, runner.within, &mut issue)?;
                }
            }
            for one in &copied {
                self.copy(one, runner.within, fill, &mut issue)?;
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
        for id in operations {
            if id == parts.terminator {
                continue;
            }
            match (copied.iter().find(|one| one.load == id), drain) {
                (Some(one), Some(drain)) => self.read_slot(one, drain, &mut body),
                _ if plan.prefetched.contains(&id) => {}
                _ => self.operation(id, &mut body)?,
            }
            if first_mma == Some(id) {
                body.extend(issue.iter().cloned());
            }
        }
        self.assign(&variables, parts.yielded, &mut body)?;
        body.extend(drain.map(|drain| op(Op::AdvanceCursor(drain))));
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

    /// A ring for what a load brings.
    fn ring(&mut self, (load, elements, turned): (OperationId, u64, bool), slots: u32) -> Copied {
        let value = self.module.operation(load).results[0];
        let kind = self.module.type_of(value);
        let (mut shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        if turned {
            shape.reverse();
        }
        let stem = format!("{}_ring", names::of_value(self.module, value));
        let name = names::unique(&stem, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        let row = shape.last().copied().unwrap_or(1) * u64::from(element.scalar_bits().unwrap_or(8)) / 8;
        let plain = shape.len() != 2 || shape[0] < LEAST_SWIZZLED.0 || row < LEAST_SWIZZLED.1;
        let buffer =
            Buffer { name, shape, element, slots, least_slots: slots, memory: Memory::Shared, plain, source: None };
        self.buffers.push(buffer);
        Copied { load, elements, turned, buffer: BufferId::at(self.buffers.len() - 1) }
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
    fn copy(&mut self, one: &Copied, within: VariableId, fill: CursorId, nodes: &mut Vec<Node>) -> Result<(), Error> {
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
        let to = self.slot(one, fill, false);
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
    fn read_slot(&mut self, one: &Copied, drain: CursorId, nodes: &mut Vec<Node>) {
        let value = self.module.operation(one.load).results[0];
        let kind = self.module.type_of(value);
        let (shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        let from = Expression { kind: ExpressionKind::FromShared(self.slot(one, drain, one.turned)), shape, element };
        if self.is_multiplied(one.load) {
            self.values.insert(value, from);
        } else {
            self.bind(value, from, names::line(self.module, one.load), nodes);
        }
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

    /// What of a loop runs ahead; none where nothing can.
    fn plan(&self, parts: &ForLoop<'_>) -> Option<Plan> {
        let module = self.module;
        let operations = &module.block(parts.body).operations;
        let within: Vec<OperationId> = module.walk(parts.operation).skip(1).collect();
        let name = |id: &OperationId| module.operation(*id).name.as_str();
        let is_unsigned = module.operation(parts.operation).attributes.flag("unsignedCmp");
        if is_unsigned || within.iter().any(|id| matches!(name(id), "scf.for" | "scf.while")) {
            return None;
        }
        let trips = match [parts.lower, parts.upper, parts.step].map(|v| module.integer_constant(v)) {
            [Some(lower), Some(upper), Some(step)] if step > 0 => Some((upper - lower + step - 1) / step),
            _ => None,
        };
        if trips.is_some_and(|trips| trips < 2) {
            return None;
        }
        // What is written in the loop, and what has effects that nobody knows.
        let mut written = Vec::new();
        for id in &within {
            let operation = module.operation(*id);
            match operation.name.as_str() {
                // What is loaded behind one that others signal by may be what they wrote before.
                "tt.atomic_rmw" | "tt.atomic_cas" if self.is_used(operation.results.first()) => return None,
                "tt.store"
                | "tt.atomic_rmw"
                | "tt.atomic_cas"
                | "tt.descriptor_store"
                | "tt.descriptor_reduce"
                | "tt.descriptor_scatter" => {
                    written.push(bases(module, self.function, *operation.operands.first()?));
                }
                "tt.load"
                | "tt.descriptor_load"
                | "tt.descriptor_gather"
                | "scf.if"
                | "scf.yield"
                | "llvm.intr.assume" => {}
                _ if is_pure(operation) || self.is_of_combination(*id) => {}
                _ => return None,
            }
        }
        let is_written = |pointers: ValueId| {
            let read = bases(module, self.function, pointers);
            written.iter().any(|written| may_meet(&read, written))
        };
        let (mut found, mut prefetched) = (Vec::new(), Vec::new());
        for id in operations {
            let operation = module.operation(*id);
            let Some(pointers) = operation.operands.first().filter(|_| operation.name == "tt.load") else { continue };
            if !is_written(*pointers)
                && !is_volatile(operation)
                && let Some(needs) = self.needs(parts, &operation.operands)
                && !needs.0.iter().any(|id| name(id) == "tt.load" && is_written(module.operation(*id).operands[0]))
            {
                match self.access(*id) {
                    Some(access) => found.push((*id, access, needs)),
                    None if self.bytes(operation.results[0]) <= MOST_PREFETCHED => prefetched.push(*id),
                    None => {}
                }
            }
        }
        // What others need to find their addresses is waited for.
        let needed: HashSet<OperationId> = found.iter().flat_map(|(_, _, needs)| needs.0.iter().copied()).collect();
        let of_prefetched = |id: &OperationId| self.needs(parts, &module.operation(*id).operands);
        let by_prefetched: HashSet<OperationId> =
            prefetched.iter().filter_map(of_prefetched).flat_map(|n| n.0).collect();
        found.retain(|(id, ..)| !needed.contains(id) && !by_prefetched.contains(id));
        prefetched.retain(|id| self.is_read(parts, *id, &needed));
        if found.is_empty() {
            let is_any = !prefetched.is_empty();
            let (copies, slice, carried) = (Vec::new(), Vec::new(), BTreeSet::new());
            return is_any.then_some(Plan { copies, slice, carried, slots: 0, prefetched });
        }
        let slice: BTreeSet<OperationId> = found.iter().flat_map(|(_, _, needs)| needs.0.iter().copied()).collect();
        let carried = found.iter().flat_map(|(_, _, needs)| needs.1.iter().copied()).collect();
        let copies: Vec<_> = found.iter().map(|(id, (elements, turned), _)| (*id, *elements, *turned)).collect();
        let bytes: u64 = copies.iter().map(|(id, ..)| self.bytes(module.operation(*id).results[0])).sum();
        let most = trips.map_or(MOST_SLOTS, |trips| u32::try_from(trips).unwrap_or(MOST_SLOTS).min(MOST_SLOTS));
        let limit = |slots: u32| match slots {
            2 => self.ring_bytes,
            3 => TWO_CTAS.min(self.ring_bytes),
            _ => SEVERAL_CTAS.min(self.ring_bytes),
        };
        let slots = (2..=most).rev().find(|slots| bytes * u64::from(*slots) <= limit(*slots))?;
        let slice = operations.iter().copied().filter(|id| slice.contains(id)).collect();
        Some(Plan { copies, slice, carried, slots, prefetched })
    }

    /// Whether something of an iteration reads what a load brings, besides addresses of what runs ahead.
    fn is_read(&self, parts: &ForLoop<'_>, load: OperationId, ahead: &HashSet<OperationId>) -> bool {
        let module = self.module;
        let value = module.operation(load).results[0];
        let is_reader = |id: &OperationId| module.operation(*id).operands.contains(&value);
        !ahead.contains(&load) || module.walk(parts.operation).filter(is_reader).any(|id| !ahead.contains(&id))
    }

    fn is_used(&self, value: Option<&ValueId>) -> bool {
        let module = self.module;
        value.is_some_and(|value| module.walk(self.function).any(|id| module.operation(id).operands.contains(value)))
    }

    /// Whether an operation is of the region by which elements are combined.
    fn is_of_combination(&self, id: OperationId) -> bool {
        let module = self.module;
        let around = module.operation(id).block.map(|block| module.region(module.block(block).region).operation);
        around.is_some_and(|around| matches!(module.operation(around).name.as_str(), "tt.reduce" | "tt.scan"))
    }

    fn bytes(&self, value: ValueId) -> u64 {
        let kind = self.module.type_of(value);
        let elements: u64 = kind.known_shape().unwrap_or_default().iter().product();
        elements * u64::from(kind.element().scalar_bits().unwrap_or(8)) / 8
    }

    /// How a load is copied, if it can be: how many neighbours at once, and whether they lie along the first dimension.
    fn access(&self, id: OperationId) -> Option<(u64, bool)> {
        let module = self.module;
        let operation = module.operation(id);
        let (pointers, result) = (*operation.operands.first()?, *operation.results.first()?);
        let kind = module.type_of(result);
        let shape = kind.known_shape().filter(|shape| matches!(shape.len(), 1 | 2))?;
        let bits = kind.element().scalar_bits().filter(|bits| *bits >= 8)?;
        if self.bytes(result) < LEAST_TILE {
            return None;
        }
        if let Some(other) = operation.operands.get(2) {
            let zero = constant(module, *other)?;
            if !matches!(zero.kind, ExpressionKind::Integer(0))
                && !matches!(zero.kind, ExpressionKind::Float(x) if x == 0.0 && x.is_sign_positive())
            {
                return None;
            }
        }
        let access = self.axis_infos.access(pointers, operation.operands.get(1).copied());
        let turned = shape.len() == 2 && access.dimension == 0;
        (access.elements * u64::from(bits) / 8 >= LEAST_COPIED).then_some((access.elements, turned))
    }

    /// What of a loop's body values need, and what the loop carries for it; none where that is more than addresses are made of.
    fn needs(&self, parts: &ForLoop<'_>, values: &[ValueId]) -> Option<(HashSet<OperationId>, BTreeSet<usize>)> {
        let module = self.module;
        let (mut needed, mut carried) = (HashSet::new(), BTreeSet::new());
        let mut work = values.to_vec();
        let mut seen: HashSet<ValueId> = HashSet::new();
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            match module.definition(value) {
                Definition::Argument { block, index } if block == parts.body => {
                    if let Some(k) = index.checked_sub(1) {
                        carried.insert(k);
                        work.push(*parts.yielded.get(k)?);
                    }
                }
                Definition::Result { operation: id, .. } => {
                    let operation = module.operation(id);
                    if operation.block != Some(parts.body) {
                        // Of outside; what is made within a branch is read there alone.
                        continue;
                    }
                    let is_index =
                        operation.name == "tt.load" && !is_volatile(operation) && self.bytes(value) <= MOST_INDICES;
                    let is_arithmetic = is_pure(operation) && !operation.name.starts_with("tt.dot");
                    if !(is_index || is_arithmetic) {
                        return None;
                    }
                    needed.insert(id);
                    work.extend(&operation.operands);
                }
                Definition::Argument { .. } => {}
            }
        }
        Some((needed, carried))
    }
}

/// Whether a load must be made where it stands: each time anew from memory.
fn is_volatile(operation: &Operation) -> bool {
    let cache = operation.attributes.get("cache");
    let is_cv = matches!(cache, Some(Attribute::Enumeration(word) | Attribute::Other(word)) if word == "cv");
    operation.attributes.flag("isVolatile") || is_cv
}
