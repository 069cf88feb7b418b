//! A register result read on another group arrives `handoff(u)` cycles later; a loop-carried one
//! stays on its group.

use crate::encoding::{Anchor, Candidate, Encoding};
use twill_graph::proof::Reason;
use twill_graph::{Dependence, LoopGraph, Words};

pub(super) fn encode(e: &mut Encoding) {
    let anywhere = e.problem.options().cross_group_registers;
    for (id, d) in e.register_dependences() {
        if e.engine.is_cut_off() {
            return;
        }
        let reason = Reason::Handoff { dependence: id };
        let same = e.same_group(d.from, d.to);
        if d.distance > 0 || !anywhere {
            e.engine.clause([same], reason);
            continue;
        }
        let handoff = e.problem.graph().operation(d.from).handoff;
        let later = e.at_least(Anchor::Issue(d.from), Anchor::Issue(d.to), (d.delay + handoff).0);
        e.engine.clause([same, later], reason);
    }
}

/// Words that a handoff counts for in the objective: 64-word units, at least one.
pub(crate) fn weight(graph: &LoopGraph, d: &Dependence) -> u64 {
    let Words(words) = graph.operation(d.from).register_words();
    (words / 64).max(1)
}

/// Handoff words of a candidate.
pub(crate) fn total(e: &Encoding, candidate: &Candidate) -> u64 {
    apart(e, candidate).iter().map(|d| weight(e.problem.graph(), d)).sum()
}

/// Register dependences between groups.
pub(crate) fn apart(e: &Encoding, candidate: &Candidate) -> Vec<Dependence> {
    let group = |op: twill_graph::OpId| candidate.groups[op.index()];
    e.register_dependences().into_iter().map(|d| d.1).filter(|d| group(d.from) != group(d.to)).collect()
}

/// Enforces the cap on handoff words, where one is set.
pub(super) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let Some(cap) = e.caps.handoff_words else { return false };
    if total(e, candidate) <= cap.most {
        return false;
    }
    let graph = e.problem.graph();
    let mut apart = apart(e, candidate);
    apart.sort_by_key(|d| std::cmp::Reverse(weight(graph, d)));
    let mut clause = vec![!cap.active];
    let mut sum = 0;
    for d in apart {
        if sum > cap.most {
            break;
        }
        sum += weight(graph, &d);
        clause.push(e.same_group(d.from, d.to));
    }
    e.engine.unlogged(clause);
    true
}
