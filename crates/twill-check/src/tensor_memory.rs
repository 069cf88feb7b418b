//! `tensor_memory`: what is reserved and the live values together fit at any time.

use crate::Violation;
use crate::lives::{self, Life};
use crate::placed::{Placed, amount};
use crate::rejected::Violations;
use twill_graph::Storage;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    if lives::replayable(placed).is_err() {
        return;
    }
    let mut lives = Vec::new();
    for (op, operation) in placed.operations() {
        if let Storage::Tensor(columns) = operation.storage {
            lives.push(Life::of_result(placed, op, columns.0));
        }
    }
    let (reserved, available) = (placed.graph().reserved().tensor.0, placed.problem.resources().tensor_memory.0);
    let most = lives::most(placed, &lives);
    let required = most.as_ref().map_or(0, |(peak, _)| peak.total).saturating_add(reserved.into());
    if required > i128::from(available) {
        let (at, holders) = lives::place(placed, most);
        violations.push(Violation::TensorMemory { available, required: amount(required), reserved, at, holders });
    }
}
