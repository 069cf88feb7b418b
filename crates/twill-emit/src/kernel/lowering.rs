//! What all groups of a kernel have in common while their programs are made.

use super::Options;
use super::input::LoopFacts;
use super::names;
use super::program::{Amount, Arrival, Barriers, Buffer, Descriptor, DescriptorId, Matrix, Memory};
use super::region::Region;
use crate::error::Error;
use crate::program::{BufferId as LoopBufferId, BufferKind};
use std::collections::HashMap;
use twill_check::protocol::{BarrierId, BufferId, Tag};
use twill_graph::{GroupId, GroupRole, OpId};
use twill_triton::mlir::{BlockId, Definition, Module, OperationId, Type, ValueId};
use twill_triton::tile::{Kind, Origin, Transfer};
use twill_triton::{Kernel, Place};

/// Warps of a group whose threads copy tiles.
const COPYING_WARPS: u32 = 4;

/// A part of a tile that is loaded before the loops and stays in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct InvariantTile {
    /// The load.
    pub load: OperationId,
    pub region: Region,
    pub program: Option<u32>,
    pub buffer: BufferId,
    pub full: BarrierId,
    pub empty: BarrierId,
    pub readers: Vec<GroupId>,
}

/// What all groups share.
pub(crate) struct Lowering<'a> {
    pub kernel: &'a Kernel,
    pub module: &'a Module,
    pub block: BlockId,
    pub loops: Vec<LoopFacts<'a>>,
    pub options: Options,
    pub smem_fallback: super::SmemFallback,
    pub programs: Option<(u32, u32)>,
    pub buffers: Vec<Buffer>,
    pub barriers: Vec<Barriers>,
    pub descriptors: Vec<Descriptor>,
    pub pieces: Vec<InvariantTile>,
    /// The buffer behind a buffer of a loop's program.
    pub of_loop: HashMap<(usize, LoopBufferId), BufferId>,
    /// By loop, buffer and value.
    pub fulls: HashMap<(usize, BufferId, OpId), BarrierId>,
    pub empties: HashMap<BufferId, BarrierId>,
    pub named_barriers: Vec<(String, u32)>,
    pub pingpong: Option<super::pingpong::PingPong>,
    /// By loop, where it leaves results in tensor memory that are read after it.
    pub results: HashMap<usize, super::epilogue::Results>,
    /// Storage of tiles of before the loops that a group stores results from.
    pub reused_tiles: HashMap<BufferId, GroupId>,
    /// Results in registers that other groups read.
    pub exports: Vec<super::epilogue::Export>,
    /// Signalled when all MMAs in tensor memory are done, where nothing else says so at the end.
    pub end_of_mmas: Option<BarrierId>,
    /// The group that works on results where no loop has a group that computes.
    pub epilogue: Option<GroupId>,
}

impl<'a> Lowering<'a> {
    pub fn place(&self, id: OperationId) -> Box<Place> {
        Place::of(self.module, id)
    }

    pub fn unsupported(&self, id: OperationId, what: impl Into<String>, way_out: &'static str) -> Error {
        Error::Unsupported { place: self.place(id), what: what.into(), way_out }
    }

    pub fn defect(&self, id: OperationId, what: impl Into<String>) -> Error {
        Error::Defect { place: self.place(id), what: what.into() }
    }

    pub fn shape(&self, value: ValueId) -> Vec<u64> {
        self.module.type_of(value).known_shape().unwrap_or_default()
    }

    pub fn element(&self, value: ValueId) -> Type {
        self.module.type_of(value).element().clone()
    }

    /// The loop whose body's top level defines a value.
    pub fn loop_of(&self, value: ValueId) -> Option<usize> {
        let block = match self.module.definition(value) {
            Definition::Result { operation, .. } => self.module.operation(operation).block,
            Definition::Argument { block, .. } => Some(block),
        };
        self.loops.iter().position(|l| Some(l.parts.body) == block)
    }

    /// The loop and position of a value that is the result of a scheduled loop.
    pub fn loop_result(&self, value: ValueId) -> Option<(usize, usize)> {
        self.loops.iter().enumerate().find_map(|(k, l)| Some((k, l.parts.results.iter().position(|r| *r == value)?)))
    }

    pub fn warps(&self, group: GroupId) -> u32 {
        if self.copies_by_threads(group) {
            return COPYING_WARPS;
        }
        let of = |l: &LoopFacts| l.schedule.groups.iter().find(|g| g.id == group).map(|g| g.warps);
        self.loops.iter().find_map(of).unwrap_or(4)
    }

    /// Whether threads of a group that only loads copy tiles of two dimensions: one warp has neither the registers for the
    /// addresses nor the instructions. Four warps are allocated for it anyhow.
    pub fn copies_by_threads(&self, group: GroupId) -> bool {
        let copies = |l: &LoopFacts, op: OpId| {
            let tile = l.tile_operation(op).filter(|o| matches!(o.kind, Kind::Load(Transfer::Pointer)));
            let shape = tile.and_then(|o| o.result).map(|result| l.tiles.tile(result).shape.as_slice());
            l.group(op) == group && shape.is_some_and(|s| s.iter().filter(|extent| **extent > 1).count() > 1)
        };
        let copies = |l: &LoopFacts| l.problem.graph().op_ids().any(|op| copies(l, op));
        self.role(group) != GroupRole::Compute && self.loops.iter().any(copies)
    }

    pub fn role(&self, group: GroupId) -> GroupRole {
        let of = |l: &LoopFacts| l.schedule.groups.iter().find(|g| g.id == group).map(|g| g.role);
        self.loops.iter().find_map(of).unwrap_or(GroupRole::Compute)
    }

    pub fn barrier(&mut self, name: String, slots: u32, arrivals: Vec<Arrival>) -> BarrierId {
        let id = BarrierId(u32::try_from(self.barriers.len()).unwrap_or(u32::MAX));
        let name = names::unique(&name, |name| self.barriers.iter().any(|b| b.name.eq_ignore_ascii_case(name)));
        self.barriers.push(Barriers { name, slots, arrivals });
        id
    }

    pub fn buffer(&mut self, mut buffer: Buffer) -> BufferId {
        let id = BufferId(u32::try_from(self.buffers.len()).unwrap_or(u32::MAX));
        // Operations `x.0` and `x_0` are two, and Python has one name for both.
        buffer.name =
            names::unique(&buffer.name, |name| self.buffers.iter().any(|b| b.name.eq_ignore_ascii_case(name)));
        self.buffers.push(buffer);
        id
    }

    /// The descriptor of a parameter for blocks of a shape.
    pub fn descriptor(&mut self, value: ValueId, block: &[u64], id: OperationId) -> Result<DescriptorId, Error> {
        let Definition::Argument { block: of, .. } = self.module.definition(value) else {
            return Err(self.unsupported(
                id,
                "tensor descriptors that are made inside the kernel",
                "pass the descriptor as an argument",
            ));
        };
        debug_assert_eq!(of, self.block);
        let parameter = self.module.value(value).name.clone();
        let element = match self.module.type_of(value) {
            Type::TensorDescriptor(block) => block.element().clone(),
            other => other.clone(),
        };
        Ok(self.described(parameter, block, element, None))
    }

    /// The descriptor of a matrix behind a pointer for blocks of a shape.
    pub fn matrix_descriptor(&mut self, tile: &twill_triton::kernel::MatrixTile, block: &[u64]) -> DescriptorId {
        use twill_triton::kernel::Amount as Known;
        let matrix = &tile.matrix;
        let name = |value: ValueId| self.module.value(value).name.clone();
        let amount = |known: Known| match known {
            Known::Argument(value) => Amount::Parameter(name(value)),
            Known::Constant(number) => Amount::Constant(number),
        };
        let element = match self.module.type_of(matrix.base) {
            Type::Pointer { pointee, .. } => (**pointee).clone(),
            other => other.clone(),
        };
        let (parameter, extents) = (name(matrix.base), matrix.extents.map(amount));
        let natural = tile.natural.iter().map(|value| name(*value)).collect();
        let matrix = Matrix { extents, stride: amount(matrix.stride), natural };
        self.described(parameter, block, element, Some(matrix))
    }

    fn described(&mut self, parameter: String, block: &[u64], element: Type, matrix: Option<Matrix>) -> DescriptorId {
        let alike = |d: &Descriptor| d.parameter == parameter && d.block == block;
        let found = self.descriptors.iter().position(|d| alike(d) && d.matrix == matrix);
        let others = self.descriptors.iter().filter(|d| alike(d)).count();
        let position = found.unwrap_or_else(|| {
            let extents: Vec<String> = block.iter().map(u64::to_string).collect();
            let mut name = format!("{parameter}_{}", extents.join("x"));
            if others > 0 {
                // The same tensor seen as another matrix.
                name = format!("{name}_{others}");
            }
            self.descriptors.push(Descriptor { name, parameter, block: block.to_vec(), element, matrix });
            self.descriptors.len() - 1
        });
        DescriptorId(u32::try_from(position).unwrap_or(u32::MAX))
    }

    /// A number for what an operation of a loop makes.
    pub fn value_number(index: usize, op: OpId) -> u32 {
        u32::try_from((index + 1) * 4096 + op.index()).unwrap_or(u32::MAX)
    }

    /// The part of a tile of before the loops that a group gets at once: cut along the rows that the loops are
    /// cut along.
    pub fn invariant_tiles(
        &mut self,
        load: OperationId,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Vec<usize>, Error> {
        let value = self.module.operation(load).results[0];
        let shape = self.shape(value);
        let mut piece = shape.clone();
        if self.programs.is_none() {
            let cut = self.loops.iter().find_map(|l| Some((cut_along(l, value)?, l.tiles.sub_tiles().max(1))));
            if let Some((d, parts)) = cut
                && shape[d].is_multiple_of(u64::from(parts))
            {
                piece[d] = shape[d] / u64::from(parts);
            }
        }
        let program = program.filter(|_| self.depends_on_program(value));
        let count = shape.iter().zip(&piece).map(|(w, p)| w / p).product::<u64>();
        let mut found = Vec::new();
        for k in 0..u32::try_from(count).unwrap_or(1) {
            let part = Region::piece(&shape, &piece, k);
            if part.overlap(region).is_none() {
                continue;
            }
            let known = self.pieces.iter().position(|p| p.load == load && p.region == part && p.program == program);
            let position = match known {
                Some(position) => position,
                None => self.new_invariant_tile(load, value, part, program, (count > 1).then_some(k))?,
            };
            found.push(position);
        }
        Ok(found)
    }

    fn new_invariant_tile(
        &mut self,
        load: OperationId,
        value: ValueId,
        region: Region,
        program: Option<u32>,
        number: Option<u32>,
    ) -> Result<usize, Error> {
        let stem = super::names::of_value(self.module, value);
        let name = match number.or(program) {
            Some(k) => format!("{stem}_{k}"),
            None => stem,
        };
        let element = self.element(value);
        let buffer = Buffer {
            name: format!("{name}_buffer"),
            shape: region.extents.clone(),
            element,
            slots: 1,
            least_slots: 1,
            memory: Memory::Shared,
            plain: false,
            source: self.place(load).source,
        };
        let buffer = self.buffer(buffer);
        let full = self.barrier(format!("{name}_full"), 1, vec![Arrival::Unit]);
        let empty = self.barrier(format!("{name}_empty"), 1, Vec::new());
        self.pieces.push(InvariantTile { load, region, program, buffer, full, empty, readers: Vec::new() });
        Ok(self.pieces.len() - 1)
    }

    /// The number of an outer piece as a value.
    pub fn invariant_tag(index: usize) -> Tag {
        let value = (1 << 24) + u32::try_from(index).unwrap_or(0);
        Tag { value, iteration: twill_check::protocol::Iteration::Absolute(0) }
    }

    /// Whether a value differs between the programs that share the CTA.
    pub fn depends_on_program(&self, value: ValueId) -> bool {
        let Some((_, axis)) = self.programs else { return false };
        let mut seen = vec![false; self.module.value_count()];
        let mut next = vec![value];
        while let Some(value) = next.pop() {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match self.module.definition(value) {
                Definition::Result { operation, .. } => {
                    let op = self.module.operation(operation);
                    if op.name == "tt.get_program_id" && super::apply::program_axis(op) == axis {
                        return true;
                    }
                    next.extend(&op.operands);
                    if let Some(parts) = self.module.for_loop(operation) {
                        next.extend(parts.yielded);
                    }
                }
                Definition::Argument { .. } => {
                    for l in &self.loops {
                        if let Some(k) = l.carried(value) {
                            next.push(l.parts.yielded[k]);
                            next.push(l.parts.initial[k]);
                        }
                    }
                }
            }
        }
        false
    }

    /// Buffers and barriers of the loops; loops that use theirs alike share them.
    pub fn plan_loops(&mut self) -> Result<(), Error> {
        for index in 0..self.loops.len() {
            for number in 0..self.loops[index].program.buffers.len() {
                self.plan_buffer(index, LoopBufferId(number))?;
            }
        }
        Ok(())
    }

    fn plan_buffer(&mut self, index: usize, id: LoopBufferId) -> Result<(), Error> {
        let facts = &self.loops[index];
        let buffer = facts.program.buffer(id).clone();
        let op = buffer.values[0].op;
        let graph = facts.problem.graph();
        let name: String =
            graph.operation(op).name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let suffix = match buffer.kind {
            BufferKind::Handoff(_) => "_handoff",
            BufferKind::Order(_) => "_order",
            _ => "",
        };
        let name = format!("{name}{suffix}");
        let (mut shape, element) = self.tile_of(index, op);
        if facts.is_turned(op) {
            shape.reverse();
        }
        let read_by_unit = self.is_read_by_unit(index, op);
        let arrivals_empty: Vec<Arrival> = buffer.released_by.iter().map(|g| self.releasing(*g)).collect();
        let is_order = matches!(buffer.kind, BufferKind::Order(_));
        let wanted = Buffer {
            name: format!("{name}_buffer"),
            shape,
            // Shared memory has no elements of one bit.
            element: if element == Type::Integer(1) { Type::Integer(8) } else { element },
            slots: match buffer.kind {
                BufferKind::Ring(_) => buffer.depth.saturating_sub(self.smem_fallback.fewer_slots).max(1),
                _ => buffer.depth,
            },
            least_slots: 1,
            memory: match buffer.kind {
                BufferKind::Tensor(columns) => Memory::Tensor { columns: columns.0 },
                _ => Memory::Shared,
            },
            plain: !read_by_unit && !is_tma(facts, op),
            source: graph.operation(op).source.clone(),
        };
        let shared = self.of_loop.iter().find(|((other, _), at)| {
            let have = &self.buffers[at.index()];
            *other < index && have.name == wanted.name && have.shape == wanted.shape && have.element == wanted.element
        });
        let shared = shared.map(|(key, at)| (*key, *at)).filter(|((other, theirs), _)| {
            let theirs = self.loops[*other].program.buffer(*theirs);
            theirs.writer == buffer.writer && theirs.released_by == buffer.released_by
        });
        let at = match shared {
            Some((_, at)) => {
                let slots = self.buffers[at.index()].slots.max(wanted.slots);
                self.set_slots(at, slots);
                at
            }
            None => self.buffer(wanted),
        };
        self.of_loop.insert((index, id), at);
        let slots = self.buffers[at.index()].slots;
        if !buffer.released_by.is_empty() && !self.empties.contains_key(&at) {
            let barrier = self.barrier(format!("{name}_empty"), slots, arrivals_empty);
            self.empties.insert(at, barrier);
        }
        for (position, value) in buffer.values.iter().enumerate().filter(|(_, v)| v.shared) {
            let facts = &self.loops[index];
            let barrier_name = if buffer.values.len() > 1 {
                format!("{}_full", facts.problem.graph().operation(value.op).name.replace('.', "_"))
            } else {
                format!("{name}_full")
            };
            let writer = self.warps(facts.group(value.op));
            let by_unit = self.is_issuer(facts.group(value.op))
                || super::tensor::signalled_by_unit(&facts.program.warps, value.op, id) && !facts.is_load(value.op);
            let arrival = if is_tma(facts, value.op) || by_unit {
                Arrival::Unit
            } else if facts.is_load(value.op) && !is_order {
                Arrival::EachThread { warps: writer }
            } else {
                Arrival::Threads { warps: writer }
            };
            let known = shared.and_then(|((other, theirs), at)| {
                let theirs = &self.loops[other].program.buffer(theirs).values;
                let same = theirs.get(position).filter(|_| theirs.len() == buffer.values.len())?;
                self.fulls.get(&(other, at, same.op)).copied()
            });
            let barrier = match known {
                Some(barrier) => barrier,
                None => self.barrier(barrier_name, slots, vec![arrival]),
            };
            self.fulls.insert((index, at, value.op), barrier);
        }
        Ok(())
    }

    /// Gives a ring more slots.
    pub fn set_slots(&mut self, at: BufferId, slots: u32) {
        self.buffers[at.index()].slots = slots;
        let full: Vec<BarrierId> = self.fulls.iter().filter(|((_, b, _), _)| *b == at).map(|(_, id)| *id).collect();
        for id in full.into_iter().chain(self.empties.get(&at).copied()) {
            self.barriers[id.index()].slots = slots;
        }
    }

    /// Shape and element of what an operation of a loop leaves in memory.
    pub fn tile_of(&self, index: usize, op: OpId) -> (Vec<u64>, Type) {
        let facts = &self.loops[index];
        let tiles = facts.tiles;
        let tile = match facts.stands_for[op.index()] {
            twill_triton::Stands::Tile(id) => tiles.operation(id).result,
            twill_triton::Stands::ToShared(v) | twill_triton::Stands::ToTensor(v) => Some(v),
            twill_triton::Stands::FromTensor(v, _) => Some(v),
            twill_triton::Stands::Accumulator(id) => tiles.operation(id).result,
        };
        let Some(tile) = tile else { return (Vec::new(), Type::Integer(32)) };
        let value = tiles.producer(tile).and_then(|id| super::input::value_of(self.module, tiles.operation(id)));
        let element = value.map_or(Type::Integer(32), |v| self.element(v));
        (tiles.tile(tile).shape.clone(), element)
    }

    /// Whether the tensor core or TMA reads what an operation leaves in memory.
    fn is_read_by_unit(&self, index: usize, op: OpId) -> bool {
        let facts = &self.loops[index];
        facts.problem.graph().uses(op).any(|d| {
            facts.tile_operation(d.to).is_some_and(|o| {
                matches!(o.kind, Kind::Dot { .. } | Kind::Store(Transfer::Tma) | Kind::AtomicReduce(Transfer::Tma))
            })
        })
    }
}

/// The dimension of a tile of before the loop along which its readers' sub-tiles cut it.
pub(crate) fn cut_along(facts: &LoopFacts<'_>, value: ValueId) -> Option<usize> {
    let is = |origin: &Origin| matches!(origin, Origin::Invariant { value: v, .. } if *v == value);
    let mut operands = facts.tiles.operations().iter().flat_map(|op| &op.operands);
    operands.find_map(|operand| {
        let reads = operand.tiles.iter().any(|t| is(&facts.tiles.tile(*t).origin));
        let row = operand.row_dimension.filter(|_| reads)?;
        operand.dimensions.get(row).copied().flatten()
    })
}

/// Whether TMA brings what an operation makes.
pub(crate) fn is_tma(facts: &LoopFacts<'_>, op: OpId) -> bool {
    facts.tile_operation(op).is_some_and(|o| matches!(o.kind, Kind::Load(Transfer::Tma)))
}
