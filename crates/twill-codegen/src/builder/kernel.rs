//! What all groups of a kernel have in common while their programs are made.

use crate::builder::group::GroupBuilder;
use crate::builder::planned::{Export, InvariantTile, LoopStorage, PingPong, ResultBarriers};
use crate::builder::source::{LoopFacts, ScheduledLoop};
use crate::error::Error;
use crate::ir::Region;
use crate::ir::names;
use crate::ir::{
    Amount, Arrival, Barriers, Buffer, Descriptor, DescriptorId, Group, LoopMetadata, Matrix, Memory, Parameter,
    TileScheduler, WarpProgram,
};
use crate::ir::{BarrierId, BufferId};
use crate::options::{Options, SmemFallback};
use crate::passes::steps::program::{BufferId as LoopBufferId, BufferKind};
use std::collections::HashMap;
use twill_graph::saturate;
use twill_graph::{GroupId, GroupRole, OpId};
use twill_triton::mlir::{BlockId, Definition, Module, OperationId, Type, ValueId};
use twill_triton::retile_loop::{AT_LEAST, SOURCE_STEP};
use twill_triton::tile::{Origin, TileOpKind, Transfer};
use twill_triton::{Kernel, OperationLocation};

/// Warps of a group whose threads copy tiles.
const COPYING_WARPS: u32 = 4;

/// A warp program while passes build it, and what they have found out for each other.
pub(crate) struct KernelBuilder<'a> {
    pub kernel: &'a Kernel,
    pub module: &'a Module,
    pub block: BlockId,
    pub loops: Vec<LoopFacts<'a>>,
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
    /// ResultBarriers in registers that other groups read.
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
        let Some(block) = module.body(kernel.function()) else {
            return Err(Error::Defect {
                place: OperationLocation::of(module, kernel.function()),
                what: "a body".into(),
            });
        };
        let facts: Option<Vec<LoopFacts<'_>>> = loops.iter().map(|l| LoopFacts::new(module, *l, options)).collect();
        let loops = facts.unwrap_or_default();
        let program = WarpProgram {
            name: names::identifier(kernel.name()),
            parameters: parameters(kernel),
            loops: loops.iter().enumerate().map(|(index, l)| loop_of_program(kernel, index, l)).collect(),
            descriptors: Vec::new(),
            buffers: Vec::new(),
            barriers: Vec::new(),
            named_barriers: Vec::new(),
            groups: Vec::new(),
            tile_scheduler: TileScheduler::of(options),
            cluster: None,
            trace: None,
        };
        Ok(KernelBuilder {
            kernel,
            module,
            block,
            loops,
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
            body: group.sections.iter().flatten().cloned().collect(),
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
        let found = self.program.descriptors.iter().position(|d| alike(d) && d.matrix == matrix);
        let others = self.program.descriptors.iter().filter(|d| alike(d)).count();
        let position = found.unwrap_or_else(|| {
            let extents: Vec<String> = block.iter().map(u64::to_string).collect();
            let mut name = format!("{parameter}_{}", extents.join("x"));
            if others > 0 {
                // The same tensor seen as another matrix.
                name = format!("{name}_{others}");
            }
            self.program.descriptors.push(Descriptor { name, parameter, block: block.to_vec(), element, matrix });
            self.program.descriptors.len() - 1
        });
        DescriptorId::at(position)
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
        let mut extents = shape.clone();
        if self.programs.is_none() {
            let cut = self.loops.iter().find_map(|l| Some((cut_along(l, value)?, l.tiles.sub_tiles().max(1))));
            if let Some((d, parts)) = cut
                && shape[d].is_multiple_of(u64::from(parts))
            {
                extents[d] = shape[d] / u64::from(parts);
            }
        }
        let program = program.filter(|_| self.depends_on_program(value));
        let count = shape.iter().zip(&extents).map(|(w, p)| w / p).product::<u64>();
        let mut found = Vec::new();
        for k in 0..saturate::<u32>(count) {
            let part = Region::part(&shape, &extents, k);
            if part.overlap(region).is_none() {
                continue;
            }
            let known =
                self.invariant_tiles.iter().position(|p| p.load == load && p.region == part && p.program == program);
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
        let stem = crate::ir::names::of_value(self.module, value);
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
        self.invariant_tiles.push(InvariantTile { load, region, program, buffer, full, empty, readers: Vec::new() });
        Ok(self.invariant_tiles.len() - 1)
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
    facts.tile_operation(op).is_some_and(|o| matches!(o.kind, TileOpKind::Load(Transfer::Tma)))
}

/// The step of a loop's source, if the loop has another.
fn source_step(module: &Module, of: OperationId) -> Option<u64> {
    module.operation(of).attributes.integer(SOURCE_STEP).and_then(|step| u64::try_from(step).ok())
}

/// Rows, columns and depth of the first dot in a loop.
fn first_dot(module: &Module, of: OperationId) -> Option<[u64; 3]> {
    let dot = module.walk(of).find(|id| module.operation(*id).name == "tt.dot")?;
    let shape = |operand: usize| {
        let value = module.operation(dot).operands.get(operand)?;
        <[u64; 2]>::try_from(module.type_of(*value).known_shape()?).ok()
    };
    let ([rows, depth], [_, columns]) = (shape(0)?, shape(1)?);
    Some([rows, columns, depth])
}

/// The parameters of the source; a descriptor's extents and strides belong to it.
fn parameters(kernel: &Kernel) -> Vec<Parameter> {
    let module = kernel.module();
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut skip = 0;
    for (index, value) in module.arguments(kernel.function()).iter().enumerate() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let kind = module.type_of(*value).clone();
        if let Type::TensorDescriptor(block) = &kind {
            skip = 2 * block.shape().map_or(0, <[_]>::len);
        }
        let attributes = module.argument_attributes(kernel.function(), index);
        let divisible_by_16 = attributes.and_then(|a| a.integer("tt.divisibility")).is_some_and(|d| d % 16 == 0);
        let at_least = attributes.and_then(|a| a.integer(AT_LEAST));
        parameters.push(Parameter { name: module.value(*value).name.clone(), kind, divisible_by_16, at_least });
    }
    parameters
}

fn loop_of_program(kernel: &Kernel, index: usize, facts: &LoopFacts<'_>) -> LoopMetadata {
    LoopMetadata {
        name: facts.tiles.name().to_owned(),
        interval: facts.schedule.interval.0,
        stages: facts.schedule.stages(),
        dot: first_dot(kernel.module(), facts.parts.operation),
        trip_count: kernel.trip_count(index),
        source_step: source_step(kernel.module(), facts.parts.operation),
    }
}
