//! How much storage any schedule needs in one step.
//!
//! - *Operands*: one step before an operation starts, all values are live that it reads and that take at least a step.
//! - *Compulsory*: a value is live from the latest start of its producer to the earliest start of its last reader.
//! - *Cut*: what is live at a step, however operations are divided into those before and after: a [cut](super::cut).
//! - *Energy*: a value lives at least as long as its longest dependence; [energy](super::energy) within windows.
//! - *Lifetimes*: the least that all lifetimes together can be, `min Σ storage_v · (z_v − s_v)` where `z_v ≥ s_w + δ·II`, is a
//!   [flow](super::flow); divided by the slots, `⌈Σ / II⌉` (Huff, "Lifetime-Sensitive Modulo Scheduling", PLDI 1993:
//!   MinAvg), or by the latency bound.

use super::cut::cut;
use super::energy::{Part, ceiling, densest};
use super::flow::{Arc, Cheapest, cheapest};
use super::{Argument, flow_windows};
use crate::control::Clock;
use crate::{Mobility, Precedence};
use std::collections::HashSet;
use twill_graph::{Dataflow, DataflowDependence};

/// Part of the time that the flow may take.
const FLOW: f64 = 0.7;

pub(super) struct Values<'a> {
    pub graph: &'a Dataflow,
    pub precedence: &'a Precedence,
    /// Where latency is bounded.
    pub mobility: Option<&'a Mobility>,
    pub interval: Option<u64>,
}

impl Values<'_> {
    /// The best of all arguments, as far as there is time for them, and the flow of the least sum of lifetimes, where it
    /// came to that.
    pub fn peak(&self, clock: &Clock<'_>) -> ((i128, Argument), Option<Cheapest>) {
        let rows = self.interval.or(self.mobility.map(|m| m.latency));
        // First, for a search beside it waits for the schedule.
        let total = rows.zip(self.lifetimes(&clock.share(FLOW)));
        let mut best = (self.operands(), Argument::Operands);
        if let Some(mobility) = self.mobility {
            let (compulsory, lives) = self.parts(mobility);
            best = best.max((densest(&compulsory, self.interval, i128::MAX, clock), Argument::Compulsory));
            best = best.max((densest(&lives, self.interval, i128::MAX, clock), Argument::Energy));
            if !clock.is_over() {
                best = best.max((cut(self, mobility, &clock.share(0.3)), Argument::Cut));
            }
        }
        let Some((rows, total)) = total else { return (best, None) };
        (best.max((ceiling(total.bound, rows.into()), Argument::Lifetimes)), Some(total))
    }

    /// `δ · II` of a dependence.
    pub fn apart(&self, d: &DataflowDependence) -> i64 {
        (u64::from(d.distance)).saturating_mul(self.interval.unwrap_or(0)).min(1 << 60) as i64
    }

    pub fn reads(&self, v: usize) -> impl Iterator<Item = (usize, &DataflowDependence)> {
        let dependences = self.graph.dependences();
        self.precedence.successors(v).iter().map(move |s| (s.op(), &dependences[s.dependence()]))
    }

    fn operands(&self) -> i128 {
        let mut most = 0;
        let mut seen = HashSet::new();
        for w in 0..self.precedence.len() {
            seen.clear();
            let mut sum = 0;
            for p in self.precedence.predecessors(w) {
                let d = &self.graph.dependences()[p.dependence()];
                // Copies of different iterations are different values.
                if d.delay >= 1 && seen.insert((p.op(), d.distance)) {
                    sum += i128::from(self.graph.operations()[p.op()].storage);
                }
            }
            most = most.max(sum);
        }
        most
    }

    /// The part of a value's life whose place is known, and its shortest life with its place open.
    fn parts(&self, mobility: &Mobility) -> (Vec<Part>, Vec<Part>) {
        let (mut compulsory, mut lives) = (Vec::new(), Vec::new());
        for (v, op) in self.graph.operations().iter().enumerate() {
            let (earliest, latest) = (mobility.earliest[v] as i64, mobility.latest[v] as i64);
            let read = |(w, d): (usize, &DataflowDependence)| mobility.earliest[w] as i64 + self.apart(d);
            let known = self.reads(v).map(read).max().map_or(0, |last| (last - latest).max(0));
            let life = self.reads(v).map(|(_, d)| d.delay).max().unwrap_or(0).max(known);
            let amount = op.storage as i64;
            compulsory.push(Part { first: latest, last: latest, steps: known, amount });
            lives.push(Part { first: earliest, last: latest, steps: life, amount });
        }
        (compulsory, lives)
    }

    /// All lifetimes times storage, at least, and a schedule of the least; `None` when numbers are beyond the method.
    pub fn lifetimes(&self, clock: &Clock<'_>) -> Option<Cheapest> {
        let count = self.precedence.len();
        let mut window = flow_windows(self.graph, self.precedence, self.mobility, self.interval)?;
        let mut weights = vec![0_i64; count];
        let mut arcs = Vec::new();
        for v in 0..count {
            let storage = self.graph.operations()[v].storage as i64;
            arcs.extend(self.precedence.successors(v).iter().map(|s| Arc {
                from: v as u32,
                to: s.op() as u32,
                lag: s.lag,
            }));
            if storage == 0 || self.precedence.successors(v).is_empty() {
                continue;
            }
            let end = window.len() as u32;
            let (mut least, mut greatest) = window[v];
            arcs.push(Arc { from: v as u32, to: end, lag: 0 });
            for (w, d) in self.reads(v) {
                let lag = self.apart(d);
                arcs.push(Arc { from: w as u32, to: end, lag });
                (least, greatest) = (least.max(window[w].0 + lag), greatest.max(window[w].1 + lag));
            }
            window.push((least, greatest));
            weights.push(storage);
            weights[v] -= storage;
        }
        let mut found = cheapest(&weights, &window, &arcs, clock);
        if let Some(solution) = &mut found.solution {
            solution.truncate(count);
        }
        Some(found)
    }
}
