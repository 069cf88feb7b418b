//! `t_v + δI ≥ t_u + d` for every dependence. With issue cycles as variables it holds
//! unconditionally; over stages and slots it takes clauses.

use crate::encoding::Encoding;
use crate::variables::{is_path, longest_paths};
use twill_graph::proof::Reason;
use twill_graph::{OpId, Problem};

/// `(u, v, d − δI)` for every dependence between two operations; `None` when an operation waits for
/// its own next iteration too long.
pub(crate) fn delays(problem: &Problem, interval: i64) -> Option<Vec<(OpId, OpId, i64)>> {
    let mut delays = Vec::new();
    for d in problem.graph().dependences() {
        let least = d.delay.0 - i64::from(d.distance).saturating_mul(interval);
        if d.from != d.to {
            delays.push((d.from, d.to, least));
        } else if least > 0 {
            return None;
        }
    }
    Some(delays)
}

/// The same over stages and slots, for every path: sums over slots alone would lose a stage at
/// each step.
pub(crate) fn encode(e: &mut Encoding) {
    let Some(paths) = longest_paths(e.problem, e.question.interval) else {
        // A positive cycle: some path leads back to where it starts and beyond.
        let op = OpId::new(0);
        e.engine.clause([], Reason::Dependence { from: op, to: op, stages: 0 });
        return;
    };
    for (u, row) in paths.iter().enumerate() {
        for (v, &least) in row.iter().enumerate() {
            if u != v && is_path(least) {
                e.require_later(OpId::new(u), OpId::new(v), least);
            }
        }
    }
}
