//! Shares the register file of a multiprocessor out to the groups of a CTA (`setmaxnreg`).
//!
//! Before: which groups there are, and what they do, is known. After: each group has its registers a thread.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::target::{RegisterDemand, blackwell, hopper};
use twill_graph::{GroupRole, narrow};

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    let groups = || builder.loops.iter().flat_map(|l| &l.schedule.groups);
    let granted = groups().filter(|g| g.role == GroupRole::Compute).map(|g| g.registers_per_thread).max();
    let demand = RegisterDemand {
        compute: narrow(builder.compute_groups().len()),
        computes: false,
        copies: groups().any(|g| builder.copies_by_threads(g.id)),
        // In batches more values live at a time, and a few spills of the group that loads cost nothing.
        rings: if builder.options.mma_batches { 0 } else { builder.storage.empty.len() },
        granted: granted.unwrap_or(0),
    };
    let registers = if builder.has_tensor_memory() { blackwell::registers } else { hopper::registers };
    let roles: Vec<GroupRole> = builder.program.groups.iter().map(|group| builder.role(group.id)).collect();
    for (group, role) in builder.program.groups.iter_mut().zip(roles) {
        group.registers = registers(RegisterDemand { computes: role == GroupRole::Compute, ..demand });
    }
    Ok(())
}
