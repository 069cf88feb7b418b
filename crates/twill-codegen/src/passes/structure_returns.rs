//! Turns early returns into branches: what follows a branch that may return goes into the ways that do not.
//!
//! Before: any program. After: no return stands in a branch; one in a loop is left for the back ends, which refuse it.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::Node;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for group in &mut builder.program.groups {
        structure(&mut group.body);
    }
    Ok(())
}

/// Takes the early returns out of a group's code for a tile.
pub fn structure(nodes: &mut Vec<Node>) {
    let Some(at) = nodes.iter().position(returns) else { return };
    let rest = nodes.split_off(at + 1);
    match nodes.pop() {
        Some(Node::If { condition, mut then, mut otherwise }) => {
            for branch in [&mut then, &mut otherwise] {
                branch.extend(rest.iter().cloned());
                structure(branch);
            }
            nodes.push(Node::If { condition, then, otherwise });
        }
        // Nothing that follows it is reached.
        Some(Node::Return) | None => {}
        Some(other) => {
            nodes.push(other);
            nodes.extend(rest);
        }
    }
}

/// Whether a node is a return, or has one in it.
fn returns(node: &Node) -> bool {
    matches!(node, Node::Return) || node.blocks().into_iter().flatten().any(returns)
}
