//! In every slot the reservations of a unit, folded modulo `I`, are at most its capacity.

use crate::model::Model;
use crate::term::{Term, at_most};
use twill_graph::UnitId;
use twill_graph::saturate;

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nresource f: reserved cycles of unit f that fall into a slot are at most its instances.\n\
         in_v_s_c_r: slot r is one of the c slots from s cycles after the issue of v.",
    );
    let problem = m.problem;
    for (index, unit) in problem.resources().units.iter().enumerate() {
        let mut held: Vec<Vec<(u64, Term)>> = vec![Vec::new(); saturate::<usize>(m.interval)];
        let mut always: i128 = 0;
        for v in problem.graph().op_ids() {
            let reservations = problem.graph().operation(v).reservations.iter().zip(problem.units_of(v));
            for (reservation, _) in reservations.filter(|(_, u)| **u == UnitId::new(index)) {
                // Whole rounds hold the unit in every slot, the rest in a window.
                always += i128::from(reservation.cycles.0 / m.interval);
                let window = m.window(v, reservation.start.0, reservation.cycles.0 % m.interval);
                held.iter_mut().zip(window).for_each(|(slot, term)| slot.push((1, term)));
            }
        }
        let room = i128::from(unit.capacity) - always;
        let terms: Vec<Term> = held.iter().flat_map(|slot| at_most(slot, room)).collect();
        m.script.assert(format!("resource: {}", unit.name), terms);
    }
}
