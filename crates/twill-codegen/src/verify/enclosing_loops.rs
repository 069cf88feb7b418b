//! Loops around the pipelined ones that all groups walk alike: as often, with the same numbers.
//!
//! Bounds are compared by value numbering, and so is what goes on from an iteration to the next: if it begins as the same, and goes
//! on as the same where it was the same, it is the same in every iteration.

use super::value_numbers::{Numbers, Values};
use crate::ir::{Group, Node, Op, VariableId, visit};
use std::collections::HashMap;

/// What a group does around the pipelined loops, by numbers: bounds, and how what is carried goes on.
type Walk = Vec<(Vec<Option<usize>>, Vec<(usize, Option<usize>)>)>;

/// How many loops stand around the pipelined ones, the same in all groups; 0 if that is not known.
pub(super) fn same_in_all(groups: &[Group]) -> usize {
    let mut numbers = Numbers::default();
    let mut all = groups.iter().map(|group| walk(group, &mut numbers));
    let Some(first) = all.next() else { return 0 };
    let is_known = first.iter().all(|(bounds, _)| bounds.iter().all(Option::is_some));
    let alike = |other: Walk| {
        let carried = |walk: &Walk| -> HashMap<usize, Option<usize>> {
            walk.iter().flat_map(|(_, carried)| carried.iter().copied()).collect()
        };
        // A group carries only what it needs. What two of them carry goes on alike.
        let (ours, theirs) = (carried(&first), carried(&other));
        first.len() == other.len()
            && first.iter().zip(&other).all(|(a, b)| a.0 == b.0)
            && ours.iter().all(|(begin, next)| theirs.get(begin).is_none_or(|other| other == next))
    };
    if is_known && all.all(alike) { first.len() } else { 0 }
}

/// Whether pipelined loops stand in these nodes.
pub(super) fn has_pipelined(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| {
        matches!(node, Node::PipelinedLoop { .. } | Node::TripSwitch { .. })
            || node.blocks().into_iter().any(|block| has_pipelined(block))
    })
}

fn walk(group: &Group, numbers: &mut Numbers) -> Walk {
    let mut made: HashMap<VariableId, usize> = HashMap::new();
    visit(&group.body, &mut |op| {
        if let Op::Let { to, .. } | Op::Copy { to, .. } = op {
            *made.entry(*to).or_default() += 1;
        }
    });
    let mut found = Vec::new();
    level(group, &group.body, &made, Values::new(), numbers, &mut found);
    found
}

/// The loops of a list of nodes and, within them, of their bodies; the numbers of what is computed there.
fn level(
    group: &Group,
    nodes: &[Node],
    made: &HashMap<VariableId, usize>,
    mut values: Values,
    numbers: &mut Numbers,
    found: &mut Walk,
) -> Values {
    for node in nodes {
        match node {
            Node::For { body, .. } | Node::While { body, .. } if has_pipelined(body) => {
                let depth = found.len();
                let mut inner = values.clone();
                // What is made more than once is carried: it begins as what stands before the loop.
                let mut begun: Vec<(VariableId, usize)> = values
                    .iter()
                    .filter(|(id, _)| made.get(id).is_some_and(|times| *times > 1))
                    .filter_map(|(id, number)| Some((*id, (*number)?)))
                    .collect();
                begun.sort_unstable();
                let mut carried = Vec::new();
                for (id, number) in &begun {
                    // Two that begin alike are two. Groups name alike what is alike; if not, nothing is proved.
                    let name = &group.variables[id.index()].name;
                    let own = numbers.named(format!("{name}, carried by loop {depth} from {number}"));
                    inner.insert(*id, Some(own));
                    carried.push((*id, own));
                }
                let bounds = match node {
                    Node::For { variable, lower, upper, step, .. } => {
                        inner.insert(*variable, Some(numbers.named(format!("counted by loop {depth}"))));
                        [lower, upper, step].map(|bound| numbers.of(bound, &values)).to_vec()
                    }
                    Node::While { before, condition, .. } => {
                        before.iter().for_each(|node| numbers.go_over(node, &mut inner));
                        vec![numbers.of(condition, &inner)]
                    }
                    _ => Vec::new(),
                };
                found.push((bounds, Vec::new()));
                let after = level(group, body, made, inner, numbers, found);
                let next = carried.iter().map(|(id, own)| (*own, after.get(id).copied().flatten())).collect();
                found[depth].1 = next;
                for (id, _) in begun {
                    values.insert(id, None);
                }
            }
            // Early returns: what follows stands in one of the ways.
            Node::If { then, otherwise, .. } if has_pipelined(then) || has_pipelined(otherwise) => {
                for way in [then, otherwise].into_iter().filter(|way| has_pipelined(way)) {
                    values = level(group, way, made, values, numbers, found);
                }
            }
            _ => numbers.go_over(node, &mut values),
        }
    }
    values
}
