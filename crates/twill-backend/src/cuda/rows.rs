//! In kernels with tensor memory, tiles that nothing else decides about are held in rows, as those from there: each layout
//! is then one that others can be combined with.

use crate::layout::{Layout, Reach, inlined, of_other_variables, of_variables};
use std::collections::HashMap;
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Group, VariableId};
use twill_codegen::ir::{Op, visit};

/// Warps of a group that reaches all of tensor memory.
const WARPS: u32 = 4;

/// The layouts of a group's variables.
pub(super) fn layouts_in_rows(group: &Group) -> Vec<Option<Layout>> {
    let found = of_variables(group, Reach::Tiles);
    let anew = inlined(group, &found);
    let mut wishes = Wishes { group, chosen: vec![None; found.len()], found, anew };
    visit(&group.body, &mut |op| match op {
        Op::Let { to, value } => {
            if let Some(layout) = wishes.own(value) {
                wishes.choose(*to, &layout);
            }
            wishes.ask(value, None);
        }
        Op::LocalStore { value, .. } => wishes.ask(value, None),
        Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
            [pointers, value].into_iter().chain(mask).for_each(|e| wishes.ask(e, None));
        }
        _ => {}
    });
    of_other_variables(group, Reach::Tiles, &wishes.chosen)
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

/// Which layouts variables need.
struct Wishes<'a> {
    group: &'a Group,
    found: Vec<Option<Layout>>,
    anew: HashMap<VariableId, Expression>,
    chosen: Vec<Option<Layout>>,
}

impl Wishes<'_> {
    /// Chooses a layout for a variable that has none of its own.
    fn choose(&mut self, id: VariableId, layout: &Layout) {
        let is_open = match &self.found[id.index()] {
            None => !self.anew.contains_key(&id),
            Some(found) => matches!(found, Layout::Blocked { .. }),
        };
        if is_open {
            self.chosen[id.index()].get_or_insert_with(|| layout.clone());
        }
    }

    /// That of a whole tile, or of what tiles were reduced to.
    fn own(&self, value: &Expression) -> Option<Layout> {
        of_shape(self.group, &value.shape).or_else(|| match &value.kind {
            ExpressionKind::Reduce { axis, operand, .. } => {
                of_shape(self.group, &operand.shape).map(|l| Layout::Slice(*axis, Box::new(l)))
            }
            ExpressionKind::Apply { operands, .. } => operands.iter().find_map(|o| self.own(o)),
            _ => None,
        })
    }

    /// Chooses for the variables of an expression, if it is to be in `wanted`, or in a layout of its own.
    fn ask(&mut self, value: &Expression, wanted: Option<&Layout>) {
        let own = self.own(value);
        let wanted = own.as_ref().or(wanted);
        match &value.kind {
            ExpressionKind::Variable(id) => match self.anew.get(id).cloned() {
                Some(expression) => self.ask(&expression, wanted),
                None => {
                    if let Some(layout) = wanted.filter(|_| !value.shape.is_empty()) {
                        self.choose(*id, layout);
                    }
                }
            },
            ExpressionKind::Apply { operands, .. } => operands.iter().for_each(|o| self.ask(o, wanted)),
            ExpressionKind::Broadcast(x) => self.ask(x, wanted),
            ExpressionKind::ExpandDims(axis, x) => {
                let sliced = wanted.map(|l| Layout::Slice(*axis, Box::new(l.clone())));
                self.ask(x, sliced.as_ref());
            }
            ExpressionKind::Transpose(_, x) | ExpressionKind::Columns(_, x) | ExpressionKind::PartialSums(x) => {
                self.ask(x, None);
            }
            ExpressionKind::Reduce { operand, .. } => self.ask(operand, None),
            ExpressionKind::Load { pointers, mask, other } => {
                self.ask(pointers, wanted);
                mask.iter().chain(other).for_each(|x| self.ask(x, wanted));
            }
            _ => {}
        }
    }
}
