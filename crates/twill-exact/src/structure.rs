//! What makes a problem impossible at every interval, without search.

use crate::constraints::assignment;
use twill_graph::{Dependence, GroupRole, OpId, Problem, RejectionReason, Storage};

/// Why no interval can work, if that is plain.
pub(crate) fn impossible(problem: &Problem) -> Option<RejectionReason> {
    no_group(problem).or_else(|| handoff(problem)).or_else(|| shared_memory(problem)).or_else(|| one_value(problem))
}

fn name(problem: &Problem, op: OpId) -> String {
    problem.graph().operation(op).name.clone()
}

fn no_group(problem: &Problem) -> Option<RejectionReason> {
    let op = problem.graph().op_ids().find(|&op| assignment::candidates(problem, op).is_empty())?;
    let width = problem.graph().operation(op).issue_width;
    let role = assignment::role(problem, op);
    let why = format!("it is issued by {width} warps together, and no {role} group has so many");
    Some(RejectionReason::NoGroup { operation: name(problem, op), why })
}

/// A loop-carried register value between operations that can never share a group.
fn handoff(problem: &Problem) -> Option<RejectionReason> {
    let graph = problem.graph();
    let role = |op| assignment::role(problem, op);
    let bound_to_stay = |d: &&Dependence| {
        let registers = matches!(graph.operation(d.from).storage, Storage::Registers(_));
        let stays = d.distance > 0 || !problem.options().cross_group_registers;
        registers && d.carries_value && stays && role(d.from) != role(d.to)
    };
    let d = graph.dependences().iter().find(bound_to_stay)?;
    Some(RejectionReason::Handoff {
        from: name(problem, d.from),
        to: name(problem, d.to),
        why: format!(
            "`{}` needs a {} group and `{}` a {} group",
            name(problem, d.from),
            role(d.from),
            name(problem, d.to),
            role(d.to)
        ),
    })
}

/// One slot for every streaming load.
fn shared_memory(problem: &Problem) -> Option<RejectionReason> {
    let graph = problem.graph();
    let mut required = graph.reserved().shared.0;
    let mut values = Vec::new();
    for op in graph.operations().iter().filter(|op| op.streaming) {
        if let Storage::Shared(bytes) = op.storage {
            required = required.saturating_add(bytes.0);
            values.push(op.name.clone());
        }
    }
    let available = problem.resources().shared_memory.0;
    let memory = "bytes of shared memory".into();
    (required > available).then_some(RejectionReason::Storage { memory, required, available, values })
}

/// A register value that is read and does not fit any group by itself.
fn one_value(problem: &Problem) -> Option<RejectionReason> {
    let graph = problem.graph();
    let resources = problem.resources();
    let most = |op: OpId| match assignment::role(problem, op) {
        GroupRole::VariableLatency => {
            resources.variable_latency_group.map_or(0, |g| resources.tile_words(g.warps, g.registers_per_thread))
        }
        GroupRole::Issue => resources.issue_group.map_or(0, |g| resources.tile_words(g.warps, g.registers_per_thread)),
        GroupRole::Compute => {
            resources.tile_words(resources.compute_groups.warps, resources.registers.maximum_per_thread)
        }
    };
    let op = graph.op_ids().find(|&op| {
        let alive = graph.uses(op).any(|d| d.distance > 0 && d.to == op);
        alive && graph.operation(op).register_words().0 > most(op)
    })?;
    Some(RejectionReason::Storage {
        memory: "register words of one warp group".into(),
        required: graph.operation(op).register_words().0,
        available: most(op),
        values: vec![name(problem, op)],
    })
}
