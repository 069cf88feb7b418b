//! Loops whose MMAs leave their results in tensor memory: a group of one warp starts them and never waits
//! for them; the unit itself signals barriers when they are done.

use crate::builder::group::shifted;
use crate::builder::kernel::KernelBuilder;
use crate::builder::source::value_of;
use crate::error::Error;
use crate::ir::Moment;
use crate::ir::Region;
use crate::ir::names;
use crate::ir::{Addend, Arrival, Operand, Slot, Tcgen05Mma};
use crate::ir::{BarrierId, CursorId, SlotValue};
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use crate::ir::{Node, Note, Op};
use crate::passes::loops::LoopBuilder;
use crate::passes::loops::expansion::sums_in_tensor_memory;
use crate::passes::steps::program::{Barrier, BufferId as LoopBufferId, BufferKind, GroupSteps, Iteration, Step};
use crate::target::blackwell;
use twill_graph::{GroupId, GroupRole, OpId};
use twill_triton::Stands;
use twill_triton::mlir::{OperationId, ValueId};
use twill_triton::tile::{self, Role};

impl KernelBuilder<'_> {
    /// Whether MMAs leave their results in tensor memory.
    pub fn has_tensor_memory(&self) -> bool {
        self.options.tensor_columns.is_some()
    }

    /// Whether a group does nothing but start MMAs in tensor memory, so that its arrivals are those of the unit.
    pub fn is_issuer(&self, group: GroupId) -> bool {
        self.has_tensor_memory() && self.role(group) == GroupRole::Issue
    }

    /// Whether an operation of a loop is an MMA whose result is in tensor memory.
    pub fn is_tcgen05_mma(&self, index: usize, op: OpId) -> bool {
        let facts = &self.loops[index];
        let is_dot = facts.tile_operation(op).is_some_and(|o| matches!(o.kind, tile::TileOpKind::Dot { .. }));
        is_dot && matches!(facts.problem.graph().operation(op).storage, twill_graph::Storage::Tensor(_))
    }

    /// The loads of an MMA's result from tensor memory in the loop: of how many iterations ago, and which.
    pub fn loads_from_tensor(&self, index: usize, mma: OpId) -> Vec<(u32, OpId)> {
        let facts = &self.loops[index];
        let Some(result) = facts.tile_operation(mma).and_then(|o| o.result) else { return Vec::new() };
        let each = facts.problem.graph().op_ids().zip(facts.stands_for);
        let loads = each.filter_map(|(op, stands)| match *stands {
            Stands::FromTensor(value, distance) if value == result => Some((distance, op)),
            _ => None,
        });
        loads.collect()
    }

    /// Who arrives to release a slot for a group.
    pub fn releasing(&self, group: GroupId) -> Arrival {
        if self.is_issuer(group) { Arrival::Unit } else { Arrival::Threads { warps: self.warps(group) } }
    }
}

impl LoopBuilder<'_, '_> {
    /// The operation that leaves a left operand in tensor memory: its store, or the MMA that made it.
    pub(crate) fn operand_in_tensor(&self, index: usize, made_by: OpId) -> Option<OpId> {
        let facts = &self.reader.lowering.loops[index];
        let tile = facts.tile_operation(made_by)?.result?;
        if facts.to_shared.contains_key(&tile) {
            return None;
        }
        if self.reader.lowering.is_tcgen05_mma(index, made_by) {
            return Some(made_by);
        }
        let mut each = facts.problem.graph().op_ids().zip(facts.stands_for);
        each.find_map(|(op, stands)| matches!(*stands, Stands::ToTensor(value) if value == tile).then_some(op))
    }

    /// A tile goes to or from tensor memory, or to shared memory from where it is.
    pub(crate) fn tensor_movement(&mut self, op: OpId, stands: Stands, iteration: Iteration) -> Result<(), Error> {
        let index = self.index;
        let facts = &self.reader.lowering.loops[index];
        let (module, id) = (self.reader.lowering.module, facts.parts.operation);
        let at = Some((index, iteration));
        let defect = || self.reader.lowering.defect(id, "who makes a tile that is moved");
        let value = match stands {
            Stands::FromTensor(tile, distance) => {
                let dot = facts.tiles.producer(tile).and_then(|p| facts.ops.get(&p)).copied().ok_or_else(defect)?;
                let from = self.reader.slot(index, dot, shifted(iteration, -i64::from(distance)))?;
                let (shape, element) = self.reader.lowering.tile_of(index, op);
                let value = Expression { kind: ExpressionKind::FromTensor(from), shape, element };
                let to = self.produce(op, iteration);
                self.reader.group.act(Op::Let { to, value });
                return Ok(());
            }
            Stands::Accumulator(dot) => {
                let operation = facts.tiles.operation(dot);
                let region = facts.region(module, operation);
                let program = self.reader.lowering.programs.and(operation.sub_tile);
                let adds = operation.statements.last().and_then(|s| module.operation(*s).operands.get(2));
                let adds = *adds.ok_or_else(defect)?;
                self.reader.value(adds, &region, program, at)?
            }
            Stands::ToTensor(tile) | Stands::ToShared(tile) => {
                let made = facts.tiles.producer(tile).map(|p| facts.tiles.operation(p)).ok_or_else(defect)?;
                let region = facts.region(module, made);
                let program = self.reader.lowering.programs.and(made.sub_tile);
                let value = value_of(module, made).ok_or_else(defect)?;
                self.reader.value(value, &region, program, at)?
            }
            Stands::Tile(_) => return Err(defect()),
        };
        let to = self.reader.slot(index, op, iteration)?;
        let is_tensor = self.reader.lowering.program.buffers[to.buffer.index()].is_tensor();
        self.reader.group.act(Op::LocalStore { value, to });
        if !is_tensor {
            self.reader.group.act(Op::FenceProxyAsync);
        }
        Ok(())
    }

    /// An MMA whose result stands in tensor memory.
    pub(crate) fn tcgen05_mma(
        &mut self,
        op: OpId,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
        signals: &[(Barrier, Iteration)],
    ) -> Result<(), Error> {
        if !region.extents.first().is_some_and(|rows| blackwell::MMA_ROWS.contains(rows)) {
            return Err(self.reader.lowering.unsupported(
                id,
                "MMAs of other than 64 or 128 rows in tensor memory",
                "give the block that becomes its rows 128, or a multiple of it and as many sub-tiles",
            ));
        }
        let note = std::mem::take(&mut self.reader.group.note);
        let pairs = self.operands(id, region, program, iteration)?;
        let to = self.reader.slot(self.index, op, iteration)?;
        let mut addend = self.addend(op, id, iteration)?;
        let mut ends = self.unit_signals(signals)?;
        let last = pairs.len().saturating_sub(1);
        self.timestamp(op, Moment::Issue, iteration);
        for (k, (left, right)) in pairs.into_iter().enumerate() {
            let (Operand::Shared(left), Operand::Shared(right)) = (left, right) else {
                return Err(self.reader.lowering.unsupported(
                    id,
                    "a left operand that is computed before the loop",
                    "load it through a tensor descriptor, and scale the result instead",
                ));
            };
            let signals = if k == last { std::mem::take(&mut ends) } else { Vec::new() };
            self.reader.group.note = note.clone();
            let mma = Tcgen05Mma { left, right, to: to.clone(), addend, signals };
            self.reader.group.act(Op::Tcgen05Mma(Box::new(mma)));
            addend = Addend::Value(to.value);
        }
        Ok(())
    }

    fn unit_signals(&mut self, signals: &[(Barrier, Iteration)]) -> Result<Vec<(BarrierId, CursorId)>, Error> {
        let mut list = Vec::new();
        for (barrier, iteration) in signals {
            let iteration = self.iteration(*iteration);
            if let Some(signal) = self.signal(*barrier, iteration)? {
                list.push(signal);
            }
        }
        Ok(list)
    }

    /// What an MMA adds to.
    fn addend(&mut self, op: OpId, id: OperationId, iteration: Iteration) -> Result<Addend, Error> {
        let index = self.index;
        let lowering = &*self.reader.lowering;
        let module = lowering.module;
        let facts = &lowering.loops[index];
        let Some(adds) = module.operation(id).operands.get(2).copied() else { return Ok(Addend::Zero) };
        let is_zero =
            |value: ValueId| module.float_constant(value) == Some(0.0) || module.integer_constant(value) == Some(0);
        // What was stored in its place.
        let stored = facts.problem.graph().op_ids().zip(facts.stands_for).find_map(|(store, stands)| match *stands {
            Stands::Accumulator(dot) if facts.ops.get(&dot) == Some(&op) => Some(store),
            _ => None,
        });
        if let Some(store) = stored {
            return Ok(Addend::Value(SlotValue::result(index, store, iteration)));
        }
        if is_zero(adds) {
            return Ok(Addend::Zero);
        }
        let other = facts.tile_operation(op).and_then(|o| o.operand(Role::Accumulator)).and_then(|o| {
            let made = facts.tiles.producer(*o.tiles.first()?)?;
            Some((*facts.ops.get(&made)?, i64::from(o.distance)))
        });
        match other {
            Some((before, 1)) if before == op => {
                let first = facts.carried(adds).is_some_and(|k| is_zero(facts.parts.initial[k]));
                if !first {
                    return Err(lowering.unsupported(
                        id,
                        "a sum in tensor memory that does not begin at zero",
                        "begin at zero and add the rest after the loop",
                    ));
                }
                let number = IterationNumber { index, iteration };
                let steady =
                    facts.program.warps.iter().find(|w| w.group == self.reader.group.id).map_or(0, |w| w.first);
                Ok(match iteration {
                    Iteration::Absolute(0) => Addend::Zero,
                    Iteration::Absolute(_) => Addend::Before,
                    Iteration::Current(n) | Iteration::End(n) if i64::from(steady) + n > 0 => Addend::Before,
                    Iteration::Current(_) | Iteration::End(_) => Addend::BeforeUnlessFirst(number),
                })
            }
            Some((before, 0)) => Ok(Addend::Value(SlotValue::result(index, before, iteration))),
            _ => Err(lowering.defect(id, "what an MMA in tensor memory adds to")),
        }
    }

    /// Sums that are loaded from tensor memory in the first iteration: their first values are put there before the loop.
    pub(crate) fn initial_sums(&mut self) -> Result<(), Error> {
        let (index, own) = (self.index, self.reader.group.id);
        let (module, parts) = (self.reader.lowering.module, self.reader.lowering.loops[index].parts);
        let sums = sums_in_tensor_memory(self.reader.lowering, own, index);
        self.wait_for_readers()?;
        for (k, producer) in sums {
            let facts = &self.reader.lowering.loops[index];
            let buffer = facts
                .buffer(producer.op)
                .ok_or_else(|| self.reader.lowering.defect(parts.operation, "the place of a sum in tensor memory"))?;
            let planned = facts.program.buffer(buffer);
            if planned.writer != own || planned.depth != 1 {
                let id = module.defining_operation(parts.yielded[k]).unwrap_or(parts.operation);
                return Err(self.reader.lowering.unsupported(
                    id,
                    "a sum that one warp group loads from tensor memory and another stores back",
                    "let one group hold it (--cross-group-registers off)",
                ));
            }
            let at = self.begin_ring(buffer);
            let drained = self.reader.drained(index);
            let value = self.reader.value(parts.initial[k], &producer.region, producer.program, None)?;
            let first = SlotValue::result(index, producer.op, Iteration::Absolute(-1));
            let to = Slot { buffer: at, at: None, slice: None, transposed: false, value: first };
            let note = Note {
                line: module.defining_operation(parts.initial[k]).and_then(|id| names::line(module, id)),
                ..Note::default()
            };
            let section = &mut self.reader.group.sections[index];
            section.extend(drained);
            section.push(Node::Op(Op::LocalStore { value, to }, note));
            if let Some(track) = self.reader.group.slots.get_mut(&at) {
                track.latest = Some(Iteration::Absolute(-1));
            }
        }
        Ok(())
    }

    /// Before a loop whose MMAs write over results of the tile before.
    fn wait_for_readers(&mut self) -> Result<(), Error> {
        let index = self.index;
        if !self.reader.lowering.is_issuer(self.reader.group.id) {
            return Ok(());
        }
        let facts = &self.reader.lowering.loops[index];
        let producers = facts.parts.yielded.iter().filter_map(|v| facts.producers.get(v)).flatten();
        let first = |op: OpId| {
            let buffer = facts.buffer(op).map(|b| facts.program.buffer(b));
            buffer.and_then(|b| b.values.first()).is_some_and(|v| v.op == op)
        };
        let overwrites = producers.into_iter().any(|p| self.reader.lowering.is_tcgen05_mma(index, p.op) && first(p.op));
        if overwrites {
            let nodes = self.reader.drained(index);
            self.reader.group.sections[index].extend(nodes);
        }
        Ok(())
    }

    /// Whether MMAs of the group read what threads have copied by `cp.async`, which the tensor core sees only after a fence (PTX ISA,
    /// `fence.proxy.async`); who stores from registers fences itself.
    pub(crate) fn copied_by_threads(&self, buffer: LoopBufferId) -> bool {
        let (facts, module) = (&self.reader.lowering.loops[self.index], self.reader.lowering.module);
        let Some(op) = facts.program.buffer(buffer).values.first().map(|v| v.op) else { return false };
        let own = self.reader.group.id;
        let is_multiplied =
            || facts.problem.graph().uses(op).any(|d| facts.group(d.to) == own && facts.is_wgmma(module, d.to));
        facts.access(op).is_some()
            && !facts.loads_through_registers(module, op)
            && (self.reader.lowering.is_issuer(own) || is_multiplied())
    }

    /// Whether a buffer is in tensor memory and has one slot, so that what its next slot held is what it holds.
    pub(crate) fn is_single_in_tensor(&self, buffer: LoopBufferId) -> bool {
        let buffer = self.reader.lowering.loops[self.index].program.buffer(buffer);
        matches!(buffer.kind, BufferKind::Tensor(_)) && buffer.depth == 1
    }
}

/// Whether the unit itself says that a value is there.
pub(crate) fn signalled_by_unit(warps: &[GroupSteps], op: OpId, buffer: LoopBufferId) -> bool {
    let full = |step: &Step| match step {
        Step::Issue { op: issued, signals, .. } if *issued == op => {
            signals.iter().any(|(b, _)| matches!(b, Barrier::Full { buffer: b, .. } if *b == buffer))
        }
        _ => false,
    };
    warps.iter().any(|w| {
        let blocks = w.prologue.iter().chain(&w.epilogue).flat_map(|b| &b.steps);
        blocks.chain(&w.steady).any(full)
    })
}
