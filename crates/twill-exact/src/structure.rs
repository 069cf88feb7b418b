//! Reasons why a problem is impossible at every interval, without search.

use crate::constraints::assignment;
use crate::{bounds, demand};
use twill_graph::{Dependence, Families, LowerBound, OpId, Problem, RejectionReason, Storage};

/// The best bound on the initiation interval that needs no search.
pub fn lower_bound(problem: &Problem) -> LowerBound {
    bounds::lower_bound(problem, Families::ALL)
}

/// Why no interval can work, if that is plain without search.
pub fn impossible(problem: &Problem) -> Option<RejectionReason> {
    no_group(problem)
        .or_else(|| handoff(problem))
        .or_else(|| memories(problem))
        .or_else(|| one_value(problem))
        .or_else(|| demand::impossible(problem))
}

fn name(problem: &Problem, op: OpId) -> String {
    problem.graph().operation(op).name.clone()
}

fn no_group(problem: &Problem) -> Option<RejectionReason> {
    let op = problem.graph().op_ids().find(|&op| assignment::candidates(problem, op).is_empty())?;
    let width = problem.graph().operation(op).issue_width;
    let role = assignment::role(problem, op);
    let why = format!("it is issued by {width} warps together, and no {role} group has that many");
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

/// Returns whether an operation reads its own result of an earlier iteration, so that one is always alive.
fn carries_itself(problem: &Problem, op: OpId) -> bool {
    problem.graph().uses(op).any(|d| d.to == op)
}

/// One slot for every streaming load, and every value that is always alive.
fn memories(problem: &Problem) -> Option<RejectionReason> {
    let graph = problem.graph();
    let (mut shared, mut tensor) = ((graph.reserved().shared.0, Vec::new()), (graph.reserved().tensor.0, Vec::new()));
    for id in graph.op_ids() {
        let op = graph.operation(id);
        let ((total, values), amount) = match op.storage {
            Storage::Shared(bytes) if op.streaming || carries_itself(problem, id) => (&mut shared, bytes.0),
            Storage::Tensor(columns) if carries_itself(problem, id) => (&mut tensor, columns.0),
            _ => continue,
        };
        *total = total.saturating_add(amount);
        values.push(op.name.clone());
    }
    let resources = problem.resources();
    let memories = [
        ("bytes of shared memory", shared, resources.shared_memory.0),
        ("columns of tensor memory", tensor, resources.tensor_memory.0),
    ];
    let (memory, (required, values), available) = memories.into_iter().find(|(_, (r, _), a)| r > a)?;
    Some(RejectionReason::Storage { memory: memory.into(), required, available, values })
}

/// A register value that must be live at some time and does not fit any group by itself.
fn one_value(problem: &Problem) -> Option<RejectionReason> {
    let graph = problem.graph();
    let resources = problem.resources();
    let compute = resources.tile_words(resources.compute_groups.warps, resources.registers.maximum_per_thread);
    let most = |op: OpId| {
        let fixed = problem.fixed_group(assignment::role(problem, op));
        fixed.map_or(compute, |g| resources.tile_words(g.warps, g.registers_per_thread))
    };
    // Carried to itself it lives a whole interval; read later in its own iteration, until then.
    let lives = |d: &Dependence| if d.distance == 0 { d.delay.0 > 0 } else { d.to == d.from };
    let op =
        graph.op_ids().find(|&op| graph.uses(op).any(lives) && graph.operation(op).register_words().0 > most(op))?;
    Some(RejectionReason::Storage {
        memory: "register words of one warp group".into(),
        required: graph.operation(op).register_words().0,
        available: most(op),
        values: vec![name(problem, op)],
    })
}
