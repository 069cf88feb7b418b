//! Problems and hand-made schedules for tests.

use serde_json::json;
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{
    Bytes, Channel, ChannelStorage, Cycles, GroupId, GroupRole, LoopGraph, ModelOptions, OpId, Placement, Problem,
    Resources, Ring, Schedule, Storage, WarpGroup, builtin,
};

/// Hopper, as far as these tests need it.
pub(crate) fn hopper() -> Resources {
    serde_json::from_value(json!({
        "name": "h100",
        "units": [{"name": "tensor"}, {"name": "xu"}, {"name": "fma"}, {"name": "alu"}, {"name": "lsu"}, {"name": "tma"}],
        "shared_memory": 232_448,
        "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 24},
        "variable_latency_group": {"warps": 1, "allocated_warps": 4, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 3}
    }))
    .unwrap()
}

/// Blackwell, as far as these tests need it.
pub(crate) fn blackwell() -> Resources {
    serde_json::from_value(json!({
        "name": "b200",
        "units": [{"name": "tc"}, {"name": "xu"}, {"name": "fma"}, {"name": "alu"}, {"name": "mem_tensor"}, {"name": "tma"}],
        "shared_memory": 232_448,
        "tensor_memory": 512,
        "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 24},
        "variable_latency_group": {"warps": 1, "allocated_warps": 1, "registers_per_thread": 24},
        "issue_group": {"warps": 1, "allocated_warps": 3, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 3}
    }))
    .unwrap()
}

/// The scheduling problem of a graph on a machine.
pub(crate) fn problem_of(graph: LoopGraph, resources: Resources) -> Problem {
    Problem::new(graph, resources, ModelOptions::default()).unwrap()
}

/// A built-in graph that brings its machine.
pub(crate) fn toy(name: &str) -> Problem {
    let builtin = builtin::find(name).unwrap();
    let Some(MachineReference::Resources(resources)) = builtin.machine else { panic!("{name} names its machine") };
    problem_of(builtin.graph, *resources)
}

/// A built-in graph on another machine.
pub(crate) fn builtin_on(name: &str, resources: Resources) -> Problem {
    problem_of(builtin::find(name).unwrap().graph, resources)
}

/// A graph in the graph format on a machine in JSON.
pub(crate) fn parse(graph: &serde_json::Value, resources: Resources) -> Problem {
    problem_of(GraphFile::from_json(&graph.to_string(), "test").unwrap().graph().unwrap(), resources)
}

/// What every compute group is given.
const COMPUTE_REGISTERS: u32 = 160;

/// Everything that follows from cycles and groups.
pub(crate) fn complete(problem: &Problem, interval: i64, cycles: &[i64], groups: &[usize]) -> Schedule {
    let graph = problem.graph();
    assert_eq!((cycles.len(), groups.len()), (graph.operations().len(), graph.operations().len()));
    let placements: Vec<Placement> = cycles
        .iter()
        .zip(groups)
        .map(|(&cycle, &group)| Placement { cycle: Cycles(cycle), group: GroupId::new(group) })
        .collect();
    let length = graph.op_ids().map(|op| placements[op.index()].cycle + graph.operation(op).span()).max().unwrap();
    let interval = Cycles(interval);
    let mut schedule = Schedule { interval, length, placements, groups: vec![], channels: vec![], rings: vec![] };
    let fixed = [problem.resources().variable_latency_group, problem.resources().issue_group];
    for (id, group) in problem.group_ids().zip(problem.groups()) {
        if groups.contains(&id.index()) {
            let registers_per_thread = match group.role {
                GroupRole::Compute => COMPUTE_REGISTERS,
                GroupRole::VariableLatency => fixed[0].unwrap().registers_per_thread,
                GroupRole::Issue => fixed[1].unwrap().registers_per_thread,
            };
            schedule.groups.push(WarpGroup { id, role: group.role, warps: group.warps, registers_per_thread });
        }
    }
    for op in graph.op_ids() {
        let (storage, depth) = copies(problem, &schedule, op);
        if let (Storage::Shared(bytes), true) = (graph.operation(op).storage, graph.operation(op).streaming) {
            schedule.rings.push(Ring { load: op, bytes, depth });
        }
        let home = schedule.placement(op).group;
        let mut readers: Vec<GroupId> = graph.uses(op).map(|d| schedule.placement(d.to).group).collect();
        readers.sort();
        readers.dedup();
        for to in readers.into_iter().filter(|g| *g != home) {
            schedule.channels.push(Channel { value: op, from: home, to, storage, depth });
        }
    }
    schedule
}

fn copies(problem: &Problem, schedule: &Schedule, op: OpId) -> (ChannelStorage, u32) {
    let graph = problem.graph();
    let operation = graph.operation(op);
    let at = |d: &twill_graph::Dependence| schedule.placement(d.to).cycle + schedule.interval * d.distance;
    let over = |d: &twill_graph::Dependence| at(d) + graph.operation(d.to).completion();
    let home = schedule.placement(op).group;
    let issue = schedule.placement(op).cycle;
    let held = graph.uses(op).map(|d| at(d) + d.hold).max();
    let (storage, start, end) = match operation.storage {
        Storage::Registers(words) => {
            let foreign = graph.uses(op).filter(|d| schedule.placement(d.to).group != home);
            (ChannelStorage::Handoff(Bytes(4 * words.0)), issue, foreign.map(over).max())
        }
        Storage::Shared(bytes) if operation.streaming => {
            let first = graph.uses(op).map(at).min().unwrap_or_default();
            (ChannelStorage::Shared(bytes), first - operation.transfer_latency, graph.uses(op).map(over).max())
        }
        Storage::Shared(bytes) => (ChannelStorage::Shared(bytes), issue, held),
        Storage::Tensor(columns) => (ChannelStorage::Tensor(columns), issue, held),
        Storage::None => (ChannelStorage::Shared(Bytes(0)), issue, None),
    };
    let depth = end.map_or(1, |end| (end - start).div_ceil(schedule.interval).max(1));
    (storage, u32::try_from(depth).unwrap())
}

/// Attention forward on Hopper, as ../reference/model/sol_final_H-fwd.json has it (16 clocks a unit).
pub(crate) fn hopper_forward() -> (Problem, Schedule) {
    let problem = builtin_on("attention-forward-hopper", hopper());
    let cycles: [i64; 20] = [0, 16, 64, 96, 136, 100, 104, 137, 141, 145, 160, 0, 32, 72, 36, 40, 73, 77, 81, 96];
    let groups = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2];
    let schedule = complete(&problem, 2048, &cycles.map(|t| 16 * t), &groups);
    (problem, schedule)
}

/// Attention forward on Blackwell, as ../reference/model/sol_final_B-fwd.json has it (8 clocks a unit).
pub(crate) fn blackwell_forward() -> (Problem, Schedule) {
    let problem = builtin_on("attention-forward-blackwell", blackwell());
    let cycles: [i64; 28] = [
        0, 32, 128, 193, 225, 257, 241, 258, 386, 402, 418, 257, 289, 305, 451, 0, 64, 96, 128, 112, 129, 257, 273,
        289, 128, 160, 176, 322,
    ];
    let groups = [0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 1, 1, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 1];
    let schedule = complete(&problem, 2064, &cycles.map(|t| 8 * t), &groups);
    (problem, schedule)
}
