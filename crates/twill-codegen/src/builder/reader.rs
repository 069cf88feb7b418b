//! From a value of the TTIR and the part of it that is wanted to an expression over what the group holds.

use crate::builder::enclosing::Scope;
use crate::builder::group::{GroupBuilder, iterations_before, shifted};
use crate::builder::kernel::KernelBuilder;
use crate::builder::transcribed::is_structured;
use crate::error::{Error, ONE_SUB_TILE};
use crate::ir::Elementwise;
use crate::ir::Region;
use crate::ir::names;
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use crate::ir::{MemoryValue, SlotValue};
use crate::ir::{Slot, VariableId};
use crate::passes::steps::program::{Barrier, Iteration};
use twill_graph::OpId;
use twill_graph::narrow;
use twill_triton::Stands;
use twill_triton::kernel::is_pure;
use twill_triton::mlir::{Definition, OperationId, Type, ValueId};

/// The loop and its iteration in whose scope a value is read; `None` outside of loops.
pub(crate) type LoopScope = Option<(usize, Iteration)>;

/// Reads for one group.
pub(crate) struct Reader<'r, 'a> {
    pub lowering: &'r mut KernelBuilder<'a>,
    pub group: &'r mut GroupBuilder,
}

impl Reader<'_, '_> {
    /// A scalar, in a scope.
    pub fn scalar(&mut self, value: ValueId, program: Option<u32>, at: LoopScope) -> Result<Expression, Error> {
        self.value(value, &Region::whole(&[]), program, at)
    }

    /// `⌈(upper − lower) / step⌉`, under a name.
    pub fn trip_count(&mut self, index: usize) -> Result<(), Error> {
        if self.group.trips[index].is_some() {
            return Ok(());
        }
        let parts = self.lowering.loops[index].parts;
        // Also where what follows the loops is made, as late as it may be: the count is asked for before that.
        let late = std::mem::replace(&mut self.group.late, false);
        let bounds = [parts.lower, parts.upper, parts.step].map(|bound| self.scalar(bound, None, None));
        self.group.late = late;
        let [lower, upper, step] = bounds;
        let (lower, upper, step) = (lower?, upper?, step?);
        let span = Expression::scalar(Elementwise::SubI, upper, lower);
        let below = Expression::scalar(Elementwise::SubI, step.clone(), Expression::integer(1));
        let count = Expression::scalar(Elementwise::DivSI, Expression::scalar(Elementwise::AddI, span, below), step);
        let section = self.group.section_of(&count);
        let name = if self.lowering.loops.len() > 1 { format!("trips_{}", index) } else { "trips".into() };
        let to = self.group.variable(&name, &[], Type::Integer(32), crate::ir::Form::Any);
        self.group.define(to, section);
        self.group.sections[section]
            .push(crate::ir::Node::Op(crate::ir::Op::Let { to, value: count }, crate::ir::Note::default()));
        self.group.trips[index] = Some(to);
        Ok(())
    }

    /// Part of a value, in a scope.
    pub fn value(
        &mut self,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let module = self.lowering.module;
        let element = self.lowering.element(value);
        let shape = region.extents.clone();
        let of = |kind| Ok(Expression { kind, shape: shape.clone(), element: element.clone() });
        if let Some(constant) = module.integer_constant(value) {
            return of(ExpressionKind::Integer(constant));
        }
        if let Some(constant) = module.float_constant(value) {
            return of(ExpressionKind::Float(constant));
        }
        if let (Some((index, iteration)), Some(of_value)) = (at, self.lowering.loop_of(value))
            && index == of_value
        {
            return self.in_loop(index, iteration, value, region, program);
        }
        if let Some(value) = self.of_enclosing(value, region) {
            return value;
        }
        match module.definition(value) {
            Definition::Argument { block, .. } if Some(block) == module.body(self.lowering.kernel.function()) => {
                of(ExpressionKind::Parameter(module.value(value).name.clone()))
            }
            Definition::Argument { .. } => Err(self.elsewhere(value)),
            Definition::Result { operation, .. } => self.outside(operation, value, region, program),
        }
    }

    fn elsewhere(&self, value: ValueId) -> Error {
        let module = self.lowering.module;
        let id = module.defining_operation(value).unwrap_or_else(|| self.lowering.kernel.function());
        self.lowering.unsupported(
            id,
            "values of loops around the pipelined one, or of branches",
            "make the pipelined loop a loop of the kernel's top level",
        )
    }

    fn in_loop(
        &mut self,
        index: usize,
        iteration: Iteration,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        let facts = &self.lowering.loops[index];
        let parts = facts.parts;
        if value == parts.induction {
            let lower = self.scalar(parts.lower, program, None)?;
            let step = self.scalar(parts.step, program, None)?;
            let number = Expression {
                kind: ExpressionKind::Iteration(IterationNumber { index, iteration }),
                shape: Vec::new(),
                element: Type::Integer(32),
            };
            let ahead = Expression::scalar(Elementwise::MulI, number, step);
            return Ok(Expression::scalar(Elementwise::AddI, lower, ahead));
        }
        if let Some(k) = facts.carried(value) {
            return self.carried(index, k, iteration, region, program);
        }
        if facts.producers.contains_key(&value) {
            return self.made(index, value, region, program, iteration);
        }
        let Some(id) = self.lowering.module.defining_operation(value) else { return Err(self.elsewhere(value)) };
        self.apply(id, region, program, Some((index, iteration)))
    }

    /// What an operation of a loop made.
    pub(crate) fn made(
        &mut self,
        index: usize,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<Expression, Error> {
        let facts = &self.lowering.loops[index];
        let producers = facts.producers.get(&value).map(Vec::as_slice).unwrap_or_default();
        let fits = |p: &&crate::builder::source::Producer| {
            p.region == *region && (p.program.is_none() || p.program == program)
        };
        // After the loops, columns of what a group holds are no other tile.
        let columns_of = |p: &crate::builder::source::Producer| {
            let is_after = matches!(iteration, Iteration::End(_)) && (p.program.is_none() || p.program == program);
            slice_of(&p.region, region).flatten().filter(|(dimension, ..)| is_after && *dimension == 1)
        };
        if !producers.iter().any(|p| fits(&p))
            && let Some((producer, start)) = producers.iter().find_map(|p| Some((p, columns_of(p)?.1)))
        {
            let (whole, shape) = (producer.region.clone(), region.extents.clone());
            let tile = self.made(index, value, &whole, program, iteration)?;
            let element = tile.element.clone();
            return Ok(match tile.kind {
                ExpressionKind::Variable(_) => {
                    Expression { kind: ExpressionKind::Columns(start, Box::new(tile)), shape, element }
                }
                _ => return Err(self.elsewhere(value)),
            });
        }
        let Some(producer) = producers.iter().find(fits) else {
            let id = self.lowering.module.defining_operation(value).unwrap_or(facts.parts.operation);
            return Err(self.lowering.unsupported(id, "a read of rows that different warp groups hold", ONE_SUB_TILE));
        };
        let op = producer.op;
        if self.lowering.is_tcgen05_mma(index, op) {
            return self.loaded(index, op, iteration);
        }
        let facts = &self.lowering.loops[index];
        let in_registers = facts.group(op) == self.group.id && !facts.is_load(op);
        if in_registers {
            let id = self.newest(index, op, iteration)?;
            return Ok(self.group.read(id));
        }
        if let (None, Some(id)) = (facts.buffer(op), self.lowering.module.defining_operation(value))
            && self.is_computed_anywhere(index, value)
        {
            // Such as a mask that a load needs and that an operation on tiles reads too.
            return self.apply(id, region, program, Some((index, iteration)));
        }
        let slot = self.slot(index, op, iteration)?;
        let element = self.lowering.element(value);
        Ok(Expression { kind: ExpressionKind::FromShared(slot), shape: region.extents.clone(), element })
    }

    /// Whether any group can compute a value of a loop for itself: from the iteration and from what is defined before the loop,
    /// without a load and without what the loop carries.
    fn is_computed_anywhere(&self, index: usize, value: ValueId) -> bool {
        let (module, parts) = (self.lowering.module, self.lowering.loops[index].parts);
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if value == parts.induction || self.lowering.loop_of(value) != Some(index) {
                continue;
            }
            let Some(id) = module.defining_operation(value) else { return false };
            let operation = module.operation(id);
            if !is_pure(operation) || operation.name.starts_with("tt.dot") {
                return false;
            }
            work.extend(&operation.operands);
        }
        true
    }

    /// An MMA's result of an iteration that the loop loads from tensor memory.
    fn loaded(&mut self, index: usize, mma: OpId, iteration: Iteration) -> Result<Expression, Error> {
        let loads = self.lowering.loads_from_tensor(index, mma);
        let own = |op: OpId| self.lowering.loops[index].group(op) == self.group.id;
        let of = |(distance, op): &(u32, OpId)| (*op, shifted(iteration, i64::from(*distance)));
        if let Some((op, iteration)) = loads.iter().find(|(_, op)| own(*op)).map(of) {
            let id = self.newest(index, op, iteration)?;
            return Ok(self.group.read(id));
        }
        let Some((op, iteration)) = loads.first().map(of) else {
            let id = self.lowering.loops[index].parts.operation;
            return Err(self.lowering.defect(id, "who loads a result from tensor memory"));
        };
        let slot = self.slot(index, op, iteration)?;
        let (shape, element) = self.lowering.tile_of(index, op);
        Ok(Expression { kind: ExpressionKind::FromShared(slot), shape, element })
    }

    /// The variable that holds an operation's result of an iteration.
    pub fn newest(&mut self, index: usize, op: OpId, iteration: Iteration) -> Result<VariableId, Error> {
        let track = self.group.tracks[index].get(&op);
        let age = track.and_then(|t| iterations_before(iteration, t.latest?));
        let age = age.and_then(|a| usize::try_from(a).ok());
        let found = track.zip(age).and_then(|(t, age)| t.variables.get(age)).copied();
        let track = self.group.tracks[index].get(&op);
        found.ok_or_else(|| {
            let facts = &self.lowering.loops[index];
            let name = &facts.problem.graph().operation(op).name;
            let latest = track.map(|t| (t.latest, t.variables.len()));
            self.lowering.defect(facts.parts.operation, format!("where {name} of {iteration:?} is held ({latest:?})"))
        })
    }

    /// The slot in which an operation's result of an iteration stands.
    pub fn slot(&mut self, index: usize, op: OpId, iteration: Iteration) -> Result<Slot, Error> {
        let facts = &self.lowering.loops[index];
        let name = facts.problem.graph().operation(op).name.clone();
        let (id, transposed) = (facts.parts.operation, facts.is_turned(op));
        // What an operation of the loop reads of another group has a buffer: the checker says so.
        let Some(buffer) = facts.buffer(op) else {
            return Err(self.lowering.unsupported(
                id,
                format!("how {name} comes to the group that reads it after the loop; another makes it"),
                "assign groups by sub-tile (--warp-assignment by-sub-tile)",
            ));
        };
        let at = self.lowering.storage.buffers[&(index, buffer)];
        let ring = self.lowering.ring_of(index, buffer);
        let track = self.group.slots.get(&ring);
        let age = track.and_then(|t| iterations_before(iteration, t.latest?));
        let cursor = track.zip(age.and_then(|a| usize::try_from(a).ok())).and_then(|(t, age)| t.at.get(age)).copied();
        let Some(cursor) = cursor else {
            let track = self.group.slots.get(&ring);
            let latest = track.map(|t| t.latest);
            return Err(self.lowering.defect(id, format!("the slot of {name} of {iteration:?} (latest {latest:?})")));
        };
        let value = SlotValue::result(index, op, iteration);
        Ok(Slot { buffer: at, at: Some(cursor), slice: None, transposed, value })
    }

    /// A value that is defined outside the loops.
    fn outside(
        &mut self,
        id: OperationId,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        let module = self.lowering.module;
        let operation = module.operation(id);
        if !self.sees(operation.block) {
            return Err(self.elsewhere(value));
        }
        if let Some((index, k)) = self.lowering.loop_result(value) {
            return self.after_loop(index, k, region, program);
        }
        let name = operation.name.as_str();
        if crate::builder::views::is_view(name) || name == "tt.get_program_id" || name == "tt.get_num_programs" {
            return self.apply(id, region, program, None);
        }
        let program = program.filter(|_| self.lowering.depends_on_program(value));
        let key = (value, region.clone(), program);
        if let Some(variable) = self.group.known(&key) {
            return Ok(self.group.read(variable));
        }
        if is_structured(name) {
            return self.transcribed(id, value, region);
        }
        let expression = if name == "tt.descriptor_load" {
            if self.group.scope != Scope::Body {
                return Err(self.elsewhere(value));
            }
            self.from_invariant_load(id, region, program)?
        } else {
            self.apply(id, region, program, None)?
        };
        if let ExpressionKind::Variable(variable) = expression.kind {
            self.group.outer.insert(key, variable);
            return Ok(expression);
        }
        let mut wish = names::of_value(module, value);
        if region.starts.iter().any(|s| *s > 0) || region.extents != self.lowering.shape(value) {
            let part = region.starts.iter().zip(&region.extents).map(|(s, e)| s / (*e).max(1)).max().unwrap_or(0);
            wish = format!("{wish}_{part}");
        } else if let Some(p) = program {
            wish = format!("{wish}_{p}");
        }
        let line = names::line(module, id);
        let variable = self.group.bind(key, &wish, expression, line);
        Ok(self.group.read(variable))
    }

    /// A carried value after its loop.
    fn after_loop(
        &mut self,
        index: usize,
        k: usize,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        if let Some(value) = self.result_elsewhere(index, k, region, program)? {
            return Ok(value);
        }
        let parts = self.lowering.loops[index].parts;
        if self.lowering.loops[index].producers.contains_key(&parts.yielded[k]) {
            let value = self.made(index, parts.yielded[k], region, program, Iteration::End(-1))?;
            let in_partials = self.lowering.loops[index].sums.values().any(|s| s.carried == k);
            return Ok(if in_partials { crate::builder::partials::quad_all_reduce(value) } else { value });
        }
        self.carried(index, k, Iteration::End(0), region, program)
    }

    /// What a carried value of a loop begins with; a sum that is carried in per-thread partials, as those.
    pub fn initial(
        &mut self,
        index: usize,
        k: usize,
        op: OpId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        let initial = self.lowering.loops[index].parts.initial[k];
        let Some(sum) = self.lowering.loops[index].sums.get(&op).cloned() else {
            return self.value(initial, region, program, None);
        };
        if let Some((before, k)) = self.lowering.loop_result(initial) {
            let yielded = self.lowering.loops[before].parts.yielded[k];
            return self.made(before, yielded, region, program, Iteration::End(-1));
        }
        let constant = self.lowering.module.float_constant(initial).unwrap_or_default();
        let columns = self.lowering.shape(sum.tile).get(1).copied().unwrap_or(8);
        Ok(crate::builder::partials::initial(constant, columns, region, self.lowering.element(sum.tile)))
    }

    /// A tile that is loaded before the loops, in registers.
    #[allow(clippy::wrong_self_convention, reason = "it reads from something, and makes no reader")]
    fn from_invariant_load(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Expression, Error> {
        let tiles = self.lowering.invariant_tiles(id, region, program)?;
        let [tile] = tiles.as_slice() else {
            return Err(self.lowering.unsupported(
                id,
                "a tile whose rows are read by several groups at once",
                "read it row by row",
            ));
        };
        let slot = self.invariant_slot(*tile, region)?;
        let value = self.lowering.module.operation(id).results[0];
        let element = self.lowering.element(value);
        Ok(Expression { kind: ExpressionKind::FromShared(slot), shape: region.extents.clone(), element })
    }

    /// Where a loop-invariant tile stands in shared memory, waited for.
    pub fn invariant_slot(&mut self, tile: usize, region: &Region) -> Result<Slot, Error> {
        let known = self.lowering.invariant_tiles[tile].clone();
        let cursor = match self.group.invariant_tiles.iter().find(|(p, _)| *p == tile) {
            Some((_, cursor)) => *cursor,
            None => {
                let stem = self.lowering.program.barriers[known.full.index()].name.trim_end_matches("_full").to_owned();
                let cursor = self.group.cursor(&stem, 1);
                self.group.cursors[cursor.index()].phase = true;
                self.group.invariant_tiles.push((tile, cursor));
                let wait = crate::ir::Op::MbarrierWait { barrier: known.full, at: cursor, previous: false };
                // What is read only after the loops is waited for there.
                let section = if self.group.ending { self.group.last() } else { 0 };
                self.group.place(section, crate::ir::Node::Op(wait, crate::ir::Note::default()));
                let readers = &mut self.lowering.invariant_tiles[tile].readers;
                if !readers.contains(&self.group.id) {
                    readers.push(self.group.id);
                }
                cursor
            }
        };
        let slice = slice_of(&known.region, region).ok_or_else(|| {
            self.lowering.unsupported(known.load, "a part of a tile that is cut along two dimensions", ONE_SUB_TILE)
        })?;
        let value = SlotValue::outside(MemoryValue::Invariant(narrow(tile)));
        Ok(Slot { buffer: known.buffer, at: Some(cursor), slice, transposed: false, value })
    }

    /// The barrier of a loop's step, and its name.
    pub fn barrier(&self, index: usize, barrier: Barrier) -> Option<crate::ir::BarrierId> {
        match barrier {
            Barrier::Full { buffer, value } => {
                let at = self.lowering.storage.buffers.get(&(index, buffer))?;
                self.lowering.storage.full.get(&(index, *at, value)).copied()
            }
            Barrier::Empty { buffer } => {
                let at = self.lowering.storage.buffers.get(&(index, buffer))?;
                self.lowering.storage.empty.get(at).copied()
            }
        }
    }

    /// The operation that stores a tile for others, if a tile is stored.
    pub fn stored(&self, index: usize, op: OpId) -> OpId {
        let facts = &self.lowering.loops[index];
        let tile = match facts.stands_for.get(op.index()) {
            Some(Stands::Tile(id)) => facts.tiles.operation(*id).result,
            _ => None,
        };
        tile.and_then(|t| facts.to_shared.get(&t)).copied().unwrap_or(op)
    }
}

/// Where a region lies in a tile: nowhere cut, or cut along one dimension.
pub(crate) fn slice_of(tile: &Region, region: &Region) -> Option<Option<(usize, u64, u64)>> {
    if !tile.holds(region) {
        return None;
    }
    let inner = region.within(tile);
    let cut: Vec<usize> = (0..tile.extents.len()).filter(|d| tile.extents[*d] != inner.extents[*d]).collect();
    match cut.as_slice() {
        [] => Some(None),
        [d] => Some(Some((*d, inner.starts[*d], inner.extents[*d]))),
        _ => None,
    }
}
