//! Options of the generator that are not asked for, by rules that measurement on an H200 gave (docs/codegen.md).

use super::thresholds::THRESHOLDS;
use super::{CompileOptions, Language, TileOrderOption, Which, latency_padding};
use crate::Source;
use std::collections::BTreeSet;
use twill_check::Verified;
use twill_codegen::ir::{Form, TileOrder, WarpProgram};
use twill_codegen::{GroupShares, Options};
use twill_graph::saturate;
use twill_graph::{GroupRole, Schedule, WarpAssignment};
use twill_triton::mlir::{Module, Type, ValueId};
use twill_triton::tile::{Axes, Axis, TileLoop, TileOpKind};
use twill_triton::{Kernel, Lowered};

/// Whether MMAs leave their results in tensor memory.
pub(crate) fn in_tensor_memory(source: &Source) -> bool {
    source.machine.tensor_core().accumulator == twill_machine::Memory::Tensor
}

/// How operations come to their groups: the default, and the other where registers do not suffice.
pub(super) fn assignments(source: &Source) -> [WarpAssignment; 2] {
    match crate::default_assignment(&source.machine) {
        first @ WarpAssignment::BySubTile => [first, WarpAssignment::Free],
        first @ WarpAssignment::Free => [first, WarpAssignment::BySubTile],
    }
}

/// The options to try, the best first; a later one is for where an earlier one does not fit shared memory. `mma_batches`: the
/// schedules' MMAs start in batches.
pub(crate) fn options(
    requested: &CompileOptions,
    source: &Source,
    schedules: &[&Verified<Schedule>],
    mma_batches: bool,
) -> Vec<Options> {
    let loops = source.lowered.as_slice();
    let (grows, registers) = (grows(&source.kernel), Registers::of(schedules));
    let number = |axis: Axis| match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    };
    let even_in_pairs = grows && !is_any_loaded(&source.kernel);
    let lpt = TileOrder::Lpt { width: requested.group_m.unwrap_or(THRESHOLDS.lpt_width), even_in_pairs };
    let order = match requested.tile_order {
        Some(TileOrderOption::Linear) => TileOrder::Linear,
        Some(TileOrderOption::Lpt) => lpt,
        Some(TileOrderOption::GroupM) => TileOrder::GroupM(requested.group_m.unwrap_or(THRESHOLDS.group_m)),
        // Programs take turns in the order of the source.
        None if source.kernel.critical_section().is_some() => TileOrder::Linear,
        None if grows => lpt,
        None if is_product(loops) => TileOrder::GroupM(requested.group_m.unwrap_or(THRESHOLDS.group_m)),
        None => TileOrder::Linear,
    };
    let held: u64 = loops.iter().map(|l| held_words(&l.tiles)).max().unwrap_or(0);
    let room = u64::from(registers.granted) + held / 128 <= u64::from(registers.share);
    let in_tensor_memory = in_tensor_memory(source);
    // Tiles of different length are assigned in serpentine order, the longest first; in another order, or where memory says how long
    // they are, the hardware assigns them better, as CTAs end. On Blackwell persistent CTAs are not known to pay, and take
    // registers.
    let even = !grows || matches!(order, TileOrder::Lpt { even_in_pairs: true, .. });
    // MMA batches need the registers that a loop over tiles takes: 2.5 % in attention backward.
    let pays = even && !in_tensor_memory && (!mma_batches || requested.wave_sync);
    let is_plain = !source.kernel.is_nested() && source.kernel.critical_section().is_none();
    let persistent = requested.persistent.unwrap_or(pays && is_plain);
    let whole = Options {
        persistent,
        order,
        ring_depth: requested.ring_depth.unwrap_or(3),
        // In CUDA vectors are read early instead, after waits of their own.
        shared_barriers: requested.language() == Language::Gluon && !in_tensor_memory,
        handoff_depth: requested.handoff_depth.unwrap_or(2),
        mma_batches,
        // In Gluon the registers spill: 2 % slower.
        early_reads: mma_batches && requested.language() == Language::Cuda,
        // In Gluon this is worth 1 to 2 %. In CUDA attention forward takes 1 to 3 % longer with it; but for one short tile after
        // another it makes room for the operands of the next: 3 % with 1024 keys (bench/results/fidelity.md).
        operands_in_registers: requested
            .operands_in_registers
            .unwrap_or(held > 0 && room && requested.language() == Language::Gluon),
        // With loops of different length (causal attention) ping-pong gains up to 3 % where the tensor core is all that bounds them, in
        // CUDA; elsewhere it costs 1 to 2 % (bench/results/variants.md).
        pingpong: requested
            .pingpong
            .unwrap_or(!grows || (requested.language() == Language::Cuda && are_bound_by_mmas(loops, schedules))),
        shorter_pipelines: true,
        cluster: requested.cluster > 1,
        wave_sync: requested.wave_sync,
        // In CUDA C++ there is none yet: threads multiply by mma.sync.
        tf32: requested.language() == Language::Gluon && !in_tensor_memory,
        // In CUDA C++ threads hold them as they hold results, which is another order.
        left_of_8_bits: requested.language() == Language::Gluon && !in_tensor_memory,
        // In CUDA C++ there is none yet: threads copy.
        whole_tiles: requested.language() == Language::Gluon && !in_tensor_memory,
        // In CUDA C++ threads do not exchange them.
        stores_in_rows: requested.language() == Language::Gluon && !in_tensor_memory,
        shared_bytes: requested.shared_bytes.unwrap_or(source.machine.resources().shared_memory.0),
        tensor_columns: in_tensor_memory.then(|| source.machine.resources().tensor_memory.0),
        // One program shares its CTA with none.
        programs: source
            .options
            .programs
            .filter(|coarsening| coarsening.count > 1)
            .map(|coarsening| (coarsening.count, number(coarsening.axis))),
        // NVRTC 13.0 gives registers of a left operand that no iteration changes to another one (seed 1910 of the random programs).
        shares: GroupShares {
            operands_in_memory: requested.shares.operands_in_memory || requested.language() == Language::Cuda,
            epilogue_subtile: match requested.epilogue_subtile {
                Some(columns) => Some(u64::from(columns)).filter(|columns| *columns > 0),
                None => requested.shares.epilogue_subtile,
            },
            ..requested.shares
        },
    };
    // Without pipelining, what is loaded is for the iteration at hand.
    if requested.schedule == Which::NoSwp {
        return vec![Options { ring_depth: 1, handoff_depth: 1, ..whole }];
    }
    let mut all = Vec::new();
    let may_be_none = requested.persistent.is_none() && whole.persistent && !requested.wave_sync;
    let persistent: &[bool] = if may_be_none { &[true, false] } else { &[whole.persistent] };
    for persistent in persistent {
        let rings: &[u32] = if requested.ring_depth.is_none() { &[3, 2, 1] } else { &[whole.ring_depth] };
        let handoffs: &[u32] = if requested.handoff_depth.is_none() { &[2, 1] } else { &[whole.handoff_depth] };
        for ring_depth in rings {
            // Products that store their results by parts have more room for rings.
            let subtiles: &[Option<u64>] = match requested.epilogue_subtile {
                None if requested.language() == Language::Gluon && !in_tensor_memory && is_product(loops) => {
                    &[whole.shares.epilogue_subtile, Some(THRESHOLDS.epilogue_subtile)]
                }
                _ => &[whole.shares.epilogue_subtile],
            };
            for epilogue_subtile in subtiles {
                for handoff_depth in handoffs {
                    all.push(Options {
                        persistent: *persistent,
                        ring_depth: *ring_depth,
                        handoff_depth: *handoff_depth,
                        shares: GroupShares { epilogue_subtile: *epilogue_subtile, ..whole.shares },
                        ..whole.clone()
                    });
                }
            }
        }
    }
    all
}

/// Registers a thread of the groups that compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// That the schedule grants.
    pub granted: u32,
    /// That the file has for each.
    pub share: u32,
}

impl Registers {
    /// What schedules grant.
    pub(crate) fn of(schedules: &[&Verified<Schedule>]) -> Registers {
        let compute = || schedules.iter().flat_map(|s| &s.groups).filter(|g| g.role == GroupRole::Compute);
        let granted = compute().map(|g| g.registers_per_thread).max().unwrap_or_default();
        let groups: BTreeSet<_> = compute().map(|g| g.id).collect();
        let share = twill_codegen::register_share(saturate(groups.len()));
        Registers { granted, share }
    }
}

/// Whether wgmma multiplies elements of 32 bits in a kernel.
pub(crate) fn has_tf32(program: &WarpProgram) -> bool {
    let forms = program.groups.iter().flat_map(|group| &group.variables).map(|variable| variable.form);
    forms.into_iter().any(|form| matches!(form, Form::Accumulator { bits: 32, .. }))
}

/// Whether eight warps can share out the results of a program's MMAs: an instruction has eight columns at least.
pub(crate) fn is_wide(program: &WarpProgram) -> bool {
    const LEAST_COLUMNS: u64 = 16;
    let groups = program.groups.iter().filter(|group| group.name.starts_with("compute"));
    groups.flat_map(|group| &group.variables).all(|variable| match variable.form {
        Form::Accumulator { columns, .. } => columns >= LEAST_COLUMNS,
        _ => true,
    })
}

/// Whether the tensor core has as much to do in every loop as its interval is long.
fn are_bound_by_mmas(loops: &[Lowered], schedules: &[&Verified<Schedule>]) -> bool {
    loops.iter().zip(schedules).all(|(one, schedule)| {
        let mmas = one.graph.operations().iter().filter(|operation| latency_padding::is_mma(operation));
        mmas.map(|operation| operation.occupancy.0).sum::<i64>() >= schedule.interval.0
    })
}

/// Where the kernel's loops begin and end. Programs that run one no time at all, as they were written to return before it, count as
/// those that run it.
fn bounds(kernel: &Kernel) -> impl Iterator<Item = ValueId> {
    let loops = kernel.loops().iter().filter_map(|l| kernel.module().for_loop(l.statement()));
    loops.flat_map(|parts| [parts.lower, where_it_runs(kernel.module(), parts.lower, parts.upper)])
}

/// Of an end that is the beginning on a condition, what it is else.
fn where_it_runs(module: &Module, lower: ValueId, upper: ValueId) -> ValueId {
    let operation = module.defining_operation(upper).map(|id| module.operation(id));
    match operation.map(|operation| (operation.name.as_str(), operation.operands.as_slice())) {
        Some(("arith.select", [_, end, begin])) if *begin == lower => where_it_runs(module, lower, *end),
        _ => upper,
    }
}

/// Whether programs run a loop differently often.
fn grows(kernel: &Kernel) -> bool {
    bounds(kernel).any(|bound| kernel.differs(bound) != Axes::NONE)
}

/// Whether memory says how often a loop runs.
fn is_any_loaded(kernel: &Kernel) -> bool {
    let module = kernel.module();
    let (mut left, mut seen): (Vec<ValueId>, BTreeSet<ValueId>) = (bounds(kernel).collect(), BTreeSet::new());
    while let Some(value) = left.pop() {
        let Some(operation) = module.defining_operation(value).filter(|_| seen.insert(value)) else { continue };
        let operation = module.operation(operation);
        if operation.name.contains("load") || !operation.regions.is_empty() {
            return true;
        }
        left.extend(&operation.operands);
    }
    false
}

/// Whether programs load whole numbers before their loops, as of a list of rows or the number of an expert: what they load then
/// waits for these (0.95 of the time of one tile a CTA, geometric mean of seven kernels of experts, H200).
pub(crate) fn begins_with_indices(kernel: &Kernel) -> bool {
    let module = kernel.module();
    let block = module.body(kernel.function());
    let operations = block.map_or(&[][..], |block| module.block(block).operations.as_slice());
    operations.iter().take_while(|id| module.operation(**id).regions.is_empty()).any(|id| {
        let operation = module.operation(*id);
        let is_whole = |value: &ValueId| matches!(module.type_of(*value).element(), Type::Integer(32 | 64));
        operation.name == "tt.load" && operation.results.first().is_some_and(is_whole)
    })
}

/// Whether some loads of a loop are shared along one axis of the grid, and others along the other.
fn is_product(loops: &[Lowered]) -> bool {
    let along = |l: &TileLoop, own: Axis, other: Axis| {
        l.operations().iter().filter(|o| matches!(o.kind, TileOpKind::Load(_))).any(|o| {
            let differs = o.result.map_or(Axes::NONE, |r| l.tile(r).differs);
            differs.contains(own) && !differs.contains(other)
        })
    };
    loops.iter().any(|l| along(&l.tiles, Axis::X, Axis::Y) && along(&l.tiles, Axis::Y, Axis::X))
}

/// Words of the left operands of one group's MMAs that are the same in all iterations.
fn held_words(tiles: &TileLoop) -> u64 {
    let mut words = 0;
    let mut seen = Vec::new();
    for operation in tiles.operations().iter().filter(|o| o.sub_tile.unwrap_or(0) == 0) {
        let Some(left) = operation.operand(twill_triton::tile::Role::Left) else { continue };
        for tile in left.tiles.iter().filter(|t| tiles.producer(**t).is_none()) {
            if !seen.contains(tile) && !left.is_transposed() {
                seen.push(*tile);
                let bits = u64::from(left.element.bits());
                words += left.elements() * bits / 32;
            }
        }
    }
    words
}
