//! Reserved and live columns fit tensor memory in every slot.

use crate::model::Model;
use crate::term::{Term, at_most};
use std::collections::BTreeMap;
use twill_graph::{Columns, Storage};

pub(super) fn write(m: &mut Model) {
    m.script.comment("\ntensor memory: columns alive fit in every slot.");
    let mut cells: BTreeMap<i64, Vec<(u64, Term)>> = BTreeMap::new();
    for v in m.problem.graph().op_ids() {
        let Storage::Tensor(columns) = m.problem.graph().operation(v).storage else { continue };
        if columns > Columns(0) {
            for (cell, copies) in m.live(v) {
                cells.entry(cell).or_default().extend(copies.into_iter().map(|alive| (columns.0, alive)));
            }
        }
    }
    let room = i128::from(m.problem.resources().tensor_memory.0) - i128::from(m.problem.graph().reserved().tensor.0);
    let terms: Vec<Term> = cells.values().flat_map(|cell| at_most(cell, room)).collect();
    m.script.assert("tensor_memory", terms);
}
