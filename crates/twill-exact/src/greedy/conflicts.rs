//! Conflicts of two operations once their groups are fixed: offsets of their issue cycles
//! modulo `I` (docs/model.md: `resource` with one instance, `exclusive`, `concurrency`).

use crate::constraints::concurrency;
use twill_graph::{GroupId, OpId, Problem, Storage};

/// `(t_v − t_other) mod I` is not in `[first, end)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) other: usize,
    pub(super) first: i64,
    pub(super) end: i64,
}

/// For every operation what keeps it from others; both see each conflict.
pub(super) fn table(problem: &Problem, groups: &[GroupId]) -> Vec<Vec<Conflict>> {
    let graph = problem.graph();
    let waits: Vec<bool> = graph.op_ids().map(|v| waits(problem, groups, v)).collect();
    let mut table = vec![Vec::new(); groups.len()];
    let mut forbid = |u: OpId, v: OpId, first: i64, end: i64| {
        if first < end {
            table[v.index()].push(Conflict { other: u.index(), first, end });
            table[u.index()].push(Conflict { other: v.index(), first: 1 - end, end: 1 - first });
        }
    };
    for v in graph.op_ids() {
        for u in graph.op_ids().take(v.index()) {
            for (first, end) in on_units(problem, u, v) {
                forbid(u, v, first, end);
            }
            if groups[u.index()] != groups[v.index()] {
                continue;
            }
            let (a, b) = (graph.operation(u), graph.operation(v));
            let exclusive = problem.options().exclusive_issue && a.is_synchronous() && b.is_synchronous();
            if exclusive && a.occupancy.0 > 0 && b.occupancy.0 > 0 {
                forbid(u, v, 1 - b.occupancy.0, a.occupancy.0);
            }
            for (waiting, other) in [(u, v), (v, u)] {
                if waits[waiting.index()] {
                    forbid(other, waiting, 0, concurrency::window(problem, other));
                }
            }
        }
    }
    table
}

/// Offsets at which two operations overlap on a unit of one instance.
fn on_units(problem: &Problem, u: OpId, v: OpId) -> Vec<(i64, i64)> {
    let held = |op: OpId| problem.graph().operation(op).reservations.iter().zip(problem.units_of(op));
    let mut offsets = Vec::new();
    for (a, unit) in held(u) {
        for (b, _) in held(v).filter(|(_, other)| *other == unit) {
            if problem.resources().units[unit.index()].capacity == 1 {
                let shift = a.start.0 - b.start.0;
                offsets.push((shift - b.cycles.0 + 1, shift + a.cycles.0));
            }
        }
    }
    offsets
}

fn waits(problem: &Problem, groups: &[GroupId], v: OpId) -> bool {
    let graph = problem.graph();
    graph.dependences().iter().filter(|d| d.to == v && d.from != v).any(|d| {
        let in_registers = matches!(graph.operation(d.from).storage, Storage::Registers(_));
        d.blocking || (d.carries_value && in_registers && groups[d.from.index()] != groups[v.index()])
    })
}
