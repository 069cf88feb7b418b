//! The least communication that dependences and the latency bound leave: `min Σ c · (s_to + δ·II − s_from)`, a
//! [flow](super::flow), exact as long as resources are not looked at.

use super::flow::{Arc, Cheapest, cheapest};
use super::{Argument, flow_windows};
use crate::control::Clock;
use crate::{Mobility, Precedence};
use twill_graph::Dataflow;

/// A lower bound on communication, and the flow that it may come by.
pub(super) fn communication(
    graph: &Dataflow,
    precedence: &Precedence,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
    clock: &Clock<'_>,
) -> ((i128, Argument), Option<Cheapest>) {
    let counted = || graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some());
    // Each dependence by itself is at least as long as its delay.
    let delays: i128 = counted().map(|d| i128::from(d.communication) * i128::from(d.delay)).sum();
    // The cost of the distance between iterations.
    let apart = |d: &twill_graph::DataflowDependence| {
        i128::from(d.communication) * i128::from(d.distance) * i128::from(interval.unwrap_or(0))
    };
    let found = least(graph, precedence, mobility, interval, clock);
    let flow = found.as_ref().map_or(i128::MIN, |found| found.bound + counted().map(apart).sum::<i128>());
    ((delays, Argument::Delays).max((flow, Argument::Flow)), found)
}

/// `min Σ c · (s_to − s_from)`, and a schedule of it; `None` when numbers are beyond the method.
pub(super) fn least(
    graph: &Dataflow,
    precedence: &Precedence,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
    clock: &Clock<'_>,
) -> Option<Cheapest> {
    let window = flow_windows(graph, precedence, mobility, interval)?;
    let mut weights = vec![0_i64; graph.operations().len()];
    for d in graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some()) {
        weights[d.to.index()] += d.communication as i64;
        weights[d.from.index()] -= d.communication as i64;
    }
    let successors = |v: usize| {
        let arc = move |s: &crate::Neighbour| Arc { from: v as u32, to: s.op() as u32, lag: s.lag };
        precedence.successors(v).iter().map(arc)
    };
    let arcs: Vec<Arc> = (0..precedence.len()).flat_map(successors).collect();
    Some(cheapest(&weights, &window, &arcs, clock))
}
