//! Quantities that follow from issue cycles and groups by the formulas of docs/model.md: length, groups, channels,
//! rings.

use twill_graph::{
    Bytes, Channel, ChannelStorage, Cycles, GroupId, GroupRole, Operation, Placement, Problem, Ring, Schedule, Storage,
    WarpGroup,
};

/// The schedule with these issue cycles and groups, in the graph's order, and everything that
/// follows from them by the formulas of docs/model.md; compute groups get `registers` a thread.
pub fn schedule_with(problem: &Problem, interval: i64, placements: &[(i64, usize)], registers: u32) -> Schedule {
    let at = |op: twill_graph::OpId| placements[op.index()];
    let operation = |op: twill_graph::OpId| problem.graph().operation(op);
    let over = |op: &Operation| op.occupancy.0.max(op.latency.0);
    let copies = |lasts: i64| u32::try_from(((lasts + interval - 1).div_euclid(interval)).max(1)).unwrap();
    let (mut channels, mut rings) = (Vec::new(), Vec::new());
    for v in problem.graph().op_ids() {
        let (issue, group) = at(v);
        let reads: Vec<_> = problem.graph().uses(v).collect();
        let issued = |d: &&twill_graph::Dependence| at(d.to).0 + i64::from(d.distance) * interval;
        let until = |d: &&twill_graph::Dependence| issued(d) + over(operation(d.to));
        let ring = match (reads.iter().map(issued).min(), reads.iter().map(until).max()) {
            (Some(first), Some(last)) => copies(operation(v).transfer_latency.0 + last - first),
            _ => 1,
        };
        let life = copies(reads.iter().map(|d| issued(d) + d.hold.0).max().unwrap_or(issue) - issue);
        let away = reads.iter().filter(|d| at(d.to).1 != group);
        let buffer = away.clone().map(until).max().map_or(1, |end| copies(end - issue));
        let (storage, depth) = match operation(v).storage {
            Storage::None => continue,
            Storage::Registers(words) => (ChannelStorage::Handoff(Bytes(4 * words.0)), buffer),
            Storage::Shared(bytes) if operation(v).streaming => {
                rings.push(Ring { load: v, bytes, depth: ring });
                (ChannelStorage::Shared(bytes), ring)
            }
            Storage::Shared(bytes) => (ChannelStorage::Shared(bytes), life),
            Storage::Tensor(columns) => (ChannelStorage::Tensor(columns), life),
        };
        let mut to: Vec<usize> = away.map(|d| at(d.to).1).collect();
        to.sort_unstable();
        to.dedup();
        let (from, id) = (GroupId::new(group), GroupId::new);
        channels.extend(to.into_iter().map(|to| Channel { value: v, from, to: id(to), storage, depth }));
    }
    let mut used: Vec<usize> = placements.iter().map(|p| p.1).collect();
    used.sort_unstable();
    used.dedup();
    let listed = |&id: &usize| {
        let pool = problem.groups()[id];
        let resources = problem.resources();
        let registers_per_thread = match pool.role {
            GroupRole::Compute => registers,
            GroupRole::VariableLatency => resources.variable_latency_group.unwrap().registers_per_thread,
            GroupRole::Issue => resources.issue_group.unwrap().registers_per_thread,
        };
        WarpGroup { id: GroupId::new(id), role: pool.role, warps: pool.warps, registers_per_thread }
    };
    let length = problem.graph().op_ids().map(|v| at(v).0 + operation(v).occupancy.0.max(1)).max().unwrap();
    Schedule {
        interval: Cycles(interval),
        length: Cycles(length),
        placements: placements
            .iter()
            .map(|&(cycle, group)| Placement { cycle: Cycles(cycle), group: GroupId::new(group) })
            .collect(),
        groups: used.iter().map(listed).collect(),
        channels,
        rings,
    }
}
