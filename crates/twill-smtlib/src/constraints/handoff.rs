//! A register value read on another group passes through shared memory, which takes time:
//! `t_v + δI ≥ t_u + d + handoff(u)`. Carried values, and all under `cross_group_registers = false`,
//! stay on their group.

use super::dependence::{at_least, label};
use crate::model::Model;
use crate::term::not;

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nhandoff u -> v of a register value: on one group, or t_v >= t_u + d + handoff(u);\n\
         on one group if it is carried from an earlier iteration.",
    );
    for d in m.register_values() {
        let apart = m.apart(d.from, d.to);
        let stays = d.distance > 0 || !m.problem.options().cross_group_registers;
        let delay = d.delay.0 + m.problem.graph().operation(d.from).handoff.0;
        let terms = if stays { vec![not(&apart)] } else { at_least(m, d, delay, &apart) };
        m.script.assert(label(m, "handoff", d), terms);
    }
}
