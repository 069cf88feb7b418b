//! What all groups of a kernel have in common while their programs are made.

use crate::builder::declarations::{loop_of_program, parameters};
use crate::builder::enclosing::{EnclosingLoop, loops_around};
use crate::builder::group::GroupBuilder;
use crate::builder::planned::{Export, InvariantTile, LoopStorage, PingPong, ResultBarriers};
use crate::builder::source::{LoopFacts, ScheduledLoop};
use crate::error::Error;
use crate::ir::names;
use crate::ir::{Arrival, Barriers, Buffer, Group, TileScheduler, WarpProgram};
use crate::ir::{BarrierId, BufferId};
use crate::options::{Options, SmemFallback};
use crate::passes::steps::program::{BufferId as LoopBufferId, BufferKind};
use std::collections::HashMap;
use twill_graph::{GroupId, GroupRole, OpId};
use twill_triton::mlir::{BlockId, Definition, Module, OperationId, Type, ValueId};
use twill_triton::tile::{TileOpKind, Transfer};
use twill_triton::{AxisInfos, Kernel, OperationLocation};

/// Warps of a group whose threads copy tiles.
const COPYING_WARPS: u32 = 4;

/// A warp program while passes build it, and what they have found out for each other.
pub(crate) struct KernelBuilder<'a> {
    pub kernel: &'a Kernel,
    pub module: &'a Module,
    /// The block of the pipelined loops: the kernel's, or the body of the innermost loop around them.
    pub block: BlockId,
    /// The loops around the pipelined ones, the outermost first.
    pub enclosing: Vec<EnclosingLoop<'a>>,
    pub loops: Vec<LoopFacts<'a>>,
    /// Which elements of tiles are neighbours.
    pub axis_infos: AxisInfos<'a>,
    pub options: Options,
    pub smem_fallback: SmemFallback,
    /// Programs of the grid that share a CTA: how many, and along which axis.
    pub programs: Option<(u32, u32)>,
    /// The program as far as it is built.
    pub program: WarpProgram,
    /// The groups' code as far as it is built, in the order of `program.groups` once these are complete.
    pub groups: Vec<GroupBuilder>,
    /// By `assign-buffers` and `place-barriers`.
    pub storage: LoopStorage,
    pub invariant_tiles: Vec<InvariantTile>,
    /// By `pingpong`.
    pub pingpong: Option<PingPong>,
    /// By loop, where it leaves results in tensor memory that are read after it; by `epilogue-barriers`.
    pub result_barriers: HashMap<usize, ResultBarriers>,
    /// Storage of invariant tiles that a group stores results from.
    pub reused_tiles: HashMap<BufferId, GroupId>,
    /// Results in registers that other groups read.
    pub exports: Vec<Export>,
    /// Signalled when all MMAs in tensor memory are done, where nothing else says so at the end.
    pub end_of_mmas: Option<BarrierId>,
    /// The group that works on results where no loop has a group that computes.
    pub epilogue: Option<GroupId>,
}

impl<'a> KernelBuilder<'a> {
    /// A program without code: its name, parameters, loops and tiles.
    pub fn new(
        kernel: &'a Kernel,
        loops: &[ScheduledLoop<'a>],
        options: &Options,
        smem_fallback: SmemFallback,
    ) -> Result<KernelBuilder<'a>, Error> {
        let module = kernel.module();
        let Some(function) = module.body(kernel.function()) else {
            return Err(Error::Defect {
                place: OperationLocation::of(module, kernel.function()),
                what: "a body".into(),
            });
        };
        let infos = AxisInfos::new(module, kernel.function());
        let facts: Option<Vec<LoopFacts<'_>>> =
            loops.iter().map(|l| LoopFacts::new(module, &infos, *l, options)).collect();
        let loops = facts.unwrap_or_default();
        let enclosing = loops.first().and_then(|l| loops_around(module, kernel.function(), l.parts.operation));
        let enclosing = enclosing.unwrap_or_default();
        let block = enclosing.last().map_or(function, |l| l.body);
        let program = WarpProgram {
            name: names::identifier(kernel.name()),
            parameters: parameters(module, kernel.function()),
            loops: loops.iter().enumerate().map(|(index, l)| loop_of_program(kernel, index, l)).collect(),
            descriptors: Vec::new(),
            buffers: Vec::new(),
            barriers: Vec::new(),
            named_barriers: Vec::new(),
            groups: Vec::new(),
            tile_scheduler: TileScheduler::of(options),
            cluster: None,
            trace: None,
            dependent_launch: kernel.has_dependent_launch(),
        };
        Ok(KernelBuilder {
            kernel,
            module,
            block,
            enclosing,
            loops,
            axis_infos: infos,
            options: options.clone(),
            smem_fallback,
            programs: options.programs,
            program,
            groups: Vec::new(),
            storage: LoopStorage::default(),
            invariant_tiles: Vec::new(),
            pingpong: None,
            result_barriers: HashMap::new(),
            reused_tiles: HashMap::new(),
            exports: Vec::new(),
            end_of_mmas: None,
            epilogue: None,
        })
    }

    /// All groups of the schedules, and the one for the epilogue alone if there is one.
    pub fn group_ids(&self) -> Vec<GroupId> {
        let mut ids: Vec<GroupId> = self.loops.iter().flat_map(|l| l.schedule.groups.iter().map(|g| g.id)).collect();
        ids.sort();
        ids.dedup();
        ids.extend(self.epilogue);
        ids
    }

    /// The name of what a buffer of a loop's steps holds.
    pub fn name_of_buffer(&self, index: usize, id: LoopBufferId) -> String {
        let facts = &self.loops[index];
        let buffer = facts.program.buffer(id);
        let name = &facts.problem.graph().operation(buffer.values[0].op).name;
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let suffix = match buffer.kind {
            BufferKind::Handoff(_) => "_handoff",
            BufferKind::Order(_) => "_order",
            _ => "",
        };
        name + suffix
    }

    /// The buffer whose cursors stand at the slots of a buffer of a loop's steps: its own, or those of the ring whose
    /// barriers guard it.
    pub fn ring_of(&self, index: usize, id: LoopBufferId) -> crate::ir::BufferId {
        let guard = self.loops[index].program.buffer(id).guarded_by.unwrap_or(id);
        self.storage.buffers[&(index, guard)]
    }

    /// Puts the groups' code, as far as it is built, into the program.
    pub fn show_groups(&mut self) {
        self.program.groups = self.groups.iter().map(|group| self.group_of_program(group)).collect();
    }

    fn group_of_program(&self, group: &GroupBuilder) -> Group {
        let role = self.role(group.id);
        let name = match role {
            GroupRole::Issue if self.is_issuer(group.id) => "mma".to_owned(),
            GroupRole::Issue | GroupRole::VariableLatency => "load".to_owned(),
            GroupRole::Compute if self.epilogue == Some(group.id) => "epilogue".to_owned(),
            GroupRole::Compute => format!("compute_{}", group.id.index()),
        };
        Group {
            id: group.id,
            name,
            warps: self.warps(group.id),
            registers: 0,
            variables: group.variables.clone(),
            cursors: group.cursors.clone(),
            trips: group.trips.clone(),
            begin: Vec::new(),
            body: self.wrapped(group),
            end: Vec::new(),
        }
    }

    /// Whether a group reads tiles from shared memory: it computes, or issues MMAs.
    pub fn is_consumer(&self, group: GroupId) -> bool {
        self.role(group) == GroupRole::Compute || self.is_issuer(group)
    }

    pub fn place(&self, id: OperationId) -> Box<OperationLocation> {
        OperationLocation::of(self.module, id)
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
        if let Some(warps) = self.options.shares.compute_warps.filter(|_| self.role(group) == GroupRole::Compute) {
            return warps;
        }
        let of = |l: &LoopFacts| l.schedule.groups.iter().find(|g| g.id == group).map(|g| g.warps);
        self.loops.iter().find_map(of).unwrap_or(4)
    }

    /// Whether threads of a group that only loads copy tiles of two dimensions: one warp has neither the registers for the
    /// addresses nor the instructions. Four warps are allocated for it anyhow.
    pub fn copies_by_threads(&self, group: GroupId) -> bool {
        let copies = |l: &LoopFacts, op: OpId| {
            let tile = l.tile_operation(op).filter(|o| matches!(o.kind, TileOpKind::Load(Transfer::Pointer)));
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
        let id = BarrierId::at(self.program.barriers.len());
        let name = names::unique(&name, |name| self.program.barriers.iter().any(|b| b.name.eq_ignore_ascii_case(name)));
        self.program.barriers.push(Barriers { name, slots, arrivals });
        id
    }

    pub fn buffer(&mut self, mut buffer: Buffer) -> BufferId {
        let id = BufferId::at(self.program.buffers.len());
        // Operations `x.0` and `x_0` are two, and Python has one name for both.
        buffer.name =
            names::unique(&buffer.name, |name| self.program.buffers.iter().any(|b| b.name.eq_ignore_ascii_case(name)));
        self.program.buffers.push(buffer);
        id
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
                    if op.name == "tt.get_program_id" && crate::builder::views::program_axis(op) == axis {
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
        let value =
            tiles.producer(tile).and_then(|id| crate::builder::source::value_of(self.module, tiles.operation(id)));
        let element = value.map_or(Type::Integer(32), |v| self.element(v));
        (tiles.tile(tile).shape.clone(), element)
    }
}

/// Whether TMA brings what an operation makes.
pub(crate) fn is_tma(facts: &LoopFacts<'_>, op: OpId) -> bool {
    facts.tile_operation(op).is_some_and(|o| matches!(o.kind, TileOpKind::Load(Transfer::Tma)))
}
