//! A warp issues in order, so an operation that waits stalls what its group is doing: if `v` waits,
//! then for every `o ≠ v` on its group `(t_v − t_o) mod I ∉ [0, window(o))`.

use crate::encoding::Encoding;
use crate::proof_log::Log;
use batsat::Lit;
use twill_graph::proof::{Atom, Reason};
use twill_graph::{ConcurrencyWindow, Family, OpId, Problem};

pub(super) fn encode(e: &mut Encoding) {
    let graph = e.problem.graph();
    for v in graph.op_ids() {
        if e.engine.is_cut_off() {
            return;
        }
        let waits = waits(e, v);
        for o in graph.op_ids().filter(|&o| o != v) {
            let window = window(e.problem, o);
            let exclusive = e.has(Family::Exclusive) && e.problem.options().exclusive_issue;
            let synchronous = |op: OpId| graph.operation(op).is_synchronous();
            if exclusive && synchronous(v) && synchronous(o) && graph.operation(v).occupancy.0 > 0 {
                continue; // `exclusive` forbids more.
            }
            let same = e.same_group(v, o);
            let reason = |wrap| Reason::Concurrency { waiting: v, other: o, wrap };
            e.forbid_offsets(&[waits, same], o, v, (0, window), reason);
        }
    }
}

/// The literal for "v waits": for an asynchronous unit, or for a value from another group.
fn waits(e: &mut Encoding, v: OpId) -> Lit {
    let graph = e.problem.graph();
    if graph.dependences().iter().any(|d| d.to == v && d.from != v && d.blocking) {
        return e.engine.truth();
    }
    let handoffs = e.handoffs().into_iter().map(|d| d.1).filter(|d| d.to == v);
    let incoming: Vec<Lit> = handoffs.map(|d| !e.same_group(d.from, v)).collect();
    if incoming.is_empty() {
        return e.engine.constant(false);
    }
    let waits = e.engine.fresh(|| Atom::Waits { op: v });
    for apart in incoming {
        e.engine.clause([!apart, waits], Log::definition(waits));
    }
    waits
}

/// Cycles during which an operation must not overlap a wait of its group.
pub(crate) fn window(problem: &Problem, o: OpId) -> i64 {
    let op = problem.graph().operation(o);
    match problem.options().concurrency_window {
        ConcurrencyWindow::Issue if !op.is_synchronous() => 1,
        ConcurrencyWindow::Issue | ConcurrencyWindow::Literal => op.occupancy.0,
    }
}
