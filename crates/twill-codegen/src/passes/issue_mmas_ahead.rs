//! MMAs between a write to shared memory and its fence.
//!
//! What a group writes for others is fenced, the group's warps synchronise, and it is given away. An MMA of a batch that follows
//! starts ahead of all that: the tensor core is at work while warps wait for each other. (Attention backward on an H200: 2 to
//! 3 %.)

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::Operand;
use crate::ir::{Moment, Stamp};
use crate::ir::{Node, Op, within};

/// The pass.
///
/// Before: the groups are complete. After: for schedules with MMA batches, no MMA waits for a fence of what it does not read.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    if builder.options.mma_batches {
        builder.program.groups.iter_mut().for_each(|group| start_ahead(&mut group.body));
    }
    Ok(())
}

/// Moves MMAs right after a fence to the write before it, unless they read what is written.
fn start_ahead(nodes: &mut [Node]) {
    within(nodes, |nodes| start_ahead(nodes));
    for end in 0..nodes.len() {
        if !matches!(&nodes[end], Node::Op(Op::Wgmma { .. }, _)) {
            continue;
        }
        // The timestamp of its start belongs to it, if it timestamps nothing else.
        let marks_start = |stamps: &[Stamp]| stamps.iter().all(|stamp| stamp.moment == Moment::Issue);
        let start = match end.checked_sub(1).map(|before| &nodes[before]) {
            Some(Node::Op(Op::Timestamp(stamps), _)) if marks_start(stamps) => end - 1,
            _ => end,
        };
        // One of several that make a result together stays with the others.
        if goes_on(&nodes[end], nodes.get(end + 1)) {
            continue;
        }
        let passed = nodes[..start].iter().rev().take_while(|node| is_passed(node)).count();
        let fenced = nodes[start - passed..start].iter().any(|node| matches!(node, Node::Op(Op::FenceProxyAsync, _)));
        let writes = start - passed;
        if let (true, Some(Node::Op(Op::LocalStore { to, .. }, _)), Node::Op(Op::Wgmma { left, right, .. }, _)) =
            (fenced, writes.checked_sub(1).map(|write| &nodes[write]), &nodes[end])
        {
            let reads = |operand: &Operand| matches!(operand, Operand::Shared(slot) if slot.buffer == to.buffer);
            if !reads(left) && !reads(right) {
                nodes[writes..=end].rotate_right(end + 1 - start);
            }
        }
    }
}

/// Whether an MMA's result is made on by the next.
fn goes_on(one: &Node, next: Option<&Node>) -> bool {
    matches!(
        (one, next),
        (Node::Op(Op::Wgmma { to, .. }, _), Some(Node::Op(Op::Wgmma { to: on, .. }, _))) if to == on
    )
}

/// Whether an MMA may start ahead of it. The group synchronises after its own write alone (`LoopBuilder::movement`), for what it wrote.
fn is_passed(node: &Node) -> bool {
    let Node::Op(op, _) = node else { return false };
    matches!(op, Op::FenceProxyAsync | Op::GroupSync | Op::MbarrierArrive { .. } | Op::Timestamp(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Expression;
    use crate::ir::Note;
    use crate::ir::{BufferId, MemoryValue, SlotValue};
    use crate::ir::{Slot, VariableId};

    fn slot(buffer: u32) -> Slot {
        let value = SlotValue::outside(MemoryValue::Staged(0));
        Slot { buffer: BufferId(buffer), at: None, slice: None, transposed: false, value }
    }

    /// A write, its fence, and an MMA of what is in a buffer, with its timestamp; what becomes of them.
    fn moved(read: u32) -> Vec<&'static str> {
        let mma = Op::Wgmma {
            to: VariableId(0),
            left: Operand::Registers(VariableId(1)),
            right: Operand::Shared(slot(read)),
            accumulator: None,
        };
        let write = Op::LocalStore { value: Expression::integer(0), to: slot(1) };
        let ops = [Op::GroupSync, write, Op::FenceProxyAsync, Op::GroupSync, Op::Timestamp(Vec::new()), mma];
        let mut nodes: Vec<Node> = ops.into_iter().map(|op| Node::Op(op, Note::default())).collect();
        start_ahead(&mut nodes);
        let name = |node: &Node| match node {
            Node::Op(Op::LocalStore { .. }, _) => "write",
            Node::Op(Op::FenceProxyAsync, _) => "fence",
            Node::Op(Op::GroupSync, _) => "sync",
            Node::Op(Op::Timestamp(_), _) => "timestamp",
            Node::Op(Op::Wgmma { .. }, _) => "mma",
            _ => "?",
        };
        nodes.iter().map(name).collect()
    }

    #[test]
    fn what_a_mma_reads_is_fenced_before() {
        assert_eq!(moved(2), ["sync", "write", "timestamp", "mma", "fence", "sync"]);
        assert_eq!(moved(1), ["sync", "write", "fence", "sync", "timestamp", "mma"]);
    }
}
