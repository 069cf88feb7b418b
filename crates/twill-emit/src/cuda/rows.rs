//! In kernels with tensor memory, tiles that nothing else decides about are held in rows, as those from there: each layout
//! is then one that others can be combined with.

use crate::kernel::action::Action;
use crate::kernel::expression::{Expression, ExpressionKind};
use crate::kernel::layout::{Layout, Reach, inlined, of_other_variables, of_variables, visit};
use crate::kernel::program::Group;

/// Warps of a group that reaches all of tensor memory.
const WARPS: u32 = 4;

/// The layouts of a group's variables.
pub(super) fn layouts_in_rows(group: &Group) -> Vec<Option<Layout>> {
    let found = of_variables(group, Reach::Tiles);
    let anew = inlined(group, &found);
    let is_open = |k: usize| match &found[k] {
        None => !anew.keys().any(|v| v.index() == k),
        Some(layout) => matches!(layout, Layout::Blocked { .. }),
    };
    let mut chosen = vec![None; found.len()];
    visit(&group.body, &mut |action| {
        let mut choose = |k: usize, layout: &Layout| {
            if is_open(k) {
                chosen[k].get_or_insert_with(|| layout.clone());
            }
        };
        match action {
            Action::Let { to, value } => {
                if let Some(layout) = own(group, value) {
                    choose(to.index(), &layout);
                }
                ask(group, value, None, &mut choose);
            }
            Action::Write { value, .. } => ask(group, value, None, &mut choose),
            Action::Put { pointers, value, mask } | Action::PutAdd { pointers, value, mask } => {
                [pointers, value].into_iter().chain(mask).for_each(|e| ask(group, e, None, &mut choose));
            }
            _ => {}
        }
    });
    of_other_variables(group, Reach::Tiles, &chosen)
}

/// That of a whole tile that tensor memory could hold.
pub(super) fn of_shape(group: &Group, shape: &[u64]) -> Option<Layout> {
    match *shape {
        [rows @ (64 | 128), columns] if columns > 1 && columns % 8 == 0 && group.warps == WARPS => {
            Some(Layout::Tensor { rows, columns, warps: WARPS })
        }
        _ => None,
    }
}

/// That of a whole tile, or of what tiles were reduced to.
fn own(group: &Group, value: &Expression) -> Option<Layout> {
    of_shape(group, &value.shape).or_else(|| match &value.kind {
        ExpressionKind::Reduce { axis, operand, .. } => {
            of_shape(group, &operand.shape).map(|l| Layout::Slice(*axis, Box::new(l)))
        }
        ExpressionKind::Apply { operands, .. } => operands.iter().find_map(|o| own(group, o)),
        _ => None,
    })
}

/// Tells which variables an expression needs in which layout, if it is to be in `wanted`, or in that of its shape.
fn ask(group: &Group, value: &Expression, wanted: Option<&Layout>, choose: &mut impl FnMut(usize, &Layout)) {
    let own = own(group, value);
    let wanted = own.as_ref().or(wanted);
    match &value.kind {
        ExpressionKind::Variable(id) => {
            if let Some(layout) = wanted.filter(|_| !value.shape.is_empty()) {
                choose(id.index(), layout);
            }
        }
        ExpressionKind::Apply { operands, .. } => operands.iter().for_each(|o| ask(group, o, wanted, choose)),
        ExpressionKind::Broadcast(x) => ask(group, x, wanted, choose),
        ExpressionKind::ExpandDims(axis, x) => {
            let sliced = wanted.map(|l| Layout::Slice(*axis, Box::new(l.clone())));
            ask(group, x, sliced.as_ref(), choose);
        }
        ExpressionKind::Transpose(_, x) => ask(group, x, None, choose),
        ExpressionKind::Reduce { operand: x, .. } | ExpressionKind::Shares(x) => ask(group, x, None, choose),
        ExpressionKind::Load { pointers, mask, other } => {
            ask(group, pointers, wanted, choose);
            mask.iter().chain(other).for_each(|x| ask(group, x, wanted, choose));
        }
        _ => {}
    }
}
