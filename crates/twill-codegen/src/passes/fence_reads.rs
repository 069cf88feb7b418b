//! Fences between what threads read of a ring and the TMA load that takes the slot next.
//!
//! Threads read shared memory by the generic proxy, and TMA writes it by the async proxy: only a fence orders the two (PTX ISA,
//! "async proxy"). Without one, the arrival at the empty barrier may overtake loads from shared memory, and TMA then overwrites what is
//! still to be read: seen on an H100, in the first tile of `triton_scaled_mm_block128` (docs/coverage.md).

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{BufferId, Expression, ExpressionKind, Node, Op, visit};
use std::collections::BTreeSet;

/// The pass.
///
/// Before: the groups are complete. After: between what a group's threads read of buffers that TMA fills, and its next arrival at an
/// mbarrier, there is a fence; with [`fenced_stores`](crate::GroupShares::fenced_stores) there is one after what threads store, and
/// one before MMAs.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    let program = &mut builder.program;
    let mut filled = BTreeSet::new();
    for nodes in program.groups.iter().flat_map(|group| [&group.begin, &group.body, &group.end]) {
        visit(nodes, &mut |op| {
            if let Op::TmaLoad { to, .. } | Op::CpAsync { to, whole: Some(_), .. } = op {
                filled.insert(to.buffer);
            }
        });
    }
    for group in &mut program.groups {
        for nodes in [&mut group.begin, &mut group.body, &mut group.end] {
            fence(nodes, &filled, false);
            if builder.options.shares.fenced_stores {
                fence_stores(nodes);
            }
        }
    }
    Ok(())
}

/// Fences after all that threads store to buffers, and before MMAs: what the compiler stores for itself, such as for another layout,
/// has none.
fn fence_stores(nodes: &mut Vec<Node>) {
    let mut at = 0;
    while at < nodes.len() {
        for block in nodes[at].blocks_mut() {
            fence_stores(block);
        }
        let is_fenced = matches!(nodes.get(at + 1), Some(Node::Op(Op::FenceProxyAsync | Op::LocalStore { .. }, _)));
        if let (Node::Op(Op::LocalStore { .. }, note), false) = (&nodes[at], is_fenced) {
            let note = note.clone();
            nodes.insert(at + 1, Node::Op(Op::FenceProxyAsync, note));
        }
        let follows = at.checked_sub(1).and_then(|before| nodes.get(before));
        let is_begun = matches!(follows, Some(Node::Op(Op::FenceProxyAsync | Op::Wgmma { .. }, _)));
        if let (Node::Op(Op::Wgmma { .. }, note), false) = (&nodes[at], is_begun) {
            let note = note.clone();
            nodes.insert(at, Node::Op(Op::FenceProxyAsync, note));
            at += 1;
        }
        at += 1;
    }
}

/// Fences in a list of nodes; whether its threads have read before, and whether they have at its end, without a fence since.
fn fence(nodes: &mut Vec<Node>, filled: &BTreeSet<BufferId>, mut have_read: bool) -> bool {
    let mut at = 0;
    while at < nodes.len() {
        have_read |= nodes[at].expressions().into_iter().any(|e| reads(e, filled));
        match &mut nodes[at] {
            Node::Op(Op::FenceProxyAsync, _) => have_read = false,
            Node::Op(Op::MbarrierArrive { .. }, note) if have_read => {
                let note = note.clone();
                nodes.insert(at, Node::Op(Op::FenceProxyAsync, note));
                have_read = false;
                at += 1;
            }
            // The tensor core reads by the async proxy itself.
            Node::Op(Op::Wgmma { .. } | Op::Tcgen05Mma(_), _) => {}
            Node::Op(op, _) => have_read |= op.reads().iter().any(|slot| filled.contains(&slot.buffer)),
            node => {
                // What an iteration leaves, the next one begins with.
                let is_loop = matches!(node, Node::PipelinedLoop { .. } | Node::For { .. } | Node::While { .. });
                let left =
                    is_loop && node.blocks().into_iter().any(|block| fence(&mut block.clone(), filled, have_read));
                let before = have_read | left;
                let after: Vec<bool> =
                    node.blocks_mut().into_iter().map(|block| fence(block, filled, before)).collect();
                // A loop, and a branch, may also be passed.
                have_read |= after.contains(&true);
            }
        }
        at += 1;
    }
    have_read
}

/// Whether threads read one of these buffers in an expression.
fn reads(expression: &Expression, filled: &BTreeSet<BufferId>) -> bool {
    let mut found = false;
    expression
        .walk(&mut |e| found |= matches!(&e.kind, ExpressionKind::FromShared(slot) if filled.contains(&slot.buffer)));
    found
}
