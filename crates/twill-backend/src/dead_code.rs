//! Leaves out code that no trip count reaches, where it is known how often a loop runs.
//!
//! Triton's analyses end the process on code that no way leads to, and readers need not read it. What is proved is proved of the
//! whole program before.

use crate::dead_products;
use twill_codegen::ir::{Node, WarpProgram};

/// The program without what never runs.
pub(crate) fn removed(program: &WarpProgram) -> WarpProgram {
    let trips: Vec<Option<u64>> = program.loops.iter().map(|one| one.trip_count).collect();
    let mut live = program.clone();
    for group in &mut live.groups {
        for nodes in [&mut group.begin, &mut group.body, &mut group.end] {
            *nodes = of_nodes(std::mem::take(nodes), &trips);
        }
    }
    dead_products::removed(live)
}

fn of_nodes(nodes: Vec<Node>, trips: &[Option<u64>]) -> Vec<Node> {
    nodes.into_iter().flat_map(|node| of_node(node, trips)).collect()
}

fn of_node(mut node: Node, trips: &[Option<u64>]) -> Vec<Node> {
    let known = |index: usize| trips.get(index).copied().flatten();
    match node {
        Node::PipelinedLoop { index, first, .. } if known(index).is_some_and(|n| n <= u64::from(first)) => Vec::new(),
        Node::TripSwitch { index, .. } if known(index).is_some() => {
            let taken = known(index).and_then(|runs| node.of_trips(runs)).unwrap_or_default();
            of_nodes(taken.to_vec(), trips)
        }
        _ => {
            for block in node.blocks_mut() {
                *block = of_nodes(std::mem::take(block), trips);
            }
            vec![node]
        }
    }
}
