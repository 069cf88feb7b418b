//! A warp issues in order, so where `v` waits, no other operation of its group may be inside its
//! window: `(t_v − t_o) mod I ∉ [0, window(o))`.

use crate::model::Model;
use crate::term::{Term, implies, not, or};
use twill_graph::{ConcurrencyWindow, OpId};

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nconcurrency v / o: where v waits and o is on its group, v does not issue in the window of o.\n\
         waits_v: v waits for an asynchronous unit or for a register value of another group.",
    );
    let graph = m.problem.graph();
    for v in graph.op_ids() {
        let waits = waits(m, v);
        let waits = m.script.define(format!("waits_{}", v.index()), &waits);
        if waits.is(false) {
            continue;
        }
        for o in graph.op_ids().filter(|o| *o != v) {
            let other = graph.operation(o);
            let literal = m.problem.options().concurrency_window == ConcurrencyWindow::Literal;
            let window = if other.is_synchronous() || literal { other.occupancy.0 } else { 1 };
            let free = or([not(&waits), m.apart(o, v)]);
            let terms = if window == 0 {
                continue;
            } else if window >= m.interval {
                vec![free]
            } else {
                let slots = m.slots(v);
                let blocked = m.window(o, 0, window);
                let apart = m.apart(o, v);
                slots.iter().zip(&blocked).map(|(s, b)| implies(&[&waits, s, b], apart.clone())).collect()
            };
            m.script.assert(format!("concurrency: {} / {}", m.name(v), m.name(o)), terms);
        }
    }
}

fn waits(m: &Model, v: OpId) -> Term {
    let mut incoming = m.problem.graph().dependences().iter().filter(|d| d.to == v && d.from != v);
    if incoming.any(|d| d.blocking) {
        return Term::Known(true);
    }
    let mut sources: Vec<OpId> = m.register_values().filter(|d| d.to == v && d.from != v).map(|d| d.from).collect();
    sources.sort_unstable();
    sources.dedup();
    or(sources.into_iter().map(|u| m.apart(u, v)))
}
