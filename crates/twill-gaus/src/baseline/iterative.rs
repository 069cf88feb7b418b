//! Iterative modulo scheduling (Rau, "Iterative Modulo Scheduling: An Algorithm For Software Pipelining Loops", MICRO 1994).
//!
//! The highest operation first, where height is the longest path to the end at this interval; in the first of the `II`
//! slots from its earliest step where its resources are free, or else by force: who is in its way goes back to be placed
//! again, and each time an operation comes to be placed by force, one step later than before. After `BUDGET` placements an
//! operation, on average, it gives up.
//!
//! With a latency bound, an operation is not placed later than its latest start; this is not in the paper.

use super::table::Table;
use super::{BaselineError, Task};
use crate::bounds::fits_alone;
use crate::control::Paced;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use twill_graph::Dataflow;

/// Placements an operation (the paper's BudgetRatio).
const BUDGET: usize = 12;

pub(super) fn schedule(task: &Task, interval: u64) -> Result<Vec<u64>, BaselineError> {
    task.table_of(interval)?;
    let (graph, precedence) = (task.graph, task.precedence);
    if let Some(op) = graph.operations().iter().find(|op| !fits_alone(graph, op, interval)) {
        return Err(task.not_found(format!("`{}` by itself takes more than there is at interval {interval}", op.name)));
    }
    let (height, count) = (height(task)?, precedence.len());
    let urgency = |v: usize| (height[v], Reverse(v));
    let mut placed = Placed::new(graph, interval);
    let mut before = vec![None::<i64>; count];
    let latest = |v: usize| task.problem.latency_bound.map_or(i64::MAX, |_| task.mobility.latest[v] as i64);
    let mut waiting: BinaryHeap<(i64, Reverse<usize>)> = (0..count).map(urgency).collect();
    let mut budget = BUDGET.saturating_mul(count);
    let mut paced = Paced::new(&task.clock);
    while let Some((_, Reverse(v))) = waiting.pop() {
        if budget == 0 {
            return Err(task.not_found(format!("{} placements were not enough at interval {interval}", BUDGET * count)));
        }
        budget -= 1;
        if paced.is_over_after(256) {
            return Err(task.out_of_time());
        }
        let producers = precedence.predecessors(v).iter().filter(|p| p.op() != v);
        let after = producers.filter_map(|p| placed.starts[p.op()].map(|start| start + p.lag)).max().unwrap_or(0);
        let earliest = after.max(task.mobility.earliest[v] as i64);
        let last = latest(v).min(earliest + interval as i64 - 1);
        let op = &graph.operations()[v];
        let free = (earliest..=last).find(|&step| placed.table.fits(op, step as u64, &placed.caps));
        let mut step = free.unwrap_or_else(|| before[v].map_or(earliest, |step| earliest.max(step + 1)));
        if step > latest(v) {
            // From the beginning of its window again; producers that are too late for that go.
            step = task.mobility.earliest[v] as i64;
        }
        before[v] = Some(step);
        placed.put(v, step);
        let starts = &placed.starts;
        let early =
            precedence.successors(v).iter().map(|s| (s.op(), starts[s.op()].is_some_and(|at| at < step + s.lag)));
        let late =
            precedence.predecessors(v).iter().map(|p| (p.op(), starts[p.op()].is_some_and(|at| at + p.lag > step)));
        let broken: Vec<usize> = early.chain(late).filter(|&(w, broken)| broken && w != v).map(|(w, _)| w).collect();
        for w in broken {
            if placed.take(w) {
                waiting.push(urgency(w));
            }
        }
        while let Some((resource, row)) = placed.table.exceeded(op, step as u64, &placed.caps) {
            // The lowest of those in the way.
            let others = placed.holders[resource][row].iter().map(|&w| w as usize).filter(|&w| w != v);
            let Some(w) = others.min_by_key(|&w| urgency(w)) else {
                return Err(task.not_found("an operation is in its own way"));
            };
            placed.take(w);
            waiting.push(urgency(w));
        }
    }
    Ok(placed.starts.into_iter().map(|start| start.unwrap_or(0) as u64).collect())
}

/// Operations in the reservation table.
struct Placed<'a> {
    graph: &'a Dataflow,
    table: Table,
    caps: Vec<Option<u64>>,
    /// By limited resource and slot: who takes part of it.
    holders: Vec<Vec<Vec<u32>>>,
    starts: Vec<Option<i64>>,
}

impl<'a> Placed<'a> {
    fn new(graph: &'a Dataflow, interval: u64) -> Placed<'a> {
        let caps: Vec<Option<u64>> = graph.resources().iter().map(|r| r.limit).collect();
        let rows = |cap: &Option<u64>| vec![Vec::new(); if cap.is_some() { interval as usize } else { 0 }];
        let holders = caps.iter().map(rows).collect();
        let starts = vec![None; graph.operations().len()];
        Placed { graph, table: Table::new(graph, Some(interval)), caps, holders, starts }
    }

    fn put(&mut self, v: usize, step: i64) {
        let op = &self.graph.operations()[v];
        self.table.add(op, step as u64);
        self.starts[v] = Some(step);
        for used in op.uses.iter().filter(|used| self.caps[used.resource.index()].is_some()) {
            let holders = &mut self.holders[used.resource.index()];
            self.table.rows(used, step as u64).for_each(|(row, _)| holders[row].push(v as u32));
        }
    }

    /// Returns whether it was there.
    fn take(&mut self, v: usize) -> bool {
        let Some(step) = self.starts[v].take() else { return false };
        let op = &self.graph.operations()[v];
        self.table.remove(op, step as u64);
        for used in op.uses.iter().filter(|used| self.caps[used.resource.index()].is_some()) {
            let holders = &mut self.holders[used.resource.index()];
            for (row, _) in self.table.rows(used, step as u64) {
                if let Some(at) = holders[row].iter().position(|&w| w as usize == v) {
                    holders[row].swap_remove(at);
                }
            }
        }
        true
    }
}

/// The longest path from each operation to the end, at the interval (the paper's HeightR).
fn height(task: &Task) -> Result<Vec<i64>, BaselineError> {
    // The latest starts, counted back from 0.
    let mut latest = vec![0; task.precedence.len()];
    if !task.precedence.lower(&mut latest) {
        return Err(task.not_found("operations wait for each other around a cycle"));
    }
    Ok(latest.into_iter().map(|step: i64| -step).collect())
}
