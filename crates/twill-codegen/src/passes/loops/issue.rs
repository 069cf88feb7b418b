//! An operation of a loop as code of its group.

use crate::builder::group::shifted;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind, Form, Slot, VariableId, WholeCopy};
use crate::ir::{Moment, Op, Region};
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::{Barrier, BufferId as LoopBufferId, BufferKind, Iteration};
use twill_graph::OpId;
use twill_triton::Stands;
use twill_triton::mlir::{Operation, OperationId, Type};
use twill_triton::tile::{TileOpKind, TileOperation, Transfer};

impl LoopBuilder<'_, '_> {
    /// Code of an operation, with its timestamps.
    pub(crate) fn issue(
        &mut self,
        op: OpId,
        iteration: Iteration,
        signals: &[(Barrier, Iteration)],
    ) -> Result<(), Error> {
        self.take_slots(op, iteration);
        let facts = &self.reader.lowering.loops[self.index];
        let is_synchronous = facts.problem.graph().operation(op).is_synchronous();
        // An MMA may have to wait for its ping-pong slot first, and timestamps its issue itself.
        if !self.is_mma(op) {
            self.timestamp(op, Moment::Issue, iteration);
        }
        self.code(op, iteration, signals)?;
        if is_synchronous {
            self.timestamp(op, Moment::End, iteration);
        }
        Ok(())
    }

    /// The slots that an operation is the first to write.
    fn take_slots(&mut self, op: OpId, iteration: Iteration) {
        let index = self.index;
        let note = std::mem::take(&mut self.reader.group.note);
        let taken: Vec<LoopBufferId> = {
            let buffers = &self.reader.lowering.loops[index].program.buffers;
            let first = |k: &usize| {
                buffers[*k].guarded_by.is_none()
                    && buffers[*k].values.first().is_some_and(|v| v.op == op)
                    && !matches!(buffers[*k].kind, BufferKind::Handoff(_))
            };
            (0..buffers.len()).filter(first).map(LoopBufferId).collect()
        };
        for buffer in taken {
            self.take_slot(buffer, iteration);
        }
        self.reader.group.note = note;
    }

    fn code(&mut self, op: OpId, iteration: Iteration, signals: &[(Barrier, Iteration)]) -> Result<(), Error> {
        let index = self.index;
        let facts = &self.reader.lowering.loops[index];
        let Some(tile) = facts.tile_operation(op).cloned() else { return self.movement(op, iteration) };
        let region = facts.region(self.reader.lowering.module, &tile);
        let program = self.reader.lowering.programs.and(tile.sub_tile);
        let Some(id) = tile.statements.last().copied() else { return Ok(()) };
        match tile.kind {
            TileOpKind::Dot { .. } if self.reader.lowering.is_tcgen05_mma(index, op) => {
                self.tcgen05_mma(op, id, &region, program, iteration, signals)
            }
            TileOpKind::Dot { .. } => self.mma(op, id, &region, program, iteration),
            TileOpKind::Load(transfer) => self.load(op, id, transfer, &region, program, iteration, signals),
            TileOpKind::Store(_) | TileOpKind::AtomicReduce(_) => {
                self.store(op, &tile, id, &region, program, iteration)
            }
            TileOpKind::Elementwise { .. }
            | TileOpKind::Convert
            | TileOpKind::Reduce { .. }
            | TileOpKind::Opaque { .. } => {
                let note = std::mem::take(&mut self.reader.group.note);
                let value = self.computed(op, id, &region, program, iteration)?;
                let to = self.produce(op, iteration);
                self.reader.group.note = note;
                self.reader.group.act(Op::Let { to, value });
                self.prepare_operand(op, to);
                Ok(())
            }
        }
    }

    /// What an operation computes.
    fn computed(
        &mut self,
        op: OpId,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<Expression, Error> {
        let index = self.index;
        let at = Some((index, iteration));
        let facts = &self.reader.lowering.loops[index];
        if let Some(sum) = facts.sums.values().find(|s| s.reduce == op).cloned() {
            let columns = self.reader.lowering.shape(sum.tile).get(1).copied().unwrap_or(8);
            let region = crate::builder::partials::tile_region(region, columns);
            return Ok(crate::builder::partials::partials(self.reader.value(sum.tile, &region, program, at)?));
        }
        if let Some(sum) = facts.sums.get(&op).cloned() {
            let old = self.reader.newest(index, op, shifted(iteration, -1))?;
            let new = self.reader.newest(index, sum.reduce, iteration)?;
            let factor = sum.factor.map(|f| self.reader.value(f, region, program, at)).transpose()?;
            let (old, new) = (self.reader.group.read(old), self.reader.group.read(new));
            return Ok(crate::builder::partials::accumulate(old, factor, new));
        }
        self.reader.apply(id, region, program, at)
    }

    /// A tile that an MMA of the group reads from registers is brought into the form for that at once: it is carried
    /// to the MMA as it is needed there.
    fn prepare_operand(&mut self, op: OpId, made: VariableId) {
        let module = self.reader.lowering.module;
        let facts = &self.reader.lowering.loops[self.index];
        let own = self.reader.group.id;
        let reads = |d: &twill_graph::Dependence| {
            let tile = facts.tile_operation(d.to)?;
            let is_left = tile.operand(twill_triton::tile::Role::Left).is_some_and(|left| {
                let made = facts.tile_operation(op).and_then(|o| o.result);
                left.tiles.len() == 1 && left.tiles.first().copied() == made && !left.is_transposed()
            });
            let columns = tile.result.and_then(|r| facts.tiles.tile(r).shape.last().copied());
            (is_left && facts.group(d.to) == own && facts.is_wgmma(module, d.to)).then_some(columns)?
        };
        let columns: Vec<u64> = facts.problem.graph().uses(op).filter_map(reads).collect();
        for columns in columns {
            let to = self.left_operand(made, columns);
            self.prepared.insert((made, columns), to);
        }
    }

    /// A tile goes to shared memory for MMAs.
    fn movement(&mut self, op: OpId, iteration: Iteration) -> Result<(), Error> {
        let index = self.index;
        let facts = &self.reader.lowering.loops[index];
        let id = facts.parts.operation;
        let stands = facts.stands_for.get(op.index()).copied();
        if let Some(stands) = stands.filter(|_| self.reader.lowering.has_tensor_memory()) {
            return self.tensor_movement(op, stands, iteration);
        }
        let Some(Stands::ToShared(tile)) = stands else {
            return Err(self.reader.lowering.defect(id, "what is moved to shared memory"));
        };
        let producer = facts.tiles.producer(tile).and_then(|p| facts.ops.get(&p)).copied();
        let Some(producer) = producer else { return Err(self.reader.lowering.defect(id, "who makes a stored tile")) };
        let from = self.reader.newest(index, producer, iteration)?;
        let to = self.reader.slot(index, op, iteration)?;
        let value = self.reader.group.read(from);
        self.reader.group.act(Op::LocalStore { value, to });
        self.reader.group.act(Op::FenceProxyAsync);
        let facts = &self.reader.lowering.loops[index];
        let own = self.reader.group.id;
        if facts.problem.graph().uses(op).any(|d| facts.group(d.to) == own) {
            // All warps' rows must be there before one of them starts an MMA.
            self.reader.group.act(Op::GroupSync);
        }
        Ok(())
    }

    /// A result goes to another group through shared memory.
    pub(crate) fn handoff(&mut self, op: OpId, iteration: Iteration, buffer: LoopBufferId) -> Result<(), Error> {
        self.take_slot(buffer, iteration);
        let from = self.reader.newest(self.index, op, iteration)?;
        let to = self.reader.slot(self.index, op, iteration)?;
        let value = self.reader.group.read(from);
        let plain = self.reader.lowering.program.buffers[to.buffer.index()].plain;
        self.reader.group.act(Op::LocalStore { value, to });
        if !plain {
            self.reader.group.act(Op::FenceProxyAsync);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "what a load is made of")]
    fn load(
        &mut self,
        op: OpId,
        id: OperationId,
        transfer: Transfer,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
        signals: &[(Barrier, Iteration)],
    ) -> Result<(), Error> {
        let index = self.index;
        let module = self.reader.lowering.module;
        let operation = module.operation(id);
        if region.extents.is_empty() {
            return Err(self.reader.lowering.unsupported(
                id,
                "a load of a scalar in the loop",
                "load a tile of one row",
            ));
        }
        let tiles = self.reader.lowering.loops[index].tiles;
        let at = Some((index, iteration));
        let full = signals.iter().find_map(|(b, _)| match b {
            Barrier::Full { .. } => self.reader.barrier(index, *b),
            Barrier::Empty { .. } => None,
        });
        let to = self.reader.slot(index, op, iteration)?;
        let Some(full) = full else {
            return Err(self.reader.lowering.unsupported(
                id,
                "a load in the loop of a tile that nothing in the loop reads",
                "leave the load out, or load the tile after the loop",
            ));
        };
        match (transfer, tiles.matrix_tile(id)) {
            (Transfer::Tma, Some(tile)) => {
                let turned = region.before_transposition(&[1, 0]);
                let region = if tile.transposed { &turned } else { region };
                let coordinates = self.reader.tile_origin(id, tile, region, program, at)?;
                let descriptor = self.reader.lowering.matrix_descriptor(tile, &region.extents);
                let to = Slot { transposed: false, ..to };
                self.reader.group.act(Op::TmaLoad { descriptor, coordinates, to, full });
            }
            (Transfer::Tma, None) => {
                let coordinates = self.reader.coordinates(&operation.operands[1..], region, program, at)?;
                let descriptor = self.reader.lowering.descriptor(operation.operands[0], &region.extents, id)?;
                self.reader.group.act(Op::TmaLoad { descriptor, coordinates, to, full });
            }
            (Transfer::Pointer, _) => {
                if let Some(other) = operation.operands.get(2) {
                    let zero = module.float_constant(*other).or(module.integer_constant(*other).map(|_| 0.0));
                    if zero != Some(0.0) {
                        return Err(self.reader.lowering.unsupported(
                            id,
                            "a load in the loop whose masked elements are not zero",
                            "use other=0.0",
                        ));
                    }
                }
                let facts = &self.reader.lowering.loops[index];
                let elements = facts.access(op).map_or(1, |access| access.elements);
                let is_through_registers = facts.loads_through_registers(module, op);
                let (is_turned, lie) = (to.transposed, (to.transposed, elements));
                let to = Slot { transposed: false, ..to };
                if !is_through_registers {
                    let (pointers, mask) = self.addresses(operation, lie, region, program, at)?;
                    let whole = self.whole_copy(id, &to, is_turned, region, program, at)?;
                    self.reader.group.act(Op::CpAsync { pointers, mask, elements, whole, to, full: Some(full) });
                    return Ok(());
                }
                let element = operation.results.first().map_or(Type::Integer(32), |r| self.reader.lowering.element(*r));
                let rows = if is_turned { 1 } else { 0 };
                let mut parts = pieces(region, rows);
                // Indices that the loop loads are read as they lie in their slots.
                if parts.iter().any(|piece| self.pointers_and_mask(operation, piece, program, at).is_err()) {
                    parts = vec![region.clone()];
                }
                for piece in parts {
                    let (pointers, mask) = self.addresses(operation, lie, &piece, program, at)?;
                    let slice =
                        (piece != *region).then(|| (0, piece.starts[rows] - region.starts[rows], piece.extents[rows]));
                    self.load_through_registers(pointers, mask, &element, elements, Slot { slice, ..to.clone() });
                }
                self.reader.group.act(Op::FenceProxyAsync);
                self.arrive_at_full(signals)?;
            }
        }
        Ok(())
    }

    /// What copies a tile in one instruction where it is whole.
    fn whole_copy(
        &mut self,
        id: OperationId,
        to: &Slot,
        is_turned: bool,
        region: &Region,
        program: Option<u32>,
        at: Option<(usize, Iteration)>,
    ) -> Result<Option<Box<WholeCopy>>, Error> {
        let tiles = self.reader.lowering.loops[self.index].tiles;
        let buffer = &self.reader.lowering.program.buffers[to.buffer.index()];
        let bytes = buffer.bytes() / u64::from(buffer.slots.max(1));
        // As they lie in shared memory, and in global memory.
        let row =
            buffer.shape.last().map_or(0, |columns| columns * bytes / buffer.shape.iter().product::<u64>().max(1));
        let least = if row < SECTORS { LEAST_WHOLE_NARROW } else { LEAST_WHOLE };
        let pays = self.reader.lowering.options.whole_tiles && !buffer.plain && bytes >= least;
        let Some(whole) = tiles.whole_tile(id).filter(|whole| pays && whole.tile.transposed == is_turned) else {
            return Ok(None);
        };
        let condition = self.reader.is_whole(id, whole, region, program, at)?;
        let turned = region.before_transposition(&[1, 0]);
        let region = if is_turned { &turned } else { region };
        let coordinates = self.reader.tile_origin(id, &whole.tile, region, program, at)?;
        let descriptor = self.reader.lowering.matrix_descriptor(&whole.tile, &region.extents);
        Ok(Some(Box::new(WholeCopy { condition, descriptor, coordinates })))
    }

    fn pointers_and_mask(
        &mut self,
        load: &Operation,
        region: &Region,
        program: Option<u32>,
        at: Option<(usize, Iteration)>,
    ) -> Result<(Expression, Option<Expression>), Error> {
        let pointers = self.reader.value(load.operands[0], region, program, at)?.without_zeros();
        let mask = load.operands.get(1).map(|m| self.reader.value(*m, region, program, at)).transpose()?;
        Ok((pointers, mask))
    }

    /// Pointers and mask of a part of a tile, as they lie in its slot: turned or not, this many neighbours contiguous.
    fn addresses(
        &mut self,
        load: &Operation,
        (is_turned, elements): (bool, u64),
        region: &Region,
        program: Option<u32>,
        at: Option<(usize, Iteration)>,
    ) -> Result<(Expression, Option<Expression>), Error> {
        let (mut pointers, mut mask) = self.pointers_and_mask(load, region, program, at)?;
        if self.reader.lowering.options.shares.fresh_addresses {
            let group = &mut self.reader.group;
            let here = group.variable("here", &[], Type::Integer(32), Form::Any);
            let zero = Expression { kind: ExpressionKind::UnknownZero, ..Expression::integer(0) };
            // What is noted is of the load.
            let note = std::mem::take(&mut group.note);
            group.act(Op::Let { to: here, value: zero });
            group.note = note;
            let zero = group.read(here);
            // What is contiguous must stay known.
            let except = (elements > 1).then_some(if is_turned { 0 } else { 1 });
            let group = &self.reader.group;
            let from_zero = |x: Expression| x.with_ranges_from(&zero, except, &|id| group.computed(id));
            (pointers, mask) = (from_zero(pointers), mask.map(from_zero));
        }
        Ok(if is_turned { (pointers.turned(), mask.map(Expression::turned)) } else { (pointers, mask) })
    }

    /// A tile, or a part of one, whose neighbours are not proved to be neighbours in memory: `cp.async` copies no single elements of
    /// two bytes.
    fn load_through_registers(
        &mut self,
        pointers: Expression,
        mask: Option<Expression>,
        element: &Type,
        elements: u64,
        to: Slot,
    ) {
        let shape = pointers.shape.clone();
        let zeros = Expression::zeros(&shape, element);
        let other = mask.as_ref().map(|_| Box::new(zeros));
        let kind = ExpressionKind::Load { pointers: Box::new(pointers), mask: mask.map(Box::new), other };
        let group = &mut self.reader.group;
        let loaded = group.variable("loaded", &shape, element.clone(), Form::Neighbours { elements });
        group.act(Op::Let { to: loaded, value: Expression { kind, shape, element: element.clone() } });
        let value = group.read(loaded);
        group.act(Op::LocalStore { value, to });
    }

    /// The group's threads say that a tile is there.
    fn arrive_at_full(&mut self, signals: &[(Barrier, Iteration)]) -> Result<(), Error> {
        for (barrier, iteration) in signals {
            if matches!(barrier, Barrier::Full { .. })
                && let Some((barrier, at)) = self.signal(*barrier, self.iteration(*iteration))?
            {
                self.reader.group.act(Op::MbarrierArrive { barrier, at });
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        op: OpId,
        tile: &TileOperation,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        iteration: Iteration,
    ) -> Result<(), Error> {
        let at = Some((self.index, iteration));
        let is_tma = matches!(tile.kind, TileOpKind::Store(Transfer::Tma) | TileOpKind::AtomicReduce(Transfer::Tma));
        self.reader.store(id, region, program, at)?;
        if is_tma {
            self.reader.group.stores.push((op, iteration));
        }
        Ok(())
    }
}

/// Elements that a copy through registers holds at a time: of 128 threads, each has 32, with a pointer of two registers for each.
pub(crate) const COPIED_ELEMENTS: u64 = 4096;

/// Bytes of a tile, at least, that TMA copies where it is whole. To find out takes some 30 instructions. Measured with 8 KiB: a
/// grouped product of 128 × 256 × 64 tiles is 8 % faster by TMA (H200; before its fence left the loop, kernels were slower by it).
const LEAST_WHOLE: u64 = 4 << 10;
/// The same where a row is shorter than the sectors that threads ask for at once (experts' weights in steps of 32, H100: 15 to 30 %
/// faster by TMA).
const LEAST_WHOLE_NARROW: u64 = 2 << 10;
/// Bytes of four sectors of the L2 cache.
const SECTORS: u64 = 128;

/// Least rows of a piece: a multiple of what a swizzle of shared memory repeats after.
const COPIED_ROWS: u64 = 8;

/// A region cut along dimension `rows` into pieces of which a group holds one at a time.
fn pieces(region: &Region, rows: usize) -> Vec<Region> {
    let (elements, extent) = (region.elements(), region.extents.get(rows).copied().unwrap_or(1));
    let count = (elements / COPIED_ELEMENTS).min(extent / COPIED_ROWS).max(1);
    if region.extents.len() != 2 || extent % count != 0 {
        return vec![region.clone()];
    }
    let piece = |index: u64| {
        let mut piece = region.clone();
        piece.extents[rows] = extent / count;
        piece.starts[rows] += index * (extent / count);
        piece
    };
    (0..count).map(piece).collect()
}
