//! Every operation issues in exactly one cycle of its iteration, and ends within `N · I`.

use crate::model::Model;
use crate::term::{Term, implies, not, or};
use twill_graph::{Liveness, OpId};

/// Returns whether every operation has a cycle to issue in.
pub(super) fn possible(m: &Model) -> bool {
    m.problem.graph().op_ids().all(|v| m.latest(v) >= 0)
}

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nissue: every operation v issues in exactly one cycle, op_v_t, and ends within N * I.\n\
         le_v_t: it issues in cycle t or before; left out where that is known.",
    );
    for v in m.problem.graph().op_ids() {
        let name = format!("issue: {}", m.name(v));
        let latest = m.latest(v);
        if latest < 0 {
            m.script.assert(name, [Term::Known(false)]);
            continue;
        }
        let op: Vec<Term> = (0..=latest).map(|t| m.script.declare(format!("op_{}_{t}", v.index()))).collect();
        for t in 0..latest {
            m.script.declare(format!("le_{}_{t}", v.index()));
        }
        let ladder = |(t, op): (i64, &Term)| step(m, v, t, op);
        let ladder: Vec<Term> = (0..).zip(&op).flat_map(ladder).collect();
        m.script.assert(name, ladder);
    }
    if m.problem.options().liveness == Liveness::Paper && possible(m) {
        m.script.comment("\nstages: exactly N, as what is live depends on their number: L > (N - 1) * I.");
        let short = (m.stages - 1) * m.interval;
        let graph = m.problem.graph();
        let late = or(graph.op_ids().map(|v| not(&m.issued(v, short - graph.operation(v).span().0))));
        m.script.assert("stages", [late]);
        m.script.comment("inside_c: cycle (N - 1) * I + c lies before the end of the straight-line program.");
        m.define_inside();
    }
}

/// `op[t]` iff issued by `t` and not by `t − 1`; once issued, always issued. Together: exactly one.
fn step(m: &Model, v: OpId, t: i64, op: &Term) -> [Term; 4] {
    let (before, now) = (m.issued(v, t - 1), m.issued(v, t));
    [
        implies(&[&before], now.clone()),
        implies(&[op], now.clone()),
        implies(&[op], not(&before)),
        or([not(&now), before.clone(), op.clone()]),
    ]
}
