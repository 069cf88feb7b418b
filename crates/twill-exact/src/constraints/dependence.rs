//! `t_v + δI ≥ t_u + d` for every dependence. Holds unconditionally, so it needs no clause.

use crate::encoding::node;
use crate::theory::Bound;
use twill_graph::Problem;

/// Appends the bounds at `interval`; `None` when an operation waits for its own next iteration too
/// long.
pub(crate) fn bounds(problem: &Problem, interval: i64, bounds: &mut Vec<Bound>) -> Option<()> {
    for d in problem.graph().dependences() {
        let least = d.delay.0 - i64::from(d.distance) * interval;
        if d.from != d.to {
            bounds.push(Bound { from: node(d.from), to: node(d.to), least });
        } else if least > 0 {
            return None;
        }
    }
    Some(())
}
