//! Channels: distinct pairs of a value and a group that reads it without having made it. No
//! constraint by themselves; the objective counts them.

use crate::encoding::{Candidate, Encoding};
use batsat::Lit;
use std::collections::BTreeSet;
use twill_graph::{GroupId, OpId, Problem};

/// For every value and group the literal for "the group reads it from another".
pub(super) fn encode(e: &mut Encoding) {
    let graph = e.problem.graph();
    let no = e.engine.constant(false);
    for u in graph.op_ids() {
        if e.engine.is_cut_off() {
            return;
        }
        for w in 0..e.used.len() {
            let made_here = e.assigned[u.index()][w];
            let readers: BTreeSet<OpId> = graph.uses(u).map(|d| d.to).filter(|&v| v != u).collect();
            let read_here: Vec<Lit> =
                readers.iter().map(|v| e.assigned[v.index()][w]).filter(|&x| x != no && x != made_here).collect();
            if read_here.is_empty() || made_here == e.engine.truth() {
                continue;
            }
            let channel = e.engine.unnamed();
            for reads in read_here {
                e.engine.unlogged([!reads, made_here, channel]);
            }
            e.channels.push(channel);
        }
    }
}

/// Channels of a candidate.
pub(crate) fn pairs(problem: &Problem, candidate: &Candidate) -> BTreeSet<(OpId, GroupId)> {
    let group = |op: OpId| candidate.groups[op.index()];
    let graph = problem.graph();
    graph
        .dependences()
        .iter()
        .filter(|d| d.carries_value && group(d.from) != group(d.to))
        .map(|d| (d.from, group(d.to)))
        .collect()
}

/// Literals `more[j]` that hold when more than `j` of `counted` do, for `j < most` (a sequential
/// counter: Sinz, "Towards an Optimal CNF Encoding of Boolean Cardinality Constraints", CP 2005).
pub(crate) fn more_than(e: &mut Encoding, counted: &[Lit], most: usize) -> Vec<Lit> {
    let mut reached: Vec<Lit> = vec![e.engine.constant(false); most];
    for &literal in counted {
        let mut next = Vec::with_capacity(most);
        for (j, &before) in reached.iter().enumerate() {
            let now = e.engine.unnamed();
            let below = if j == 0 { e.engine.truth() } else { reached[j - 1] };
            e.engine.unlogged([!before, now]);
            e.engine.unlogged([!below, !literal, now]);
            next.push(now);
        }
        reached = next;
    }
    reached
}
