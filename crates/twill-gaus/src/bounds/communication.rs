//! The least communication that dependences and the latency bound leave: `min Σ c · (s_to + δ·II − s_from)`, a
//! [flow](super::flow), exact as long as resources are not looked at.

use super::flow::{Arc, cheapest};
use super::{Argument, flow_windows};
use crate::{Mobility, Precedence};
use twill_graph::Dataflow;

/// A lower bound on communication.
pub(super) fn communication(
    graph: &Dataflow,
    precedence: &Precedence,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
) -> (i128, Argument) {
    let counted = || graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some());
    // Each dependence by itself is at least as long as its delay.
    let edges: i128 = counted().map(|d| i128::from(d.communication) * i128::from(d.delay)).sum();
    let Some(window) = flow_windows(graph, precedence, mobility, interval) else {
        return (edges, Argument::Delays);
    };
    let mut weights = vec![0_i64; graph.operations().len()];
    let mut constant = 0_i128;
    for d in counted() {
        weights[d.to.index()] += d.communication as i64;
        weights[d.from.index()] -= d.communication as i64;
        constant += i128::from(d.communication) * i128::from(d.distance) * i128::from(interval.unwrap_or(0));
    }
    let arcs: Vec<Arc> = (0..precedence.len())
        .flat_map(|v| {
            precedence.successors(v).iter().map(move |s| Arc { from: v as u32, to: s.op() as u32, lag: s.lag })
        })
        .collect();
    (edges, Argument::Delays).max((cheapest(&weights, &window, &arcs).bound + constant, Argument::Flow))
}
