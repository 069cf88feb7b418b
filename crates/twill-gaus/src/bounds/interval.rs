//! The least initiation interval, as resources and recurrences by themselves have it.
//!
//! `ResMII = max_r ⌈Σ amount · steps / limit_r⌉`, and no operation may overlap itself beyond a limit;
//! `RecMII = max over cycles ⌈Σ delay / Σ distance⌉` (Rau, "Iterative Modulo Scheduling", MICRO 1994).
//!
//! And both together (own): on a recurrence, operations have windows relative to each other, whatever the latency, from the
//! longest path there to the longest path back. Where [energy](super::energy) within these is more than the limit, the
//! interval is excluded.

use super::energy::{Part, ceiling, densest};
use super::spaced::spaced;
use crate::Precedence;
use crate::control::{Clock, Control, Paced};
use std::collections::VecDeque;
use twill_graph::{Dataflow, DataflowOperation};

/// No schedule has a smaller interval than any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBound {
    /// `ResMII`, at least 1.
    pub resources: u64,
    /// `RecMII`, at least 1.
    pub recurrences: u64,
    /// The first interval from `MII` on that windows of recurrences do not exclude.
    pub windows: u64,
}

impl IntervalBound {
    /// `MII`, the greater of the bounds by resources and recurrences, as the literature has it.
    pub fn mii(self) -> u64 {
        self.resources.max(self.recurrences)
    }

    /// The greatest of all.
    pub fn least(self) -> u64 {
        self.mii().max(self.windows)
    }
}

/// The bound of a graph.
pub fn least_interval(graph: &Dataflow) -> IntervalBound {
    least_interval_within(graph, Control::default())
}

/// The bound of a graph; windows of recurrences are looked at while the budget lasts.
pub fn least_interval_within(graph: &Dataflow, control: Control<'_>) -> IntervalBound {
    bounded(graph, &Clock::start(control))
}

/// The bound of a graph, on a clock that is running already.
pub(crate) fn bounded(graph: &Dataflow, clock: &Clock<'_>) -> IntervalBound {
    let (resources, recurrences) = (resources(graph), recurrences(graph, clock));
    let mut windows = resources.max(recurrences);
    for _ in 0..TRIES {
        if !excluded(graph, windows, clock) {
            break;
        }
        windows += 1;
    }
    IntervalBound { resources, recurrences, windows }
}

/// Most intervals that are looked at one by one.
const TRIES: usize = 256;
/// Most operations of which the windows of others are counted from, and most dependences times these.
const ANCHORS: usize = 64;
const WORK: usize = 20_000_000;

/// Returns whether windows of recurrences exclude `interval`, which is not below `MII`, as far as there is time.
fn excluded(graph: &Dataflow, interval: u64, clock: &Clock<'_>) -> bool {
    if clock.is_over() || !graph.dependences().iter().any(|d| d.distance > 0) {
        return false;
    }
    let precedence = Precedence::new(graph, Some(interval));
    let is_limited = |resource: usize| graph.resources()[resource].limit.is_some();
    let limited = |v: &usize| graph.operations()[*v].uses.iter().any(|used| is_limited(used.resource.index()));
    let limited: Vec<usize> = (0..precedence.len()).filter(limited).collect();
    let anchors = limited.len().min(ANCHORS).min(WORK / (graph.dependences().len() + 1));
    (0..anchors).map(|k| limited[k * limited.len() / anchors]).take_while(|_| !clock.is_over()).any(|anchor| {
        let (there, back) = (longest(&precedence, anchor, true, clock), longest(&precedence, anchor, false, clock));
        let (Some(there), Some(back)) = (there, back) else { return false };
        let start = there.iter().zip(&back).filter_map(|(there, back)| there.filter(|_| back.is_some())).min();
        graph.resources().iter().enumerate().any(|(r, resource)| {
            let (Some(limit), Some(start)) = (resource.limit, start) else { return false };
            let part = |&v: &usize| {
                let (first, last) = (there[v]? - start, -back[v]? - start);
                let uses = graph.operations()[v].uses.iter().filter(move |used| used.resource.index() == r);
                Some(uses.map(move |used| Part {
                    first: first + i64::from(used.offset),
                    last: last + i64::from(used.offset),
                    steps: used.steps.into(),
                    amount: used.amount as i64,
                }))
            };
            let parts: Vec<Part> = limited.iter().filter_map(part).flatten().collect();
            let limit = i128::from(limit);
            densest(&parts, Some(interval), limit, clock) > limit
                || spaced(&parts, Some(interval), limit, clock) > limit
        })
    })
}

/// The longest path from (to) `anchor`, `None` where there is no path; nothing when the time was over before. There are no
/// cycles of positive lag.
fn longest(precedence: &Precedence, anchor: usize, from: bool, clock: &Clock<'_>) -> Option<Vec<Option<i64>>> {
    let mut paced = Paced::new(clock);
    let mut paths: Vec<Option<i64>> = vec![None; precedence.len()];
    paths[anchor] = Some(0);
    let mut queue = VecDeque::from([anchor]);
    let mut queued = vec![false; precedence.len()];
    while let Some(v) = queue.pop_front() {
        queued[v] = false;
        let Some(path) = paths[v] else { continue };
        let neighbours = if from { precedence.successors(v) } else { precedence.predecessors(v) };
        if paced.is_over_after(4 * neighbours.len() as u64 + 1) {
            return None;
        }
        for n in neighbours {
            let longer = path.saturating_add(n.lag);
            if paths[n.op()].is_none_or(|before| longer > before) {
                paths[n.op()] = Some(longer);
                if !std::mem::replace(&mut queued[n.op()], true) {
                    queue.push_back(n.op());
                }
            }
        }
    }
    Some(paths)
}

fn resources(graph: &Dataflow) -> u64 {
    let mut least = 1;
    for (index, resource) in graph.resources().iter().enumerate() {
        let Some(limit) = resource.limit else { continue };
        let uses = graph.operations().iter().flat_map(|op| &op.uses).filter(|u| u.resource.index() == index);
        let energy: i128 = uses.map(|u| i128::from(u.amount) * i128::from(u.steps)).sum();
        // Sums are at most 2^48.
        least = least.max(ceiling(energy, limit.into()) as u64);
    }
    // An operation holds something in at most this many steps in a row; from there on it cannot overlap itself.
    let longest = |op: &DataflowOperation| op.uses.iter().map(|u| u64::from(u.offset) + u64::from(u.steps)).max();
    let most = graph.operations().iter().filter_map(longest).max().unwrap_or(1);
    while least < most && !graph.operations().iter().all(|op| fits_alone(graph, op, least)) {
        least += 1;
    }
    least
}

/// Returns whether an operation does not overlap itself beyond a limit.
pub(crate) fn fits_alone(graph: &Dataflow, op: &DataflowOperation, interval: u64) -> bool {
    op.uses.iter().all(|used| {
        let Some(limit) = graph.resources()[used.resource.index()].limit else { return true };
        // The most of one resource is in use where one of its uses begins.
        let begin = u64::from(used.offset);
        let at_begin = op.uses.iter().filter(|other| other.resource == used.resource).map(|other| {
            let since = (begin + interval - u64::from(other.offset) % interval) % interval;
            let (rounds, rest) = (u64::from(other.steps) / interval, u64::from(other.steps) % interval);
            u128::from(other.amount) * u128::from(rounds + u64::from(since < rest))
        });
        at_begin.sum::<u128>() <= u128::from(limit)
    })
}

/// `RecMII`; what is known of it when the time is over.
fn recurrences(graph: &Dataflow, clock: &Clock<'_>) -> u64 {
    if graph.dependences().iter().all(|d| d.distance == 0) {
        return 1;
    }
    // Delays and distances of at least 1 around a cycle: the sum of delays is always enough.
    let delays: i64 = graph.dependences().iter().map(|d| d.delay.max(0)).sum();
    let (mut low, mut high) = (1, delays.max(1) as u64);
    while low < high && !clock.is_over() {
        let middle = low + (high - low) / 2;
        let mut starts = vec![0; graph.operations().len()];
        match Precedence::new(graph, Some(middle)).raise_within(&mut starts, clock) {
            Some(true) => high = middle,
            Some(false) => low = middle + 1,
            None => break,
        }
    }
    low
}
