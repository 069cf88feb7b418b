//! Sub-tiles that can be swapped without changing the graph may as well start in order.
//!
//! Swapping two sub-tiles of a schedule gives a schedule of equal value, so it is enough to look at
//! those in which the first operation of sub-tile `i` issues no later than that of `i + 1`.

use crate::encoding::{Anchor, Encoding};
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::proof::Reason;
use twill_graph::{LoopGraph, OpId, Operation};

pub(super) fn encode(e: &mut Encoding) {
    for (first, second) in interchangeable(e.problem.graph()) {
        let ordered = e.at_least(Anchor::Issue(first), Anchor::Issue(second), 0);
        e.engine.clause([ordered], Reason::SubTileOrder { first, second });
    }
}

/// First operations of neighbouring sub-tiles that can be swapped.
fn interchangeable(graph: &LoopGraph) -> Vec<(OpId, OpId)> {
    let mut tiles: BTreeMap<u32, Vec<OpId>> = BTreeMap::new();
    for op in graph.op_ids() {
        if let Some(tile) = graph.operation(op).sub_tile {
            tiles.entry(tile).or_default().push(op);
        }
    }
    let tiles: Vec<Vec<OpId>> = tiles.into_values().collect();
    let pairs = tiles.windows(2).filter(|pair| can_swap(graph, &pair[0], &pair[1]));
    pairs.map(|pair| (pair[0][0], pair[1][0])).collect()
}

fn can_swap(graph: &LoopGraph, a: &[OpId], b: &[OpId]) -> bool {
    let like = |x: OpId, y: OpId| without_names(graph.operation(x)) == without_names(graph.operation(y));
    if a.len() != b.len() || !a.iter().zip(b).all(|(&x, &y)| like(x, y)) {
        return false;
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
    edges(&|op| op) == edges(&|op| swapped[op.index()])
}

fn without_names(op: &Operation) -> Operation {
    Operation { name: String::new(), kind: String::new(), source: None, sub_tile: None, ..op.clone() }
}
