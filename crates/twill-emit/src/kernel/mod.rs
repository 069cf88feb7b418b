//! From a kernel and the schedules of its loops to the warp programs of the whole kernel.
//!
//! | file | what |
//! |---|---|
//! | `program`, `action` | the result: groups, buffers, barriers; what a group does |
//! | `expression`, `region` | what is computed, on which part of a tile |
//! | `input` | the loops with their schedules, and who makes what |
//! | `reader`, `apply`, `carried` | from a value of the source to an expression, and one operation of it |
//! | `loops`, `state`, `rings`, `issue`, `MMA`, `fences`, `early_reads` | a loop's steps |
//! | `tile_origin` | where a tile of a matrix begins |
//! | `outside` | what is done before and after the loops |
//! | `cluster` | what two CTAs load together |
//! | `stores` | writes to global memory |
//! | `tensor`, `results` | MMAs whose results are in tensor memory, in loops and after them |
//! | `timestamps`, `runs` | where a traced kernel records the time |
//! | `operation` | the operations on elements, and how both languages write them |
//! | `layout`, `cursors` | how threads hold tiles, and which slots and phases begin with a group |
//! | `protocol` | what the protocol checker sees |
//! | `memory`, `shares` | what a program takes of shared and tensor memory, and of registers
//! | `registers` | that values are made, and multiplies waited for, before they are used
//! | `checked` | programs that have passed it, the only ones that are printed |

pub mod op;
mod apply;
mod carried;
mod checked;
pub(crate) mod cluster;
mod tile_origin;
pub(crate) mod cursors;
mod early_reads;
pub mod expression;
mod fences;
mod group;
mod input;
mod issue;
pub(crate) mod layout;
mod loops;
mod lowering;
pub mod timestamps;
mod memory;
mod mma;
pub(crate) mod names;
pub(crate) mod operation;
mod order;
mod outside;
pub mod program;
mod protocol;
mod reader;
pub mod region;
mod registers;
mod epilogue;
mod rings;
mod segments;
mod register_file;
mod state;
mod stores;
pub(crate) mod partial_sums;
mod tensor;
mod pingpong;
mod views;

use crate::error::Error;
use op::{Op, Node, Note};
pub use checked::{Checked, check};
use group::GroupBuilder;
use input::LoopFacts;
pub use input::ScheduledLoop;
use lowering::Lowering;
use program::{Group, KernelProgram, Loop, Parameter, TileOrder, Tiling};
pub use register_file::register_share;
use register_file::registers;
use std::collections::HashMap;
use twill_graph::{GroupId, GroupRole};
use twill_triton::retile_loop::{AT_LEAST, SOURCE_STEP};
use twill_triton::mlir::{Module, OperationId, Type};
use twill_triton::{Kernel, Place};

/// How code is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A CTA works on one tile after another.
    pub persistent: bool,
    /// In which order tiles are worked on.
    pub order: TileOrder,
    /// Least number of slots of the rings of loads, as far as shared memory goes.
    pub ring_depth: u32,
    /// Least number of slots of buffers through which groups hand over values.
    pub handoff_depth: u32,
    /// MMAs that a group starts one after another start together, for schedules that are made for it: what the group
    /// computes for them comes before, and buffers are given back behind.
    pub mma_batches: bool,
    /// What threads read from rings for an MMA's result is read while the MMA runs. It takes registers.
    pub early_reads: bool,
    /// Left operands that are the same in all iterations are held in registers.
    pub operands_in_registers: bool,
    /// Groups take pingpong on the tensor core where the schedule orders their MMAs (ping-pong), unless they would wait for
    /// each other for ever.
    pub pingpong: bool,
    /// Two CTAs with neighbouring tiles form a cluster, and load together what both read.
    pub cluster: bool,
    /// Persistent CTAs begin their tiles together.
    pub wave_sync: bool,
    /// Shared memory that a CTA can have, in bytes.
    pub shared_bytes: u64,
    /// Columns of tensor memory that a CTA can have, where MMAs leave their results there.
    pub tensor_columns: Option<u64>,
    /// Programs that share a CTA: how many, along which axis of the grid.
    pub programs: Option<(u32, u32)>,
}

/// The warp programs of a kernel.
///
/// # Errors
/// When an operation of the kernel is not known, or the buffers do not fit shared or tensor memory.
pub fn lower(kernel: &Kernel, loops: &[ScheduledLoop<'_>], options: &Options) -> Result<KernelProgram, Error> {
    let program = lower_with_fallbacks(kernel, loops, options)?;
    // PingPong follow each other in one order; where groups hand over results in another, they would wait for ever.
    let has_pingpong = !program.named_barriers.is_empty();
    if has_pingpong && matches!(check(program.clone()), Err(Error::Protocol { .. })) {
        return lower_with_fallbacks(kernel, loops, &Options { pingpong: false, ..options.clone() });
    }
    Ok(program)
}

fn lower_with_fallbacks(kernel: &Kernel, loops: &[ScheduledLoop<'_>], options: &Options) -> Result<KernelProgram, Error> {
    let mut error = None;
    for smem_fallback in SmemFallback::all(options) {
        match lower_with(kernel, loops, options, smem_fallback) {
            Err(too_large @ Error::SharedMemory { .. }) => error = error.or(Some(too_large)),
            // With fewer slots than the schedule counts on, groups may wait for each other for ever.
            Ok(program) if smem_fallback.fewer_slots > 0 && check(program.clone()).is_err() => {}
            other => return other,
        }
    }
    Err(error.unwrap_or(Error::SharedMemory { needed: 0, available: options.shared_bytes }))
}

/// How code in tensor memory does with less shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmemFallback {
    /// So many slots of rings fewer than the schedule asks for: loads come later then.
    pub fewer_slots: u32,
    /// Elements that a group stores at once after the loops.
    pub part_elements: u64,
}

impl SmemFallback {
    /// From the most to the least; where results are in registers, one.
    fn all(options: &Options) -> Vec<SmemFallback> {
        // 128 registers a thread of four warps, or half of that.
        let mut all = vec![SmemFallback { fewer_slots: 0, part_elements: 128 * 128 }];
        if options.tensor_columns.is_some() {
            let half = SmemFallback { fewer_slots: 0, part_elements: 128 * 64 };
            let is_least = options.ring_depth == 1 && options.handoff_depth == 1;
            all.extend((0..if is_least { MOST_SLOTS } else { 1 }).map(|fewer_slots| SmemFallback { fewer_slots, ..half }));
        }
        all
    }
}

/// Slots of rings beyond which it is not tried how few would do.
const MOST_SLOTS: u32 = 4;

fn lower_with(
    kernel: &Kernel,
    loops: &[ScheduledLoop<'_>],
    options: &Options,
    smem_fallback: SmemFallback,
) -> Result<KernelProgram, Error> {
    let module = kernel.module();
    let Some(block) = module.body(kernel.function()) else {
        return Err(Error::Defect { place: twill_triton::Place::of(module, kernel.function()), what: "a body".into() });
    };
    let facts: Option<Vec<LoopFacts<'_>>> = loops.iter().map(|l| LoopFacts::new(module, *l, options)).collect();
    let mut lowering = Lowering {
        kernel,
        module,
        block,
        loops: facts.unwrap_or_default(),
        options: options.clone(),
        smem_fallback,
        programs: options.programs,
        buffers: Vec::new(),
        barriers: Vec::new(),
        descriptors: Vec::new(),
        pieces: Vec::new(),
        of_loop: HashMap::new(),
        fulls: HashMap::new(),
        empties: HashMap::new(),
        named_barriers: Vec::new(),
        pingpong: None,
        results: HashMap::new(),
        reused_tiles: HashMap::new(),
        exports: Vec::new(),
        end_of_mmas: None,
        epilogue: None,
    };
    check_top_level(&lowering)?;
    order::check(&lowering)?;
    lowering.plan_sums();
    lowering.plan_loops()?;
    deepen(&mut lowering);
    lowering.plan_pingpong();
    lowering.plan_results();
    let mut ids: Vec<GroupId> = lowering.loops.iter().flat_map(|l| l.schedule.groups.iter().map(|g| g.id)).collect();
    ids.sort();
    ids.dedup();
    ids.extend(lowering.epilogue);
    // First the loops of all, then the stores, which may use storage that nobody else reads any more.
    let loops_of = |lowering: &mut Lowering<'_>, id: GroupId| -> Result<GroupBuilder, Error> {
        let mut builder = GroupBuilder::new(id, lowering.loops.len());
        if lowering.role(id) != GroupRole::Compute && !lowering.is_issuer(id) {
            outside::load_outer_tiles(lowering, &mut builder)?;
        }
        for index in 0..lowering.loops.len() {
            loops::add_loop(lowering, &mut builder, index)?;
            if lowering.is_issuer(id) {
                lowering.end_of_mmas(&mut builder, index);
            }
        }
        Ok(builder)
    };
    let reads_tiles = |g: &GroupId| lowering.role(*g) == GroupRole::Compute || lowering.is_issuer(*g);
    let (readers, loaders): (Vec<GroupId>, Vec<GroupId>) = ids.into_iter().partition(reads_tiles);
    let mut builders = Vec::new();
    for id in readers {
        builders.push(loops_of(&mut lowering, id)?);
    }
    for builder in &mut builders {
        if lowering.role(builder.id) == GroupRole::Compute {
            outside::stores_and_releases(&mut lowering, builder)?;
        }
    }
    for id in loaders {
        builders.push(loops_of(&mut lowering, id)?);
    }
    builders.sort_by_key(|b| match lowering.role(b.id) {
        GroupRole::Compute => 0,
        GroupRole::Issue => 1,
        GroupRole::VariableLatency => 2,
    });
    let mut groups = Vec::new();
    for mut builder in builders {
        lowering.add_exports(&mut builder)?;
        groups.push(group(&lowering, builder));
    }
    for piece in &lowering.pieces {
        let arrivals = piece.readers.iter().map(|g| lowering.releasing(*g)).collect();
        lowering.barriers[piece.empty.index()].arrivals = arrivals;
    }
    for results in lowering.results.values() {
        let Some(drained) = results.drained else { continue };
        let arrivals = results.readers.iter().map(|g| lowering.releasing(*g)).collect();
        lowering.barriers[drained.index()].arrivals = arrivals;
    }
    let mut cta_coarsening = [1; 3];
    if let Some((count, axis)) = options.programs
        && let Some(slot) = cta_coarsening.get_mut(axis as usize)
    {
        *slot = count;
    }
    let loops = lowering.loops.iter().enumerate().map(|(index, l)| Loop {
        name: l.tiles.name().to_owned(),
        interval: l.schedule.interval.0,
        stages: l.schedule.stages(),
        dot: first_dot(kernel.module(), l.parts.operation),
        trip_count: kernel.trip_count(index),
        source_step: source_step(kernel.module(), l.parts.operation),
    });
    let cluster = if options.cluster { Some(cluster::plan(&lowering, &groups)?) } else { None };
    let mut program = KernelProgram {
        name: names::identifier(kernel.name()),
        parameters: parameters(kernel),
        loops: loops.collect(),
        descriptors: lowering.descriptors,
        buffers: lowering.buffers,
        barriers: lowering.barriers,
        named_barriers: lowering.named_barriers,
        groups,
        tiling: Tiling {
            persistent: options.persistent,
            wave_sync: options.wave_sync,
            cta_coarsening,
            order: options.order,
        },
        cluster,
        trace: None,
    };
    let refused = |p: &Parameter| names::refused(&program, &p.name).map(|why| (p.name.clone(), why));
    if let Some((name, why)) = program.parameters.iter().find_map(refused) {
        let what = format!("a parameter named `{name}`, {why}");
        return Err(Error::Unsupported {
            place: Place::of(kernel.module(), kernel.function()),
            what,
            way_out: "rename it",
        });
    }
    names::settle(&mut program);
    let (columns, available) = (program.tensor_columns(), options.tensor_columns.unwrap_or(0));
    if columns > available {
        return Err(Error::TensorMemory { needed: columns, available });
    }
    let (needed, available) = (program.shared_bytes(), options.shared_bytes);
    if needed > available {
        return Err(Error::SharedMemory { needed, available });
    }
    Ok(program)
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

/// Nothing at the kernel's top level may be left out silently.
fn check_top_level(lowering: &Lowering<'_>) -> Result<(), Error> {
    if lowering.programs.is_some_and(|(_, axis)| axis != 0) {
        return Err(lowering.unsupported(
            lowering.kernel.function(),
            "programs that share a CTA along another axis than the first",
            "let them follow each other along x (--coarsening-axis x)",
        ));
    }
    for id in &lowering.module.block(lowering.block).operations {
        let operation = lowering.module.operation(*id);
        let scheduled = lowering.loops.iter().any(|l| l.parts.operation == *id);
        let name = operation.name.as_str();
        if !operation.regions.is_empty() && !scheduled && name != "tt.reduce" {
            return Err(lowering.unsupported(
                *id,
                "branches and other loops beside the pipelined ones",
                "make the pipelined loops loops of the kernel's top level",
            ));
        }
        let known = scheduled
            || stores::is_store(name)
            || views::is_view(name)
            || operation::form(name).is_some()
            || matches!(
                name,
                "tt.get_program_id"
                    | "tt.get_num_programs"
                    | "tt.descriptor_load"
                    | "tt.load"
                    | "tt.reduce"
                    | "tt.return"
                    | "llvm.intr.assume"
            );
        if !known {
            return Err(lowering.unsupported(
                *id,
                format!("`{name}`"),
                "move it out of the kernel, or schedule without generating code",
            ));
        }
    }
    for l in &lowering.loops {
        let of = lowering.module.operation(l.parts.operation).block;
        if of != Some(lowering.block) {
            return Err(lowering.unsupported(
                l.parts.operation,
                "a pipelined loop inside another loop or branch",
                "let the grid, or a persistent launch (--persistent), walk over the tiles",
            ));
        }
        if carried::begin_differently(lowering.module, l) {
            return Err(lowering.unsupported(
                l.parts.operation,
                "two carried values that become the same and begin differently",
                "carry one of them, and choose by the loop's index in the first iteration (tl.where)",
            ));
        }
    }
    Ok(())
}

/// Gives rings and hand-over buffers more slots; the schedule needs only as many as it says, but nothing is always on
/// time. What does not fit shared memory in the end is an error, so this asks for no more than it is told to.
fn deepen(lowering: &mut Lowering<'_>) {
    use crate::program::BufferKind;
    let mut wanted: Vec<_> = Vec::new();
    for ((index, id), at) in &lowering.of_loop {
        let buffer = lowering.loops[*index].program.buffer(*id);
        let slots = match buffer.kind {
            BufferKind::Ring(_) => lowering.options.ring_depth,
            BufferKind::Handoff(_) | BufferKind::Shared(_) if !buffer.released_by.is_empty() => {
                lowering.options.handoff_depth
            }
            _ => 1,
        };
        wanted.push((*at, slots));
    }
    for (at, slots) in wanted {
        lowering.buffers[at.index()].least_slots = slots;
        if lowering.buffers[at.index()].slots < slots {
            lowering.set_slots(at, slots);
        }
    }
}

/// The program of a group whose code is made.
fn group(lowering: &Lowering<'_>, mut builder: GroupBuilder) -> Group {
    let id = builder.id;
    let warps = lowering.warps(id);
    let role = lowering.role(id);
    let stores = |nodes: &[Node]| op::any(nodes, |action| matches!(action, Op::TmaStore { .. }));
    let mut body: Vec<Node> = std::mem::take(&mut builder.sections).into_iter().flatten().collect();
    if lowering.options.mma_batches {
        fences::start_ahead(&mut body);
    }
    if lowering.options.early_reads {
        early_reads::read_early(lowering, &mut builder, &mut body);
    }
    if builder.stages_in_place && lowering.options.persistent {
        // The stores of the tile before read what the loop writes.
        let wait = [Op::TmaStoreWait(0), Op::GroupSync].map(|action| Node::Do(action, Note::default()));
        body.splice(0..0, wait);
    }
    let mut end = if stores(&body) {
        vec![Node::Do(
            Op::TmaStoreWait(0),
            Note { text: "shared memory must outlive its copies".into(), ..Note::default() },
        )]
    } else {
        Vec::new()
    };
    if let Some(barrier) = lowering.end_of_mmas.filter(|_| lowering.is_issuer(id)) {
        let at = builder.cursor(&lowering.barriers[barrier.index()].name, 1);
        builder.cursors[at.index()].phase = true;
        let text = "shared memory must outlive what is signalled in it".to_owned();
        end.push(Node::Do(Op::Tcgen05Commit(vec![(barrier, at)]), Note { text, ..Note::default() }));
        end.push(Node::Do(Op::MbarrierWait { barrier, at, previous: false }, Note::default()));
    }
    let compute = u32::try_from(lowering.compute_groups().len()).unwrap_or(1);
    let all = lowering.loops.iter().flat_map(|l| &l.schedule.groups);
    let copies = all.map(|g| g.id).any(|g| lowering.copies_by_threads(g));
    let registers = if lowering.has_tensor_memory() {
        tensor::registers(lowering, role, copies, compute)
    } else {
        // In mma_batches more values live at a time, and a few spills of the group that loads cost nothing: 1 to 2 % in attention backward.
        let rings = if lowering.options.mma_batches { 0 } else { lowering.empties.len() };
        registers(role != GroupRole::Compute, copies, rings, compute)
    };
    let name = match role {
        GroupRole::Issue if lowering.is_issuer(id) => "mma".to_owned(),
        GroupRole::Issue | GroupRole::VariableLatency => "load".to_owned(),
        GroupRole::Compute if lowering.epilogue == Some(id) => "epilogue".to_owned(),
        GroupRole::Compute => format!("compute_{}", id.index()),
    };
    let give = |barrier| {
        Node::Do(Op::NamedBarrierArrive(barrier), Note { text: "the first turn on the tensor core".into(), ..Note::default() })
    };
    let begin = lowering.first_slot(id).map(give).into_iter().collect();
    let (variables, cursors, trips) = (builder.variables, builder.cursors, builder.trips);
    Group { id, name, warps, registers, variables, cursors, trips, begin, body, end }
}
