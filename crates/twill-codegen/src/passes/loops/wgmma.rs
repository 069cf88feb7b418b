//! An MMA of a loop as code of its group: where its operands are, and in which segments.

use crate::builder::group::{InFlightMma, shifted};
use crate::builder::reader::slice_of;
use crate::error::{Error, ONE_SUB_TILE};
use crate::ir::Op;
use crate::ir::Region;
use crate::ir::names;
use crate::ir::{Buffer, Memory, MemoryValue, SlotValue};
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Form, Operand, Slot, VariableId};
use crate::ir::{Moment, Node, Note};
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::Iteration;
use twill_graph::OpId;
use twill_triton::mlir::{OperationId, ValueId};

/// An operand of an MMA and which part of the depth it covers.
struct Segment {
    start: u64,
    extent: u64,
    operand: Operand,
}

impl LoopBuilder<'_, '_> {
    pub(crate) fn mma(
        &mut self,
        op: OpId,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<(), Error> {
        let index = self.index;
        if !self.reader.lowering.loops[index].is_wgmma(self.reader.lowering.module, op) {
            return self.synchronous_mma(op, id, region, program, iteration);
        }
        let note = std::mem::take(&mut self.reader.group.note);
        let at = Some((index, iteration));
        let (lefts, rights) = self.both_segments(id, region, program, iteration)?;
        let Some(accumulator) = self.reader.lowering.module.operation(id).operands.get(2) else {
            return Err(self.reader.lowering.defect(id, "the operands of an MMA"));
        };
        let is_zero = {
            let module = self.reader.lowering.module;
            module.float_constant(*accumulator) == Some(0.0) || module.integer_constant(*accumulator) == Some(0)
        };
        let mut adds_to = if is_zero {
            None
        } else {
            let value = self.reader.value(*accumulator, region, program, at)?;
            let bits = self.reader.lowering.loops[index].mma_bits(self.reader.lowering.module, op);
            let form = Form::Accumulator { columns: region.extents[1], bits };
            // What is carried around the loop, or made otherwise, is held in another way.
            // What an MMA is still adding to, and something else reads, stays as it is: this one adds to a copy.
            let is_read = self.reader.lowering.module.uses(*accumulator).len() > 1;
            let runs = |v: VariableId| self.reader.group.in_flight.iter().any(|f| f.result == v);
            let has_form = |v: VariableId| self.reader.group.variables[v.index()].form == form;
            Some(match value.kind {
                ExpressionKind::Variable(v) if has_form(v) && !(is_read && runs(v)) => v,
                kind => {
                    let value = Expression { kind, ..value };
                    self.wait_for_value(&value);
                    let to = self.reader.group.variable("sum", &value.shape, value.element.clone(), form);
                    self.reader.group.act(Op::Let { to, value });
                    to
                }
            })
        };
        let pairs = self.pair(id, lefts, rights)?;
        let to = self.produce(op, iteration);
        let slot = self.reader.lowering.ping_pong_slot(index, self.reader.group.id, op);
        if let Some(slot) = slot
            && self.held_slot.is_none()
        {
            self.reader.group.act(Op::NamedBarrierSync(slot.own));
        }
        let mut flight = InFlightMma {
            op,
            iteration,
            result: to,
            accumulator: adds_to,
            operands: Vec::new(),
            weight: twill_graph::narrow(pairs.len()),
        };
        self.timestamp(op, Moment::Issue, iteration);
        for (left, right) in pairs {
            // The wait names what the MMA reads from registers, also where it stays there for the next iteration: ptxas puts
            // other values in the place of what it does not see used after the MMA (13.0: wrong results without SWP).
            if let Operand::Registers(v) = left {
                flight.operands.push(v);
            }
            self.reader.group.note = note.clone();
            self.reader.group.act(Op::Wgmma { to, left, right, accumulator: adds_to });
            adds_to = Some(to);
        }
        self.reader.group.in_flight.push(flight);
        self.held_slot = slot;
        self.pass_on();
        Ok(())
    }

    /// After an MMA: gives the slot to the next group unless the next MMA of this code belongs to it.
    fn pass_on(&mut self) {
        let Some(slot) = self.held_slot else { return };
        let goes_on = self.next_mmas.front().is_some_and(|op| {
            let next = self.reader.lowering.ping_pong_slot(self.index, self.reader.group.id, *op);
            next.is_some_and(|n| n.position > slot.position)
        });
        if !goes_on {
            self.reader.group.act(Op::NamedBarrierArrive(slot.next));
            self.held_slot = None;
        }
    }

    /// The operands of an MMA, in parts of equal depth.
    pub(crate) fn operands(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<Vec<(Operand, Operand)>, Error> {
        let (lefts, rights) = self.both_segments(id, region, program, iteration)?;
        self.pair(id, lefts, rights)
    }

    /// Where the parts of both operands of an MMA are.
    fn both_segments(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<(Vec<Segment>, Vec<Segment>), Error> {
        let operands = self.reader.lowering.module.operation(id).operands.clone();
        let [left, right, ..] = operands.as_slice() else {
            return Err(self.reader.lowering.defect(id, "the operands of an MMA"));
        };
        let depth = self.reader.lowering.shape(*left).get(1).copied().unwrap_or(0);
        let lefts = self.segments(id, *left, &region.all_along(1, depth), program, iteration, 1, region.extents[1])?;
        let rights = self.segments(id, *right, &region.all_along(0, depth), program, iteration, 0, 0)?;
        Ok((lefts, rights))
    }

    /// Operands of equal depth next to each other.
    fn pair(
        &mut self,
        id: OperationId,
        lefts: Vec<Segment>,
        rights: Vec<Segment>,
    ) -> Result<Vec<(Operand, Operand)>, Error> {
        let mut bounds: Vec<u64> = lefts.iter().chain(&rights).flat_map(|s| [s.start, s.start + s.extent]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut pairs = Vec::new();
        for pair in bounds.windows(2) {
            let part = |segments: &[Segment], dimension: usize| {
                let s = segments.iter().find(|s| s.start <= pair[0] && pair[1] <= s.start + s.extent)?;
                cut(s, dimension, pair[0], pair[1] - pair[0])
            };
            let both = part(&lefts, 1).zip(part(&rights, 0));
            pairs.push(both.ok_or_else(|| {
                self.reader.lowering.unsupported(id, "operands that are cut differently", ONE_SUB_TILE)
            })?);
        }
        Ok(pairs)
    }

    /// Where the parts of an operand are, along the depth, which is its dimension `along`.
    #[allow(clippy::too_many_arguments, reason = "what an operand is made of")]
    fn segments(
        &mut self,
        id: OperationId,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
        along: usize,
        left_columns: u64,
    ) -> Result<Vec<Segment>, Error> {
        let index = self.index;
        let module = self.reader.lowering.module;
        let facts = &self.reader.lowering.loops[index];
        if let Some(k) = facts.carried(value) {
            let yielded = facts.parts.yielded[k];
            let before = shifted(iteration, -1);
            let found = self.segments(id, yielded, region, program, before, along, left_columns);
            let is_stored = |s: &Segment| matches!(s.operand, Operand::Shared(_));
            // What the first iteration reads is in no slot.
            return match found {
                Ok(segments) if !segments.iter().any(is_stored) => Ok(segments),
                Ok(_) | Err(Error::Defect { .. }) => Err(self.reader.lowering.unsupported(
                    id,
                    "an operand in shared or tensor memory that the loop carries to its next iteration",
                    "load or compute it in the iteration that multiplies it",
                )),
                Err(other) => Err(other),
            };
        }
        if let Some(view) = module.defining_operation(value)
            && module.operation(view).name == "tt.trans"
        {
            let inner = module.operation(view).operands[0];
            let turned = region.before_transposition(&[1, 0]);
            let mut segments = self.segments(id, inner, &turned, program, iteration, 1 - along, 0)?;
            for segment in &mut segments {
                match &mut segment.operand {
                    Operand::Shared(slot) => slot.transposed = !slot.transposed,
                    Operand::Registers(_) => {
                        return Err(self.reader.lowering.defect(id, "a transposed operand in shared memory"));
                    }
                }
            }
            return Ok(segments);
        }
        let producers = facts.producers.get(&value).cloned();
        if let Some(producers) = producers {
            let fits = |p: &crate::builder::source::Producer| p.program.is_none() || p.program == program;
            let mut segments = Vec::new();
            for producer in producers.iter().filter(|p| fits(p)) {
                let Some(part) = producer.region.overlap(region) else { continue };
                let is_load = self.reader.lowering.loops[index].is_load(producer.op);
                let stored = self.reader.stored(index, producer.op);
                let plain_left = along == 1 && left_columns > 0 && part == *region;
                let in_tensor = self.operand_in_tensor(index, producer.op).filter(|_| plain_left);
                let operand = if let Some(op) = in_tensor {
                    Operand::Shared(self.reader.slot(index, op, iteration)?)
                } else if plain_left && self.is_handed_off(producer.op) {
                    let value = self.reader.made(index, value, &part, program, iteration)?;
                    Operand::Registers(self.received_operand(producer.op, value, left_columns))
                } else if !is_load && (stored == producer.op || plain_left) && !self.reader.lowering.has_tensor_memory()
                {
                    let from = self.reader.newest(index, producer.op, iteration)?;
                    Operand::Registers(self.left_operand(from, left_columns))
                } else {
                    let slot = self.reader.slot(index, if is_load { producer.op } else { stored }, iteration)?;
                    Operand::Shared(self.sliced(id, slot, &producer.region, &part)?)
                };
                segments.push(Segment { start: part.starts[along], extent: part.extents[along], operand });
            }
            return Ok(segments);
        }
        let Some(source) = module.defining_operation(value) else {
            return Err(self.reader.lowering.defect(id, "where an operand comes from"));
        };
        if module.operation(source).name == "tt.descriptor_load" && self.reader.lowering.loop_of(value).is_none() {
            let tiles = self.reader.lowering.invariant_tiles(source, region, program)?;
            let mut segments = Vec::new();
            for tile in tiles {
                let Some(part) = self.reader.lowering.invariant_tiles[tile].region.overlap(region) else { continue };
                let can_be =
                    self.reader.lowering.options.operands_in_registers && !self.reader.lowering.has_tensor_memory();
                let in_registers = can_be && along == 1 && left_columns > 0;
                let operand = if in_registers && part == *region {
                    Operand::Registers(self.held_operand(value, tile, &part, program, left_columns)?)
                } else {
                    Operand::Shared(self.reader.invariant_slot(tile, &part)?)
                };
                segments.push(Segment { start: part.starts[along], extent: part.extents[along], operand });
            }
            return Ok(segments);
        }
        let stays = self.reader.lowering.options.shares.operands_in_memory || along == 0 || left_columns == 0;
        if stays && !self.reader.lowering.has_tensor_memory() {
            let slot = self.stored_before(id, value, region, program)?;
            return Ok(vec![Segment { start: 0, extent: region.extents[along], operand: Operand::Shared(slot) }]);
        }
        if along == 1 && left_columns > 0 {
            let operand = self.computed_before(id, value, region, program, left_columns)?;
            return Ok(vec![Segment { start: 0, extent: region.extents[1], operand: Operand::Registers(operand) }]);
        }
        Err(self.reader.lowering.unsupported(
            id,
            "a right operand in tensor memory's kernels that is computed before the loop",
            "load it through a tensor descriptor",
        ))
    }

    fn sliced(&mut self, id: OperationId, slot: Slot, tile: &Region, part: &Region) -> Result<Slot, Error> {
        let slice = slice_of(tile, part).ok_or_else(|| {
            self.reader.lowering.unsupported(id, "an operand that is cut along two dimensions", ONE_SUB_TILE)
        })?;
        // Cut before it is transposed.
        let slice = slice.map(|(d, start, extent)| (if slot.transposed { 1 - d } else { d }, start, extent));
        Ok(Slot { slice, ..slot })
    }

    /// A tile of before the loops that is a left operand in every iteration, loaded to registers once.
    fn held_operand(
        &mut self,
        value: ValueId,
        tile: usize,
        part: &Region,
        program: Option<u32>,
        columns: u64,
    ) -> Result<VariableId, Error> {
        let key = (value, part.clone(), program);
        let form = Form::LeftOperand { columns };
        if let Some(held) = self.reader.group.held.get(&key).copied() {
            return Ok(held);
        }
        let slot = self.reader.invariant_slot(tile, part)?;
        let stem =
            self.reader.lowering.program.buffers[slot.buffer.index()].name.trim_end_matches("_buffer").to_owned();
        let element = self.reader.lowering.element(value);
        let to = self.reader.group.variable(&format!("{stem}_held"), &part.extents, element.clone(), form);
        self.reader.group.define(to, 0);
        let value = Expression { kind: ExpressionKind::FromShared(slot), shape: part.extents.clone(), element };
        let node = Node::Op(Op::Let { to, value }, Note::default());
        self.reader.group.sections[0].push(node);
        self.reader.group.held.insert(key, to);
        Ok(to)
    }

    /// A tile that is computed before the loop and is a left operand in every iteration: it is brought into the form for that once.
    fn computed_before(
        &mut self,
        id: OperationId,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
        columns: u64,
    ) -> Result<VariableId, Error> {
        let key = ((value, region.clone(), program), columns);
        if let Some(known) = self.reader.group.left_operands.get(&key).copied() {
            return Ok(known);
        }
        let tile = self.reader.value(value, region, program, None)?;
        let section = self.reader.group.section_of(&tile);
        if section > self.index {
            return Err(self.reader.lowering.defect(id, "a left operand of before the loop"));
        }
        let stem = names::of_value(self.reader.lowering.module, value);
        let form = Form::LeftOperand { columns };
        let to = self.reader.group.variable(&format!("{stem}_left"), &tile.shape, tile.element.clone(), form);
        self.reader.group.define(to, section);
        self.reader.group.place(section, Node::Op(Op::Let { to, value: tile }, Note::default()));
        self.reader.group.left_operands.insert(key, to);
        Ok(to)
    }

    /// A tile that is computed before the loop and is an operand in every iteration: it is stored to shared memory once.
    fn stored_before(
        &mut self,
        id: OperationId,
        value: ValueId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Slot, Error> {
        let number = self.reader.lowering.module.defining_operation(value).map_or(id, |made| made);
        let value_of = SlotValue::outside(MemoryValue::Staged(twill_graph::narrow(number.index())));
        let slot = |buffer| Slot { buffer, at: None, slice: None, transposed: false, value: value_of };
        let key = (value, region.clone(), program);
        if let Some(known) = self.reader.group.stored_operands.get(&key).copied() {
            return Ok(slot(known));
        }
        let tile = self.reader.value(value, region, program, None)?;
        let section = self.reader.group.section_of(&tile);
        if section > self.index {
            return Err(self.reader.lowering.defect(id, "an operand of before the loop"));
        }
        let stem = names::of_value(self.reader.lowering.module, value);
        let buffer = self.reader.lowering.buffer(Buffer {
            name: format!("{stem}_operand_{}_buffer", self.reader.group.id.index()),
            shape: tile.shape.clone(),
            element: tile.element.clone(),
            slots: 1,
            least_slots: 1,
            memory: Memory::Shared,
            plain: false,
            source: self.reader.lowering.place(id).source,
        });
        // All warps are done with the tile before, and have stored theirs before one of them starts an MMA.
        let store =
            [Op::GroupSync, Op::LocalStore { value: tile, to: slot(buffer) }, Op::FenceProxyAsync, Op::GroupSync];
        for op in store {
            self.reader.group.place(section, Node::Op(op, Note::default()));
        }
        self.reader.group.stored_operands.insert(key, buffer);
        Ok(slot(buffer))
    }

    /// Whether a tile comes to the group from another one's registers.
    fn is_handed_off(&self, op: OpId) -> bool {
        let facts = &self.reader.lowering.loops[self.index];
        let elsewhere = facts.group(op) != self.reader.group.id;
        elsewhere && !facts.is_load(op) && !self.reader.lowering.has_tensor_memory()
    }

    /// A tile of another group that a handoff buffer passes on, as an MMA reads its left operand.
    fn received_operand(&mut self, op: OpId, value: Expression, columns: u64) -> VariableId {
        let to = match self.received.get(&(op, columns)) {
            Some(to) => *to,
            None => {
                let name = &self.reader.lowering.loops[self.index].problem.graph().operation(op).name;
                let (name, form) = (format!("{name}_received"), Form::LeftOperand { columns });
                let to = self.reader.group.variable(&name, &value.shape, value.element.clone(), form);
                self.received.insert((op, columns), to);
                to
            }
        };
        self.release_name(to);
        self.reader.group.act(Op::Let { to, value });
        to
    }

    /// A tile in registers as an MMA reads its left operand.
    pub(crate) fn left_operand(&mut self, from: VariableId, columns: u64) -> VariableId {
        if let Some(prepared) = self.prepared.remove(&(from, columns)) {
            return prepared;
        }
        // The same name in every iteration, whatever other forms the tile is read in.
        let to = match self.operands.get(&(from, columns)) {
            Some(to) => *to,
            None => {
                let variable = self.reader.group.variables[from.index()].clone();
                let (name, form) = (format!("{}_operand", variable.name), Form::LeftOperand { columns });
                let to = self.reader.group.variable(&name, &variable.shape, variable.element, form);
                self.operands.insert((from, columns), to);
                to
            }
        };
        self.release_name(to);
        let value = self.reader.group.read(from);
        self.reader.group.act(Op::Let { to, value });
        to
    }
}

/// Part of a segment along the depth.
fn cut(segment: &Segment, dimension: usize, start: u64, extent: u64) -> Option<Operand> {
    if segment.start == start && segment.extent == extent {
        return Some(segment.operand.clone());
    }
    match &segment.operand {
        Operand::Registers(_) => None,
        Operand::Shared(slot) => {
            let dimension = if slot.transposed { 1 - dimension } else { dimension };
            let slice = match slot.slice {
                None => Some((dimension, start - segment.start, extent)),
                Some((d, from, _)) if d == dimension => Some((d, from + start - segment.start, extent)),
                Some(_) => return None,
            };
            Some(Operand::Shared(Slot { slice, ..slot.clone() }))
        }
    }
}
