//! Which cursors need a value before the group's code begins: those that live as long as the group, and those whose
//! first value comes only after their first use in the text, where what is used then is of an iteration before the first.

use std::collections::BTreeSet;
use twill_codegen::ir::CursorId;
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Group, Slot};
use twill_codegen::ir::{Node, Op, visit};

/// The cursors that begin at slot 0.
pub(crate) fn defined_first(group: &Group) -> BTreeSet<CursorId> {
    let mut first = BTreeSet::new();
    visit(&group.body, &mut |op| {
        if let Op::AdvanceCursor(cursor) = op {
            first.insert(*cursor);
        }
    });
    let mut defined = first.clone();
    scan(&group.body, &mut defined, &mut first);
    scan(&group.end, &mut defined, &mut first);
    first
}

/// Goes through code with what is defined where it begins, and adds what is used undefined.
fn scan(nodes: &[Node], defined: &mut BTreeSet<CursorId>, undefined: &mut BTreeSet<CursorId>) {
    for node in nodes {
        match node {
            Node::Op(op, _) => {
                for cursor in uses(op) {
                    if !defined.contains(&cursor) {
                        undefined.insert(cursor);
                    }
                }
                if let Op::CopyCursor { to, .. } = op {
                    defined.insert(*to);
                }
            }
            // What is defined in a block alone is not after it.
            _ => node.blocks().into_iter().for_each(|block| scan(block, &mut defined.clone(), undefined)),
        }
    }
}

/// Cursors whose slot or phase an operation reads.
fn uses(op: &Op) -> Vec<CursorId> {
    let mut cursors = Vec::new();
    let mut slot = |s: &Slot| cursors.extend(s.at);
    let tile = |e: &Expression, slot: &mut dyn FnMut(&Slot)| {
        e.walk(&mut |e| {
            if let ExpressionKind::FromShared(s) | ExpressionKind::FromTensor(s) = &e.kind {
                slot(s);
            }
        });
    };
    match op {
        Op::Let { value, .. } => tile(value, &mut slot),
        Op::LocalStore { value, to } => {
            tile(value, &mut slot);
            slot(to);
        }
        Op::TmaLoad { to, .. } | Op::CpAsync { to, .. } => slot(to),
        Op::TmaStore { from, .. } => slot(from),
        Op::Wgmma { left, right, .. } => {
            for operand in [left, right] {
                if let twill_codegen::ir::Operand::Shared(s) = operand {
                    slot(s);
                }
            }
        }
        Op::Tcgen05Mma(mma) => {
            [&mma.left, &mma.right, &mma.to].into_iter().for_each(slot);
            cursors.extend(mma.signals.iter().map(|(_, at)| *at));
        }
        Op::Tcgen05Commit(signals) => cursors.extend(signals.iter().map(|(_, at)| *at)),
        Op::MbarrierWait { at, .. } | Op::MbarrierArrive { at, .. } | Op::CopyCursor { from: at, .. } => {
            cursors.push(*at)
        }
        _ => {}
    }
    cursors
}
