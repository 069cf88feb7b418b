//! Problems and schedules in few words.

use serde_json::{Value, json};
use twill_check::{Constraint, verify};
use twill_graph::format::GraphFile;
use twill_graph::{
    Bytes, Channel, ChannelStorage, Cycles, GroupId, GroupRole, ModelOptions, Operation, Placement, Problem, Resources,
    Ring, Schedule, Storage, WarpGroup,
};

/// Hopper's pool: group 0 loads, groups 1 to 3 compute.
pub fn hopper() -> Resources {
    serde_json::from_value(json!({
        "name": "hopper",
        "units": [{"name": "tensor"}, {"name": "xu"}, {"name": "fma"}, {"name": "alu"}, {"name": "tma"}],
        "shared_memory": 232_448,
        "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8,
                      "reserve_per_thread": 32},
        "variable_latency_group": {"warps": 1, "allocated_warps": 4, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 3}
    }))
    .unwrap()
}

/// Blackwell's pool: group 0 loads, group 1 issues, groups 2 to 4 compute.
pub fn blackwell() -> Resources {
    let mut machine = hopper();
    machine.name = "blackwell".into();
    machine.issue_group = machine.variable_latency_group;
    machine.tensor_memory = twill_graph::Columns(512);
    machine
}

/// No fixed groups: groups 0 to 2 compute.
pub fn plain() -> Resources {
    Resources { name: "plain".into(), variable_latency_group: None, ..hopper() }
}

/// A graph file's `operations` and `dependences`, on a machine.
pub fn problem(machine: Resources, operations: Value, dependences: Value) -> Problem {
    problem_keeping(machine, json!({}), operations, dependences)
}

/// The same with storage reserved by code around the loop.
pub fn problem_keeping(machine: Resources, reserved: Value, operations: Value, dependences: Value) -> Problem {
    let text = json!({
        "format": "twill-graph", "version": 1, "name": "test", "reserved": reserved,
        "operations": operations, "dependences": dependences
    });
    let graph = GraphFile::from_json(&text.to_string(), "test.json").unwrap().graph().unwrap();
    Problem::new(graph, machine, ModelOptions::default()).unwrap()
}

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

/// The same with 128 registers a thread.
pub fn schedule(problem: &Problem, interval: i64, placements: &[(i64, usize)]) -> Schedule {
    schedule_with(problem, interval, placements, 128)
}

/// The schedule holds, and comes back as it was.
#[track_caller]
pub fn accepted(problem: &Problem, schedule: Schedule) {
    match verify(problem, schedule.clone()) {
        Ok(verified) => assert_eq!(*verified, schedule),
        Err(rejected) => panic!("{rejected}"),
    }
}

/// The schedule breaks this constraint only, with exactly these messages.
#[track_caller]
pub fn rejected(problem: &Problem, schedule: Schedule, constraint: Constraint, messages: &[&str]) {
    let rejected = verify(problem, schedule).unwrap_err();
    let found: Vec<String> = rejected.violations.iter().map(ToString::to_string).collect();
    assert_eq!(found, messages);
    assert!(rejected.violations.iter().all(|v| v.constraint() == constraint), "{:?}", rejected.violations);
}
