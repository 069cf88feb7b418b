//! Groups of which one thread is enough.

use super::tensor_memory;
use twill_codegen::ir::{Group, Node, Note, Op, WarpProgram};

/// Whether a group needs one thread only: it loads, and computes nothing but where from. Without a warp to keep converged it
/// waits and loads sooner (attention forward on an H200: 1 % fewer cycles).
pub(super) fn is_one_thread(kernel: &WarpProgram, group: &Group) -> bool {
    group.warps == 1 && !tensor_memory::is_used(kernel) && beyond_one_thread(group).is_none()
}

/// What is said about the first thing that a group does for which one thread is not enough.
pub(super) fn beyond_one_thread(group: &Group) -> Option<&Note> {
    let by_one = |op: &Op| match op {
        Op::Let { value, .. } => {
            let mut is_number = true;
            value.walk(&mut |e| is_number &= e.shape.is_empty());
            is_number
        }
        Op::Copy { to, .. } => group.variables[to.index()].shape.is_empty(),
        Op::TmaLoad { .. }
        | Op::MbarrierWait { .. }
        | Op::AdvanceCursor(_)
        | Op::CopyCursor { .. }
        | Op::Timestamp(_) => true,
        _ => false,
    };
    fn first<'n>(nodes: &'n [Node], by_one: &impl Fn(&Op) -> bool) -> Option<&'n Note> {
        nodes.iter().find_map(|node| match node {
            Node::Op(op, note) => (!by_one(op)).then_some(note),
            _ => node.blocks().into_iter().find_map(|nodes| first(nodes, by_one)),
        })
    }
    [&group.begin, &group.body, &group.end].into_iter().find_map(|nodes| first(nodes, &by_one))
}
