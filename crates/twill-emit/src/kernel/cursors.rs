//! Which cursors need a value before the group's code begins: those that live as long as the group, and those whose
//! first value comes only after their first use in the text, where what is used then is of an iteration before the first.

use super::action::{Action, Node, visit};
use super::expression::{Expression, ExpressionKind};
use super::program::{Group, Slot};
use std::collections::BTreeSet;
use twill_check::protocol::CursorId;

/// The cursors that begin at slot 0.
pub(crate) fn defined_first(group: &Group) -> BTreeSet<CursorId> {
    let mut first = BTreeSet::new();
    visit(&group.body, &mut |action| {
        if let Action::Advance(cursor) = action {
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
            Node::Do(action, _) => {
                for cursor in uses(action) {
                    if !defined.contains(&cursor) {
                        undefined.insert(cursor);
                    }
                }
                if let Action::Keep { to, .. } = action {
                    defined.insert(*to);
                }
            }
            // What is defined in a block alone is not behind it.
            Node::Loop { body, .. } => scan(body, &mut defined.clone(), undefined),
            Node::When { then, exactly, .. } => {
                for block in std::iter::once(then).chain(exactly.iter().map(|(_, nodes)| nodes)) {
                    scan(block, &mut defined.clone(), undefined);
                }
            }
        }
    }
}

/// Cursors whose slot or phase an action reads.
fn uses(action: &Action) -> Vec<CursorId> {
    let mut cursors = Vec::new();
    let mut slot = |s: &Slot| cursors.extend(s.at);
    let tile = |e: &Expression, slot: &mut dyn FnMut(&Slot)| {
        e.walk(&mut |e| {
            if let ExpressionKind::FromShared(s) | ExpressionKind::FromTensor(s) = &e.kind {
                slot(s);
            }
        });
    };
    match action {
        Action::Let { value, .. } => tile(value, &mut slot),
        Action::Write { value, to } => {
            tile(value, &mut slot);
            slot(to);
        }
        Action::Load { to, .. } | Action::Copy { to, .. } => slot(to),
        Action::Store { from, .. } => slot(from),
        Action::Multiply { left, right, .. } => {
            for operand in [left, right] {
                if let super::program::Operand::Shared(s) = operand {
                    slot(s);
                }
            }
        }
        Action::MultiplyInTensor(multiply) => {
            [&multiply.left, &multiply.right, &multiply.to].into_iter().for_each(slot);
            cursors.extend(multiply.signals.iter().map(|(_, at)| *at));
        }
        Action::Commit(signals) => cursors.extend(signals.iter().map(|(_, at)| *at)),
        Action::Wait { at, .. } | Action::Arrive { at, .. } | Action::Keep { from: at, .. } => cursors.push(*at),
        _ => {}
    }
    cursors
}
