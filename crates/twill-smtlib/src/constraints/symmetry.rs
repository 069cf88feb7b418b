//! Compute groups are interchangeable: an operation opens one only if an earlier one is on the group
//! before it. This excludes no schedule, only other names for its groups. Where sub-tiles are assigned to groups, these
//! have their names already.

use crate::model::Model;
use crate::term::{implies, or};
use twill_graph::{OpId, WarpAssignment};

pub(super) fn write(m: &mut Model) {
    if m.problem.options().warp_assignment == WarpAssignment::BySubTile {
        return;
    }
    m.script.comment("\nsymmetry: compute groups are interchangeable and opened in order. May be left out.");
    let operations: Vec<OpId> = m.problem.graph().op_ids().collect();
    for pair in m.compute_groups().windows(2) {
        let (before, group) = (pair[0], pair[1]);
        let opens = |&v: &OpId| {
            let opened = or(operations[..v.index()].iter().map(|o| m.warp(*o, before)));
            implies(&[&m.warp(v, group)], opened)
        };
        let terms: Vec<_> = operations.iter().map(opens).collect();
        m.script.assert(format!("symmetry: group {}", group.index()), terms);
    }
}
