//! Multiplies between a write to shared memory and its fence.
//!
//! What a group writes for others is fenced, the group's warps meet, and it is given away. A multiply of a burst that follows
//! starts ahead of all that: the tensor core is at work while warps wait for each other. (Attention backward on an H200: 2 to
//! 3 %.)

use super::action::{Action, Node};
use super::program::Operand;

/// Moves multiplies right behind a fence to the write before it, unless they read what is written.
pub(super) fn start_ahead(nodes: &mut Vec<Node>) {
    for node in nodes.iter_mut() {
        match node {
            Node::Do(..) => {}
            Node::Loop { body, .. } => start_ahead(body),
            Node::When { then, exactly, .. } => {
                start_ahead(then);
                exactly.iter_mut().for_each(|(_, nodes)| start_ahead(nodes));
            }
        }
    }
    for end in 0..nodes.len() {
        if !matches!(&nodes[end], Node::Do(Action::Multiply { .. }, _)) {
            continue;
        }
        // The mark of its start belongs to it.
        let begins = end > 0 && matches!(&nodes[end - 1], Node::Do(Action::Mark(_), _));
        let start = if begins { end - 1 } else { end };
        let passed = nodes[..start].iter().rev().take_while(|node| is_passed(node)).count();
        let fenced = nodes[start - passed..start].iter().any(|node| matches!(node, Node::Do(Action::Fence, _)));
        let writes = start - passed;
        if let (true, Some(Node::Do(Action::Write { to, .. }, _)), Node::Do(Action::Multiply { left, right, .. }, _)) =
            (fenced, writes.checked_sub(1).map(|write| &nodes[write]), &nodes[end])
        {
            let reads = |operand: &Operand| matches!(operand, Operand::Shared(slot) if slot.buffer == to.buffer);
            if !reads(left) && !reads(right) {
                nodes[writes..=end].rotate_right(end + 1 - start);
            }
        }
    }
}

/// Whether a multiply may start ahead of it.
fn is_passed(node: &Node) -> bool {
    let Node::Do(action, _) = node else { return false };
    matches!(action, Action::Fence | Action::Meet | Action::Arrive { .. } | Action::Mark(_))
}
