//! `resource`: no unit is held more often at once than it has instances, by whichever iterations.

use crate::placed::{Placed, amount};
use crate::rejected::Violations;
use crate::unroll::{Run, Span};
use crate::{Held, Violation};

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let units = &placed.problem.resources().units;
    let mut spans: Vec<Vec<Span>> = vec![Vec::new(); units.len()];
    for (op, operation) in placed.operations() {
        for reservation in &operation.reservations {
            let start = placed.issue(op) + i128::from(reservation.start.0);
            let end = start + i128::from(reservation.cycles.0);
            // `Problem::new` refuses a graph that names a unit which the machine has not.
            let Some(unit) = units.iter().position(|u| u.name == reservation.unit) else { continue };
            spans[unit].push(Span { op, held: Held::Unit, start, end, amount: 1 });
        }
    }
    for (unit, spans) in units.iter().zip(spans) {
        let run = Run::unroll(spans, placed.interval);
        let Some(peak) = run.peak() else { continue };
        if peak.total > i128::from(unit.capacity) {
            violations.push(Violation::Resource {
                unit: unit.name.clone(),
                available: unit.capacity.into(),
                required: amount(peak.total),
                at: run.moment(peak.cycle),
                holders: run.holders(placed, peak.cycle),
            });
        }
    }
}
