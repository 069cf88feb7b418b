//! What a kernel needs of each resource.

use super::data::{Holder, Need, Resource};
use crate::LoopProblem;
use std::collections::BTreeMap;
use twill_check::Verified;
use twill_codegen::ir::WarpProgram;
use twill_graph::{GroupId, GroupRole, Resources, Schedule, Storage, WarpGroup};

/// Most holders that are named.
const NAMED: usize = 6;
/// Threads of a warp.
const WARP: u64 = 32;

/// What the generated kernel takes of shared and tensor memory.
pub(super) fn memories(program: &WarpProgram, resources: &Resources) -> Vec<Need> {
    let holder = |b: &twill_codegen::ir::Buffer, amount| Holder {
        name: b.name.clone(),
        amount,
        slots: b.slots,
        source: b.source.clone(),
    };
    let mut shared: Vec<Holder> = program.buffers.iter().map(|b| holder(b, b.shared_bytes())).collect();
    let barriers: u32 = program.barriers.iter().map(|b| b.slots).sum();
    let slots = |name: &str, amount, slots| Holder { name: name.into(), amount, slots, source: None };
    shared.push(slots("barriers", program.barrier_bytes(), barriers.max(1)));
    shared.push(slots("Triton's own", program.compiler_bytes(), 1));
    let columns = program.buffers.iter().map(|b| holder(b, b.columns())).collect();
    let mut needs = vec![need(Resource::SharedMemory, program.shared_bytes(), resources.shared_memory.0, shared)];
    if resources.tensor_memory.0 > 0 {
        needs.push(need(Resource::TensorMemory, program.tensor_columns(), resources.tensor_memory.0, columns));
    }
    needs
}

/// What schedules take of registers and warps.
pub(super) fn warps(
    problems: &[LoopProblem],
    schedules: &[&Verified<Schedule>],
    resources: &Resources,
    threads_per_block: u64,
) -> Vec<Need> {
    let mut groups: BTreeMap<GroupId, WarpGroup> = BTreeMap::new();
    for group in schedules.iter().flat_map(|s| &s.groups) {
        let common = groups.entry(group.id).or_insert(*group);
        common.registers_per_thread = common.registers_per_thread.max(group.registers_per_thread);
    }
    let allocated = |g: &WarpGroup| {
        let fixed = match g.role {
            GroupRole::VariableLatency => resources.variable_latency_group,
            GroupRole::Issue => resources.issue_group,
            GroupRole::Compute => None,
        };
        u64::from(fixed.map_or(g.warps, |f| f.allocated_warps))
    };
    let of_compute = groups.values().filter(|g| g.role == GroupRole::Compute);
    let most = of_compute.max_by_key(|g| (g.registers_per_thread, std::cmp::Reverse(g.id)));
    let file = groups.values().map(|g| WARP * allocated(g) * u64::from(g.registers_per_thread)).sum();
    let warps = groups.values().map(allocated).sum();
    let names = |g: &WarpGroup| Holder {
        name: format!("group {} ({})", g.id.index(), g.role),
        amount: WARP * allocated(g) * u64::from(g.registers_per_thread),
        slots: 1,
        source: None,
    };
    let shares = groups.values().map(names).collect();
    let mut needs = Vec::new();
    if let Some(most) = most {
        let values = registers(problems, resources, |index, op| {
            schedules.get(index).is_some_and(|s| s.placement(op).group == most.id)
        });
        let available = u64::from(resources.registers.maximum_per_thread);
        let required = u64::from(most.registers_per_thread).min(available);
        needs.push(need(Resource::Registers, required, available, values));
    }
    needs.push(need(Resource::RegisterFile, file, resources.registers.words, shares));
    needs.push(need(Resource::Warps, warps, threads_per_block / WARP, Vec::new()));
    needs
}

/// Values in registers of compute groups, as words a thread.
pub(super) fn registers(
    problems: &[LoopProblem],
    resources: &Resources,
    chosen: impl Fn(usize, twill_graph::OpId) -> bool,
) -> Vec<Holder> {
    let threads = (WARP * u64::from(resources.compute_groups.warps)).max(1);
    let mut values = Vec::new();
    for (index, one) in problems.iter().enumerate() {
        let graph = one.problem.graph();
        for op in graph.op_ids().filter(|op| chosen(index, *op)) {
            let operation = graph.operation(op);
            if let Storage::Registers(words) = operation.storage {
                let amount = words.0.div_ceil(threads);
                values.push(Holder {
                    name: operation.name.clone(),
                    amount,
                    slots: 1,
                    source: operation.source.clone(),
                });
            }
        }
    }
    values
}

/// A need with its largest holders.
pub(super) fn need(resource: Resource, required: u64, available: u64, mut holders: Vec<Holder>) -> Need {
    holders.retain(|holder| holder.amount > 0);
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.amount));
    holders.truncate(NAMED);
    Need { resource, required, available, largest: holders }
}
