//! Modulo scheduling with a system of difference constraints (Zhang, Liu, "SDC-Based Modulo Scheduling for Pipeline Synthesis",
//! ICCAD 2013; with the backtracking of Canis, Brown, Anderson, "Modulo SDC Scheduling with Recurrence Minimization in
//! High-Level Synthesis", FPL 2014).
//!
//! Dependences are the system; its least solution is the schedule. One after another, the operations on limited resources
//! are fixed to their steps, where the reservation table has room; where it has none, the operation may not start before
//! the next step, and the system is solved again. Where that has no solution, the operation is fixed by force, at the step
//! that costs least: who is in its way is released. After [`BUDGET`] attempts an operation, on average, it
//! begins anew in another order, and then gives up.

use super::table::Table;
use super::{BaselineError, Task};
use crate::bounds::fits_alone;
use crate::control::Paced;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Attempts for each operation on a limited resource.
const BUDGET: u64 = 60;

pub(super) fn schedule(task: &Task, interval: u64) -> Result<Vec<u64>, BaselineError> {
    task.table_of(interval)?;
    let graph = task.graph;
    if let Some(op) = graph.operations().iter().find(|op| !fits_alone(graph, op, interval)) {
        return Err(task.not_found(format!("`{}` by itself takes more than there is at interval {interval}", op.name)));
    }
    // Least mobility first is better where recurrences are tight, most urgent first where they are not: producers then go
    // before their readers.
    let windows = || task.mobility.earliest.iter().zip(&task.mobility.latest);
    let mobile: Vec<(u64, u64)> = windows().map(|(&e, &l)| (l - e, e)).collect();
    let urgent: Vec<(u64, u64)> = windows().map(|(&e, &l)| (l, e)).collect();
    in_order(task, interval, &mobile)
        .or_else(|error| if task.clock.is_over() { Err(error) } else { in_order(task, interval, &urgent) })
}

/// The operation of least rank first.
fn in_order(task: &Task, interval: u64, rank: &[(u64, u64)]) -> Result<Vec<u64>, BaselineError> {
    let graph = task.graph;
    let caps: Vec<Option<u64>> = graph.resources().iter().map(|r| r.limit).collect();
    let limited = |v: usize| graph.operations()[v].uses.iter().any(|used| caps[used.resource.index()].is_some());
    let limited: Vec<usize> = (0..task.precedence.len()).filter(|&v| limited(v)).collect();
    let mut system = System::new(task);
    let mut table = Table::new(graph, Some(interval));
    let mut waiting: BinaryHeap<Reverse<((u64, u64), usize)>> =
        limited.iter().map(|&v| Reverse((rank[v], v))).collect();
    let mut before = vec![-1_i64; task.precedence.len()];
    let mut budget = BUDGET.saturating_mul(limited.len() as u64);
    let mut paced = Paced::new(&task.clock);
    while let Some(Reverse((_, v))) = waiting.pop() {
        if budget == 0 {
            let attempts = BUDGET.saturating_mul(limited.len() as u64);
            return Err(task.not_found(format!("{attempts} attempts were not enough at interval {interval}")));
        }
        budget -= 1;
        if paced.is_over_after(256) {
            return Err(task.out_of_time());
        }
        let op = &graph.operations()[v];
        // Slots repeat: past one interval, no step is free that was not before.
        let first = system.steps[v];
        let free = (first..first + interval as i64).find(|&step| table.fits(op, step as u64, &caps));
        if let Some(step) = free.filter(|&step| system.fix(v, step)) {
            table.add(op, step as u64);
            before[v] = before[v].max(step);
            continue;
        }
        // By force, later each time. The system is then solved from scratch.
        if paced.is_over_after(8 * task.precedence.len() as u64) {
            return Err(task.out_of_time());
        }
        let latest = task.problem.latency_bound.map_or(i64::MAX, |_| task.mobility.latest[v] as i64);
        let soonest = task.mobility.earliest[v] as i64;
        let mut step = soonest.max(before[v] + 1);
        if step > latest || step >= soonest.saturating_add(2 * interval as i64) {
            step = soonest;
        }
        before[v] = step;
        let mut release = Vec::new();
        table.add(op, step as u64);
        while let Some((resource, row)) = table.exceeded(op, step as u64, &caps) {
            let in_way = |&w: &usize| {
                let Some(at) = system.fixed[w].filter(|_| w != v) else { return false };
                let uses = graph.operations()[w].uses.iter().filter(|used| used.resource.index() == resource);
                uses.into_iter().any(|used| table.rows(used, at as u64).any(|(r, _)| r == row))
            };
            let Some(w) = limited.iter().copied().filter(in_way).max_by_key(|&w| (rank[w], w)) else {
                return Err(task.not_found("an operation is in its own way"));
            };
            table.remove(&graph.operations()[w], system.fixed[w].unwrap_or(0) as u64);
            system.fixed[w] = None;
            release.push(w);
        }
        // Operations fixed at steps that this one's step forbids go, too.
        for w in system.against(v, step) {
            if let Some(at) = system.fixed[w].take() {
                table.remove(&graph.operations()[w], at as u64);
                release.push(w);
            }
        }
        system.fixed[v] = Some(step);
        if !system.solve() {
            return Err(task.not_found("the system has no solution after backtracking"));
        }
        waiting.extend(release.into_iter().map(|w| Reverse((rank[w], w))));
    }
    Ok(system.steps.iter().map(|&step| step as u64).collect())
}

/// Dependences, windows and fixed starts, with their least solution.
struct System<'a> {
    task: &'a Task<'a>,
    fixed: Vec<Option<i64>>,
    steps: Vec<i64>,
}

impl<'a> System<'a> {
    fn new(task: &'a Task<'a>) -> System<'a> {
        let steps = task.mobility.earliest.iter().map(|&s| s as i64).collect();
        System { task, fixed: vec![None; task.precedence.len()], steps }
    }

    fn latest(&self, v: usize) -> i64 {
        let window =
            if self.task.problem.latency_bound.is_some() { self.task.mobility.latest[v] as i64 } else { i64::MAX };
        self.fixed[v].map_or(window, |step| step.min(window))
    }

    /// Fixes `v` at a step at or after its least one; `false`, and nothing changes, when there is no solution then.
    fn fix(&mut self, v: usize, step: i64) -> bool {
        let mut undo = Vec::new();
        let mut queue = VecDeque::new();
        if step > self.latest(v) {
            return false;
        }
        self.fixed[v] = Some(step);
        if step > self.steps[v] {
            undo.push((v, self.steps[v]));
            self.steps[v] = step;
            queue.push_back(v);
        }
        while let Some(u) = queue.pop_front() {
            for s in self.task.precedence.successors(u) {
                let (w, least) = (s.op(), self.steps[u] + s.lag);
                if self.steps[w] >= least {
                    continue;
                }
                if least > self.latest(w) {
                    self.fixed[v] = None;
                    for (w, step) in undo.into_iter().rev() {
                        self.steps[w] = step;
                    }
                    return false;
                }
                undo.push((w, self.steps[w]));
                self.steps[w] = least;
                queue.push_back(w);
            }
        }
        true
    }

    /// The least solution from scratch; `false` when there is none.
    fn solve(&mut self) -> bool {
        for (v, step) in self.steps.iter_mut().enumerate() {
            *step = self.fixed[v].unwrap_or(self.task.mobility.earliest[v] as i64);
        }
        self.task.precedence.raise(&mut self.steps) && (0..self.steps.len()).all(|v| self.steps[v] <= self.latest(v))
    }

    /// Fixed operations that cannot stay when `v` starts at `step`.
    fn against(&self, v: usize, step: i64) -> Vec<usize> {
        let count = self.steps.len();
        // Least steps after, greatest before; far away where nothing leads.
        const FAR: i64 = i64::MIN / 4;
        let mut after = vec![FAR; count];
        after[v] = step;
        let mut ahead = vec![-FAR; count];
        ahead[v] = step;
        let reaches = |steps: &mut Vec<i64>, forward: bool| {
            let mut queue = VecDeque::from([v]);
            while let Some(u) = queue.pop_front() {
                let neighbours =
                    if forward { self.task.precedence.successors(u) } else { self.task.precedence.predecessors(u) };
                for n in neighbours {
                    let step = if forward { steps[u] + n.lag } else { steps[u] - n.lag };
                    let better = if forward { step > steps[n.op()] } else { step < steps[n.op()] };
                    if better {
                        steps[n.op()] = step;
                        queue.push_back(n.op());
                    }
                }
            }
        };
        reaches(&mut after, true);
        reaches(&mut ahead, false);
        let stays = |w: usize| self.fixed[w].is_none_or(|at| w == v || (after[w] <= at && at <= ahead[w]));
        (0..count).filter(|&w| !stays(w)).collect()
    }
}
