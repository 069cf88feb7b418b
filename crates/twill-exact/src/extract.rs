//! From issue cycles and groups to a schedule: groups with registers, channels, rings.

use crate::constraints::{channels, registers, shared_memory};
use crate::encoding::{Candidate, Encoding};
use twill_graph::saturate;
use twill_graph::{
    Channel, ChannelStorage, Cycles, GroupId, OpId, Placement, Problem, Ring, Schedule, Storage, WarpGroup,
};

/// The schedule that a candidate stands for.
pub(crate) fn schedule(e: &Encoding, candidate: &Candidate) -> Schedule {
    claim(e.problem, e.question.interval, candidate, &registers::needed(e, candidate))
}

/// The schedule with these registers a thread; `None` for a group that needs more than a thread can address.
pub(crate) fn claim(
    problem: &Problem,
    interval: i64,
    candidate: &Candidate,
    needed: &[(GroupId, Option<u32>)],
) -> Schedule {
    let placements = candidate
        .times
        .iter()
        .zip(&candidate.groups)
        .map(|(&t, &group)| Placement { cycle: Cycles(t), group })
        .collect();
    Schedule {
        interval: Cycles(interval),
        length: Cycles(candidate.length),
        placements,
        groups: groups(problem, candidate, needed),
        channels: channels::pairs(problem, candidate)
            .into_iter()
            .map(|(u, to)| channel(problem, candidate, interval, u, to))
            .collect(),
        rings: rings(problem, candidate, interval),
    }
}

fn groups(problem: &Problem, candidate: &Candidate, needed: &[(GroupId, Option<u32>)]) -> Vec<WarpGroup> {
    // Where registers were left out of the question, a group may need more than a thread can address.
    let file = problem.resources().registers;
    let most = file.maximum_per_thread.next_multiple_of(file.granularity);
    let used = problem.group_ids().zip(problem.groups()).filter(|(id, _)| candidate.groups.contains(id));
    used.map(|(id, pooled)| {
        let fixed = problem.fixed_group(pooled.role);
        let computed = needed.iter().find(|(g, _)| *g == id).and_then(|(_, r)| *r);
        let registers_per_thread = fixed.map(|g| g.registers_per_thread).or(computed).unwrap_or(most);
        WarpGroup { id, role: pooled.role, warps: pooled.warps, registers_per_thread }
    })
    .collect()
}

fn rings(problem: &Problem, candidate: &Candidate, interval: i64) -> Vec<Ring> {
    let graph = problem.graph();
    let ring = |load: OpId| match graph.operation(load).storage {
        Storage::Shared(bytes) if graph.operation(load).streaming => {
            Some(Ring { load, bytes, depth: ring_depth(problem, load, candidate, interval) })
        }
        _ => None,
    };
    graph.op_ids().filter_map(ring).collect()
}

fn ring_depth(problem: &Problem, load: OpId, candidate: &Candidate, interval: i64) -> u32 {
    let depth = shared_memory::ring_depth(problem, load, &candidate.times, interval);
    saturate::<u32>(depth)
}

/// Copies of a channel's value that are alive at once: `max(1, ⌈life / I⌉)`.
fn channel(problem: &Problem, candidate: &Candidate, interval: i64, u: OpId, to: GroupId) -> Channel {
    let graph = problem.graph();
    let op = graph.operation(u);
    let (time, group) = (|v: OpId| candidate.times[v.index()], |v: OpId| candidate.groups[v.index()]);
    let issue = |d: &twill_graph::Dependence| time(d.to) + i64::from(d.distance) * interval;
    let (storage, end) = match op.storage {
        Storage::Registers(words) => {
            let apart = graph.uses(u).filter(|d| group(d.to) != group(u));
            let end = apart.map(|d| issue(d) + graph.operation(d.to).completion().0).max();
            (ChannelStorage::Handoff(twill_graph::Bytes(4 * words.0)), end)
        }
        Storage::Shared(bytes) => (ChannelStorage::Shared(bytes), graph.uses(u).map(|d| issue(d) + d.hold.0).max()),
        Storage::Tensor(columns) => (ChannelStorage::Tensor(columns), graph.uses(u).map(|d| issue(d) + d.hold.0).max()),
        // Only values are read, and a value has a storage.
        Storage::None => (ChannelStorage::Shared(twill_graph::Bytes(0)), None),
    };
    let depth = if op.streaming {
        ring_depth(problem, u, candidate, interval)
    } else {
        let life = end.unwrap_or(0) - time(u);
        saturate::<u32>(Cycles(life).div_ceil(Cycles(interval)).max(1))
    };
    Channel { value: u, from: group(u), to, storage, depth }
}
