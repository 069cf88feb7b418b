//! Early returns, after [`structure`](crate::passes::structure_returns::structure): branches that a group's code ends with, on
//! conditions that are the same in all groups.

use super::value_numbers::{Numbers, Values};
use crate::ir::{Group, Node};

/// A condition by its number, and whether the program returns where it holds.
type Return = (usize, bool);

/// How many early returns the code of every group begins with, where they are the same in all groups; else none.
pub(super) fn same_in_all(groups: &[Group]) -> usize {
    let mut numbers = Numbers::default();
    let mut all = groups.iter().map(|group| returns_of(group, &mut numbers));
    let Some(first) = all.next() else { return 0 };
    if all.all(|other| other == first) { first.len() } else { 0 }
}

/// The early returns of a group, in order.
fn returns_of(group: &Group, numbers: &mut Numbers) -> Vec<Return> {
    let (mut values, mut found) = (Values::new(), Vec::new());
    let mut nodes = group.body.as_slice();
    while let Some((Node::If { condition, then, otherwise }, before)) = nodes.split_last() {
        for node in before {
            numbers.go_over(node, &mut values);
        }
        let Some(condition) = numbers.of(condition, &values) else { return found };
        if then.is_empty() == otherwise.is_empty() {
            return found;
        }
        found.push((condition, then.is_empty()));
        nodes = if then.is_empty() { otherwise } else { then };
    }
    found
}
