//! Shares the register file of a multiprocessor out to the groups of a CTA (`setmaxnreg`).
//!
//! Before: which groups there are, and what they do, is known. After: each group has its registers a thread.

use crate::builder::kernel::KernelBuilder;
use crate::builder::source::LoopFacts;
use crate::error::Error;
use crate::ir::BufferId;
use crate::passes::loops::COPIED_ELEMENTS;
use crate::passes::steps::program::BufferId as StepsBufferId;
use crate::target::{RegisterDemand, blackwell, hopper};
use std::collections::BTreeSet;
use twill_graph::{GroupRole, OpId, narrow, saturate};

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    let groups = || builder.loops.iter().flat_map(|l| &l.schedule.groups);
    let granted = groups().filter(|g| g.role == GroupRole::Compute).map(|g| g.registers_per_thread).max();
    let compute_warps: u32 = builder.compute_groups().iter().map(|group| builder.warps(*group)).sum();
    let demand = RegisterDemand {
        compute: compute_warps.div_ceil(4),
        computes: false,
        copied: copied(builder),
        // In batches more values live at a time, and a few spills of the group that loads cost nothing.
        rings: if builder.options.mma_batches { 0 } else { rings(builder) },
        granted: granted.unwrap_or(0),
        loading: builder.options.shares.loading_registers,
        ctas: builder.options.shares.ctas_per_sm.unwrap_or(1),
    };
    let registers = if builder.has_tensor_memory() { blackwell::registers } else { hopper::registers };
    let roles: Vec<GroupRole> = builder.program.groups.iter().map(|group| builder.role(group.id)).collect();
    for (group, role) in builder.program.groups.iter_mut().zip(roles) {
        group.registers = registers(RegisterDemand { computes: role == GroupRole::Compute, ..demand });
    }
    Ok(())
}

/// Buffers whose slots are released, by barriers of their own or of others.
fn rings(builder: &KernelBuilder<'_>) -> usize {
    let is_guarded = |((index, id), _): &(&(usize, StepsBufferId), &BufferId)| {
        builder.loops[*index].program.buffer(*id).guarded_by.is_some()
    };
    let guarded: BTreeSet<BufferId> = builder.storage.buffers.iter().filter(is_guarded).map(|(_, at)| *at).collect();
    builder.storage.empty.len() + guarded.len()
}

/// Registers that the largest tile takes in each thread that copies it: addresses of 64 bits, a predicate, and elements where they
/// come through registers.
fn copied(builder: &KernelBuilder<'_>) -> u32 {
    let of_load = |facts: &LoopFacts<'_>, op: OpId| {
        let tile = facts.tile_operation(op)?.result.map(|result| facts.tiles.tile(result))?;
        let (access, group) = (facts.access(op)?, facts.group(op));
        let threads = u64::from(builder.warps(group)) * 32;
        let elements = tile.shape.iter().product::<u64>();
        // Those through registers are copied a piece at a time.
        let (elements, held) = match facts.loads_through_registers(builder.module, op) {
            true => (elements.min(COPIED_ELEMENTS), 1),
            false => (elements, 0),
        };
        let accesses = elements.div_ceil(threads * access.elements.max(1));
        builder.copies_by_threads(group).then_some(accesses * (3 + held))
    };
    let loads =
        builder.loops.iter().flat_map(|facts| facts.problem.graph().op_ids().filter_map(move |op| of_load(facts, op)));
    narrow(saturate::<usize>(loads.max().unwrap_or(0)))
}
