//! Legal, and level: list scheduling by wishes, under caps that rise only where a latest start has come.
//!
//! Settled wishes keep dependences, but operations that gave way pile up in steps where the wishes had room. Here
//! operations are placed step by step: one is ready when its producers have started and its wish, less `early`, has come;
//! the ready of the least key go first as long as they fit under the caps. As in minimum-resource, latency-constrained list
//! scheduling (De Micheli 1994, section 5.4), a cap rises when somebody can wait no longer. Then operations move to where
//! communication is cheaper, as far as their neighbours and the peaks let them.

use super::table::Table;
use crate::control::{Clock, Paced};
use crate::model::Model;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How to level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Levelling {
    /// The caps to begin with, in means of the usage.
    pub cap: f64,
    /// Steps by which an operation may come before its wish.
    pub early: i64,
    /// The most urgent first, rather than the least wish.
    pub urgent: bool,
}

/// A schedule near `wishes`, or `None` when there was no time for it. Without an interval.
pub(crate) fn level(model: &Model<'_>, wishes: &[i64], how: Levelling, clock: &Clock<'_>) -> Option<Vec<i64>> {
    let mut paced = Paced::new(clock);
    let count = model.len();
    let mut caps = means(model, how.cap);
    let mut table = Table::new(model);
    let mut steps = model.earliest.clone();
    let mut missing: Vec<u32> = (0..count).map(|v| model.precedence.predecessors(v).len() as u32).collect();
    let release = |v: usize, ready: i64| ready.max((wishes[v] - how.early).min(model.latest[v])).max(model.earliest[v]);
    let mut coming: BinaryHeap<Reverse<(i64, u32)>> =
        (0..count).filter(|&v| missing[v] == 0).map(|v| Reverse((release(v, 0), v as u32))).collect();
    let key = |v: usize| if how.urgent { model.latest[v] } else { wishes[v] };
    let mut ready: BinaryHeap<Reverse<(bool, i64, u32)>> = BinaryHeap::new();
    let mut waiting: Vec<u32> = Vec::new();
    let mut step = 0;
    loop {
        ready.extend(waiting.drain(..).map(|v| {
            let v = v as usize;
            Reverse((model.latest[v] > step, key(v), v as u32))
        }));
        loop {
            while let Some(&Reverse((_, v))) = coming.peek().filter(|entry| entry.0.0 <= step) {
                coming.pop();
                ready.push(Reverse((model.latest[v as usize] > step, key(v as usize), v)));
            }
            // Those that can wait no longer come first.
            let Some(Reverse((can_wait, _, op))) = ready.pop() else { break };
            let v = op as usize;
            if paced.is_over_after(64) {
                return None;
            }
            table.add(model, v, step, 1);
            if can_wait && !table.within(model, v, step, &caps) {
                table.add(model, v, step, -1);
                waiting.push(op);
                continue;
            }
            raise(model, &table, v, step, &mut caps);
            steps[v] = step;
            for s in model.precedence.successors(v) {
                let reader = s.op();
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    let producers = model.precedence.predecessors(reader).iter();
                    let soonest = producers.map(|p| steps[p.op()] + p.lag).max().unwrap_or(0);
                    coming.push(Reverse((release(reader, soonest.max(step)), reader as u32)));
                }
            }
        }
        step = match (waiting.is_empty(), coming.peek()) {
            (false, _) => step + 1,
            (true, Some(&Reverse((next, _)))) => next.max(step + 1),
            (true, None) => break,
        };
    }
    // A reader whose delay is negative may be late: it waited for its producers.
    (0..count).all(|v| steps[v] <= model.latest[v]).then_some(())?;
    tighten(model, &mut table, &mut steps, &mut paced);
    Some(steps)
}

/// Caps of `factor` times the mean usage over the steps there are, within limits.
fn means(model: &Model<'_>, factor: f64) -> Vec<Option<i64>> {
    let mut held = vec![0_i64; model.limits.len()];
    model.uses.all().iter().for_each(|used| held[used.resource] += used.amount * used.steps);
    let end = model.latest.iter().zip(&model.latencies).map(|(s, l)| s + l).max().unwrap_or(1).max(1);
    let cap = |(held, limit): (i64, &Option<i64>)| {
        let mean = ((held as f64 * factor) / end as f64).ceil() as i64;
        Some(limit.map_or(mean, |limit| limit.min(mean)))
    };
    held.into_iter().zip(&model.limits).map(cap).collect()
}

/// Raises caps to what is in use where `v` is.
fn raise(model: &Model<'_>, table: &Table, v: usize, step: i64, caps: &mut [Option<i64>]) {
    while let Some((resource, slot)) = table.above(model, v, step, caps) {
        caps[resource] = Some(table.usage(resource)[slot]);
    }
}

/// Moves operations to where communication is cheaper, with their neighbours and all peaks as they are.
fn tighten(model: &Model<'_>, table: &mut Table, steps: &mut [i64], paced: &mut Paced<'_>) {
    let later = later(model);
    if later.iter().all(|&later| later == 0) {
        return;
    }
    let caps: Vec<Option<i64>> = table.peaks().into_iter().map(Some).collect();
    let order: Vec<usize> = model.precedence.order().collect();
    for sweep in 0..SWEEPS {
        let mut moved = false;
        for k in 0..order.len() {
            let v = if sweep % 2 == 0 { order[order.len() - 1 - k] } else { order[k] };
            if later[v] == 0 {
                continue;
            }
            let now = steps[v];
            let (low, high) = slack(model, steps, v);
            table.add(model, v, now, -1);
            let mut fits = |step: i64| {
                table.add(model, v, step, 1);
                let fits = table.within(model, v, step, &caps);
                table.add(model, v, step, -1);
                fits
            };
            let better = if later[v] > 0 {
                (low..now).find(|&step| fits(step))
            } else {
                (now + 1..=high).rev().find(|&step| fits(step))
            };
            steps[v] = better.unwrap_or(now);
            moved |= better.is_some();
            table.add(model, v, steps[v], 1);
            if paced.is_over_after(64 + 16 * (high - low).unsigned_abs()) {
                return;
            }
        }
        if !moved {
            return;
        }
    }
}

/// Most times that all operations are looked at.
const SWEEPS: usize = 6;

/// By operation, what communication grows by when it starts a step later.
fn later(model: &Model<'_>) -> Vec<i64> {
    let mut later = vec![0_i64; model.len()];
    if matches!(model.objective(), twill_graph::DataflowObjective::Resources { communication: 1.., .. }) {
        for v in 0..model.len() {
            for edge in &model.edges()[model.edges_of(v)] {
                later[v] -= edge.communication as i64;
                later[edge.to] += edge.communication as i64;
            }
        }
    }
    later
}

/// The steps that the window and the neighbours leave to `v`.
fn slack(model: &Model<'_>, steps: &[i64], v: usize) -> (i64, i64) {
    let producers = model.precedence.predecessors(v).iter().filter(|p| p.op() != v);
    let low = producers.map(|p| steps[p.op()] + p.lag).fold(model.earliest[v], i64::max);
    let readers = model.precedence.successors(v).iter().filter(|s| s.op() != v);
    (low, readers.map(|s| steps[s.op()] - s.lag).fold(model.latest[v], i64::min))
}
