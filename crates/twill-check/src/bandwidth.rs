//! `bandwidth`: shared memory moves the bytes of an iteration in an interval.

use crate::Violation;
use crate::placed::{Placed, amount};
use crate::rejected::Violations;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let Some(rate) = placed.problem.resources().shared_bytes_per_cycle else { return };
    let required: i128 = placed.operations().map(|(_, operation)| i128::from(operation.traffic.shared.0)).sum();
    // Every interval begins one iteration, so in a long run they move as many iterations as there are intervals.
    let available = i128::from(rate.0) * placed.interval;
    if required > available {
        let moving = placed.operations().filter(|(_, operation)| operation.traffic.shared.0 > 0);
        violations.push(Violation::Bandwidth {
            available: amount(available),
            required: amount(required),
            operations: moving.map(|(_, operation)| operation.name.clone()).collect(),
        });
    }
}
