//! A way from one instruction to another, to show with a finding.

use super::graph::Graph;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What becomes of a fact at an instruction.
pub enum Step<T> {
    /// It goes on, perhaps changed.
    On(T),
    /// It ends.
    Ends,
}

/// The shortest way, in blocks, by which a fact that holds after `from` reaches `to`; blocks are named by their first
/// instruction.
pub fn path<T: Clone + Eq + Hash>(
    graph: &Graph,
    from: usize,
    fact: &T,
    to: usize,
    step: impl Fn(&T, usize) -> Step<T>,
) -> Vec<usize> {
    let mut parents: HashMap<(usize, T), Option<(usize, T)>> = HashMap::new();
    let mut todo = VecDeque::new();
    let walk = |node: usize, begin: usize, fact: &T| -> Result<Option<T>, ()> {
        let mut fact = fact.clone();
        for at in begin..graph.nodes[node].end {
            if at == to {
                return Err(());
            }
            match step(&fact, at) {
                Step::On(next) => fact = next,
                Step::Ends => return Ok(None),
            }
        }
        Ok(Some(fact))
    };
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| (node.start..node.end).contains(&from)) {
        match walk(index, from + 1, fact) {
            Err(()) => return vec![node.start],
            Ok(None) => {}
            Ok(Some(fact)) => {
                for to in &node.successors {
                    let key = (*to, fact.clone());
                    if !parents.contains_key(&key) {
                        parents.insert(key.clone(), None);
                        todo.push_back((key, node.start));
                    }
                }
            }
        }
    }
    while let Some((key, origin)) = todo.pop_front() {
        match walk(key.0, graph.nodes[key.0].start, &key.1) {
            Err(()) => {
                let mut blocks = vec![graph.nodes[key.0].start];
                let mut at = parents.get(&key).cloned().flatten();
                while let Some(before) = at {
                    blocks.push(graph.nodes[before.0].start);
                    at = parents.get(&before).cloned().flatten();
                }
                blocks.push(origin);
                blocks.reverse();
                return blocks;
            }
            Ok(None) => {}
            Ok(Some(fact)) => {
                for to in &graph.nodes[key.0].successors {
                    let next = (*to, fact.clone());
                    if !parents.contains_key(&next) {
                        parents.insert(next.clone(), Some(key.clone()));
                        todo.push_back((next, origin));
                    }
                }
            }
        }
    }
    Vec::new()
}
