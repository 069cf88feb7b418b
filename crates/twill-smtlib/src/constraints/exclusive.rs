//! Synchronous operations of one group do not overlap modulo `I`, nor does one overlap itself.
//! Option *off*: the paper, which leaves this out.

use crate::model::Model;
use crate::term::{Term, implies};
use twill_graph::OpId;

pub(super) fn write(m: &mut Model) {
    let graph = m.problem.graph();
    if !m.problem.options().exclusive_issue {
        m.script.comment("\nexclusive: not asked for.");
        return;
    }
    m.script.comment("\nexclusive a / b: synchronous operations of one group do not overlap.");
    let busy = |v: &OpId| graph.operation(*v).is_synchronous() && graph.operation(*v).occupancy.0 > 0;
    let operations: Vec<OpId> = graph.op_ids().filter(busy).collect();
    let cycles = |v: OpId| graph.operation(v).occupancy.0;
    for &v in operations.iter().filter(|v| cycles(**v) > m.interval) {
        m.script.assert(format!("exclusive: {}", m.name(v)), [Term::Known(false)]);
    }
    for (i, &b) in operations.iter().enumerate() {
        for &a in &operations[..i] {
            let apart = m.apart(a, b);
            let terms = if cycles(a) >= m.interval || cycles(b) >= m.interval {
                vec![apart]
            } else {
                let (held, also) = (m.window(a, 0, cycles(a)), m.window(b, 0, cycles(b)));
                held.iter().zip(&also).map(|(x, y)| implies(&[x, y], apart.clone())).collect()
            };
            m.script.assert(format!("exclusive: {} / {}", m.name(a), m.name(b)), terms);
        }
    }
}
