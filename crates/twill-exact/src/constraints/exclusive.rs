//! Synchronous operations of one group do not overlap modulo `I`.

use crate::encoding::Encoding;
use twill_graph::proof::Reason;
use twill_graph::{OpId, Problem};

/// A synchronous operation that is longer than the interval.
pub(crate) fn self_conflict(problem: &Problem, interval: i64) -> Option<OpId> {
    let graph = problem.graph();
    let long = |op: &OpId| graph.operation(*op).is_synchronous() && graph.operation(*op).occupancy.0 > interval;
    problem.options().exclusive_issue.then(|| graph.op_ids().find(long)).flatten()
}

pub(super) fn encode(e: &mut Encoding) {
    let problem = e.problem;
    if !problem.options().exclusive_issue {
        return;
    }
    if let Some(op) = self_conflict(problem, e.question.interval) {
        e.engine.clause([], Reason::Exclusive { first: op, second: op, wrap: 0 });
        return;
    }
    let graph = problem.graph();
    let synchronous: Vec<OpId> = graph.op_ids().filter(|&op| graph.operation(op).is_synchronous()).collect();
    for (i, &u) in synchronous.iter().enumerate() {
        if e.engine.is_cut_off() {
            return;
        }
        for &v in &synchronous[..i] {
            let (first, second) = (graph.operation(u).occupancy.0, graph.operation(v).occupancy.0);
            if first > 0 && second > 0 {
                let same = e.same_group(u, v);
                let reason = |wrap| Reason::Exclusive { first: u, second: v, wrap };
                e.forbid_offsets(&[same], u, v, (1 - second, first), reason);
            }
        }
    }
}
