//! Sub-tiles that can be swapped without changing the graph may as well start in order.
//!
//! Swapping two sub-tiles of a schedule gives a schedule of equal value, so it is enough to look at
//! those in which the first operation of sub-tile `i` issues no later than that of `i + 1`. Where sub-tiles have groups of
//! their own, what else runs on these would have to be swapped as well.

use crate::constraints::assignment;
use crate::encoding::{Anchor, Encoding};
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::proof::Reason;
use twill_graph::{GroupId, GroupRole, LoopGraph, OpId, Operation, Placement, Problem};

pub(super) fn encode(e: &mut Encoding) {
    for swap in swaps(e.problem.graph()) {
        order(e, swap.first);
    }
}

/// The first operations of two sub-tiles that can be swapped start in order.
pub(crate) fn order(e: &mut Encoding, (first, second): (OpId, OpId)) {
    if e.question.joint() && !assignment::is_free(e.problem) {
        return;
    }
    let ordered = e.at_least(Anchor::Issue(first), Anchor::Issue(second), 0);
    e.engine.clause([ordered], Reason::SubTileOrder { first, second });
}

/// Two neighbouring sub-tiles that can be swapped.
pub(crate) struct Swap {
    pub(crate) tiles: (u32, u32),
    /// Their first operations.
    pub(crate) first: (OpId, OpId),
    /// Where each operation of the graph goes.
    pub(crate) map: Vec<OpId>,
}

/// The same schedule from cycle 0 on, with interchangeable sub-tiles, and then compute groups, in the order asked for.
pub(crate) fn in_order(problem: &Problem, mut placements: Vec<Placement>) -> Vec<Placement> {
    if !assignment::is_free(problem) {
        return placements;
    }
    let first = placements.iter().map(|p| p.cycle).min().unwrap_or_default();
    placements.iter_mut().for_each(|p| p.cycle = p.cycle - first);
    let swaps = swaps(problem.graph());
    for _ in 0..=swaps.len() {
        for swap in &swaps {
            if placements[swap.first.0.index()].cycle > placements[swap.first.1.index()].cycle {
                placements = swap.map.iter().map(|to| placements[to.index()]).collect();
            }
        }
    }
    let compute = |g: &GroupId| problem.groups()[g.index()].role == GroupRole::Compute;
    let names: Vec<GroupId> = problem.group_ids().filter(compute).collect();
    let mut opened: Vec<GroupId> = Vec::new();
    for p in placements.iter_mut().filter(|p| compute(&p.group)) {
        let at = opened.iter().position(|g| *g == p.group).unwrap_or_else(|| {
            opened.push(p.group);
            opened.len() - 1
        });
        p.group = names[at];
    }
    placements
}

/// Neighbouring sub-tiles of a graph that can be swapped without changing it.
pub(crate) fn swaps(graph: &LoopGraph) -> Vec<Swap> {
    let mut tiles: BTreeMap<u32, Vec<OpId>> = BTreeMap::new();
    for op in graph.op_ids() {
        if let Some(tile) = graph.operation(op).sub_tile {
            tiles.entry(tile).or_default().push(op);
        }
    }
    let tiles: Vec<(u32, Vec<OpId>)> = tiles.into_iter().collect();
    let swap = |pair: &[(u32, Vec<OpId>)]| {
        let ((one, a), (other, b)) = (&pair[0], &pair[1]);
        let map = swapped(graph, a, b)?;
        Some(Swap { tiles: (*one, *other), first: (a[0], b[0]), map })
    };
    tiles.windows(2).filter_map(swap).collect()
}

/// Where each operation goes when `a` and `b` change places; `None` if that changes the graph.
fn swapped(graph: &LoopGraph, a: &[OpId], b: &[OpId]) -> Option<Vec<OpId>> {
    let like = |x: OpId, y: OpId| without_names(graph.operation(x)) == without_names(graph.operation(y));
    if a.len() != b.len() || !a.iter().zip(b).all(|(&x, &y)| like(x, y)) {
        return None;
    }
    let mut swapped: Vec<OpId> = graph.op_ids().collect();
    for (&x, &y) in a.iter().zip(b) {
        swapped[x.index()] = y;
        swapped[y.index()] = x;
    }
    let edges = |map: &dyn Fn(OpId) -> OpId| -> BTreeSet<_> {
        let dependences = graph.dependences().iter();
        dependences
            .map(|d| {
                let flags = (d.blocking, d.carries_value, d.tied);
                (map(d.from), map(d.to), d.distance, d.delay, d.hold, flags)
            })
            .collect()
    };
    (edges(&|op| op) == edges(&|op| swapped[op.index()])).then_some(swapped)
}

fn without_names(op: &Operation) -> Operation {
    Operation { name: String::new(), kind: String::new(), source: None, sub_tile: None, ..op.clone() }
}
