//! `handoff`: a register value that is read on another group gets there through shared memory
//! first, `t_v + δI ≥ t_u + d + handoff(u)`; one that is carried to a later iteration stays on its
//! group; with the option `cross_group_registers` off all do.

use crate::Violation;
use crate::placed::{Placed, cycles};
use crate::rejected::Violations;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    for d in placed.graph().dependences().iter().filter(|d| placed.is_handoff(d)) {
        let (from, from_group) = (placed.name(d.from), placed.group(d.from));
        let (to, to_group) = (placed.name(d.to), placed.group(d.to));
        if !placed.problem.options().cross_group_registers {
            violations.push(Violation::HandoffForbidden { from, from_group, to, to_group });
        } else if d.distance > 0 {
            violations.push(Violation::HandoffCarried { from, from_group, to, to_group, distance: d.distance });
        } else {
            let issued = placed.issue(d.from);
            let there = i128::from(d.delay.0) + i128::from(placed.graph().operation(d.from).handoff.0);
            let (required, given) = (issued + there, placed.issue(d.to));
            if given < required {
                violations.push(Violation::HandoffEarly {
                    from,
                    from_group,
                    to,
                    to_group,
                    issued: cycles(issued),
                    required: cycles(required),
                    given: cycles(given),
                });
            }
        }
    }
}
