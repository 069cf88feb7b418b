//! `dependence`: a consumer issues no earlier than its dependence allows,
//! `t_v + δI ≥ t_u + d`.
//!
//! All iterations are alike and I apart, so the producer of iteration 0 and the consumer of
//! iteration δ stand for all pairs.

use crate::Violation;
use crate::placed::{Placed, cycles};
use crate::rejected::Violations;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    for d in placed.graph().dependences() {
        let issued = placed.issue(d.from);
        let (required, given) = (issued + i128::from(d.delay.0), placed.read_at(d));
        if given < required {
            violations.push(Violation::Dependence {
                from: placed.name(d.from),
                to: placed.name(d.to),
                distance: d.distance,
                issued: cycles(issued),
                required: cycles(required),
                given: cycles(given),
            });
        }
    }
}
