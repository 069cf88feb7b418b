//! `t_v + δI ≥ t_u + d` for every dependence.

use crate::model::Model;
use crate::term::{Term, implies};
use twill_graph::Dependence;

pub(super) fn write(m: &mut Model) {
    m.script.comment("\ndependence u -> v, delay d, distance delta: t_v + delta * I >= t_u + d.");
    for d in m.problem.graph().dependences() {
        let terms = at_least(m, d, d.delay.0, &Term::Known(true));
        m.script.assert(label(m, "dependence", d), terms);
    }
}

/// `t_v + δI ≥ t_u + delay`, provided `when` holds: where `v` has issued, `u` has so long before.
pub(super) fn at_least(m: &Model, d: &Dependence, delay: i64, when: &Term) -> Vec<Term> {
    let gap = delay - i64::from(d.distance) * m.interval;
    if d.from == d.to {
        return vec![if gap > 0 { implies(&[when], Term::Known(false)) } else { Term::Known(true) }];
    }
    (0..=m.latest(d.to)).map(|t| implies(&[when, &m.issued(d.to, t)], m.issued(d.from, t - gap))).collect()
}

/// A name for what is asserted of a dependence.
pub(super) fn label(m: &Model, family: &str, d: &Dependence) -> String {
    format!("{family}: {} -> {} ({})", m.name(d.from), m.name(d.to), d.distance)
}
