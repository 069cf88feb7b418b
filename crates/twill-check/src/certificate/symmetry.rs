//! Sub-tiles that can be swapped without changing the graph: of schedules that differ by a swap, one with
//! the sub-tiles in order is as good.

use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{Dependence, LoopGraph, OpId, Operation};

/// Returns whether two operations are the first of neighbouring sub-tiles that can be swapped.
pub(super) fn are_neighbours(graph: &LoopGraph, first: OpId, second: OpId) -> bool {
    let mut tiles: BTreeMap<u32, Vec<OpId>> = BTreeMap::new();
    for op in graph.op_ids() {
        if let Some(tile) = graph.operation(op).sub_tile {
            tiles.entry(tile).or_default().push(op);
        }
    }
    let tiles: Vec<&Vec<OpId>> = tiles.values().collect();
    let these = tiles.windows(2).find(|pair| pair[0].first() == Some(&first) && pair[1].first() == Some(&second));
    these.is_some_and(|pair| is_automorphism(graph, pair[0], pair[1]))
}

/// Everything about an operation but its names and the tile that it belongs to.
fn substance(op: &Operation) -> Operation {
    Operation { name: String::new(), kind: String::new(), source: None, sub_tile: None, ..op.clone() }
}

fn is_automorphism(graph: &LoopGraph, a: &[OpId], b: &[OpId]) -> bool {
    let mut image: BTreeMap<OpId, OpId> = graph.op_ids().map(|v| (v, v)).collect();
    for (&x, &y) in a.iter().zip(b) {
        image.insert(x, y);
        image.insert(y, x);
    }
    let alike = |v: &OpId| substance(graph.operation(*v)) == substance(graph.operation(image[v]));
    if a.len() != b.len() || !graph.op_ids().all(|v| alike(&v)) {
        return false;
    }
    let edges = |swap: bool| -> BTreeSet<_> {
        let end = |v: OpId| if swap { image[&v] } else { v };
        let flags = |d: &Dependence| (d.blocking, d.carries_value, d.tied);
        let all = graph.dependences().iter();
        all.map(|d| (end(d.from), end(d.to), d.distance, d.delay, d.hold, flags(d))).collect()
    };
    // No dependence is stated twice: graphs refuse that.
    edges(false) == edges(true)
}
