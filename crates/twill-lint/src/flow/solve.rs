//! Forward analyses to their fixpoint (Kildall, A unified approach to global program optimization, 1973).

use super::graph::Graph;
use std::collections::BTreeSet;

/// What is known at a place, how it changes with an instruction, and what is known where ways join.
pub trait Analysis {
    /// What is known at a place.
    type State: Clone;

    /// What is known where a kernel starts, or code that nothing known leads to, by its first instruction.
    fn start(&self, at: usize) -> Self::State;

    /// Adds what is known on another way; true if that changes anything.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;

    /// Takes the instruction at a place.
    fn step(&self, state: &mut Self::State, at: usize);
}

/// What is known at the beginning of each block; none of those that nothing leads to.
pub fn solve<A: Analysis>(analysis: &A, graph: &Graph) -> Vec<Option<A::State>> {
    let mut states: Vec<Option<A::State>> = vec![None; graph.nodes.len()];
    let order = order(graph);
    let mut place = vec![0; graph.nodes.len()];
    for (at, node) in order.iter().enumerate() {
        place[*node] = at;
    }
    let mut todo = BTreeSet::new();
    for entry in &graph.entries {
        states[*entry] = Some(analysis.start(graph.nodes[*entry].start));
        todo.insert(place[*entry]);
    }
    while let Some(first) = todo.pop_first() {
        let node = &graph.nodes[order[first]];
        let Some(mut state) = states[order[first]].clone() else { continue };
        for at in node.start..node.end {
            analysis.step(&mut state, at);
        }
        for to in &node.successors {
            let is_new = match &mut states[*to] {
                Some(known) => analysis.join(known, &state),
                unknown => {
                    *unknown = Some(state.clone());
                    true
                }
            };
            if is_new {
                todo.insert(place[*to]);
            }
        }
    }
    states
}

/// Shows what is known in front of each instruction, in the order of the text.
pub fn visit<A: Analysis>(
    analysis: &A,
    graph: &Graph,
    states: &[Option<A::State>],
    mut look: impl FnMut(&A::State, usize),
) {
    let mut nodes: Vec<usize> = (0..graph.nodes.len()).collect();
    nodes.sort_by_key(|node| graph.nodes[*node].start);
    for node in nodes {
        let Some(mut state) = states[node].clone() else { continue };
        for at in graph.nodes[node].start..graph.nodes[node].end {
            look(&state, at);
            analysis.step(&mut state, at);
        }
    }
}

/// Blocks in reverse postorder.
fn order(graph: &Graph) -> Vec<usize> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut order = Vec::with_capacity(graph.nodes.len());
    for entry in &graph.entries {
        let mut stack = vec![(*entry, 0)];
        if std::mem::replace(&mut seen[*entry], true) {
            continue;
        }
        while let Some((node, next)) = stack.pop() {
            match graph.nodes[node].successors.get(next) {
                Some(to) => {
                    stack.push((node, next + 1));
                    if !std::mem::replace(&mut seen[*to], true) {
                        stack.push((*to, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order.reverse();
    order
}
