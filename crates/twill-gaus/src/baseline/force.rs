//! Force-directed scheduling (Paulin, Knight, "Force-Directed Scheduling for the Behavioral Synthesis of ASICs", IEEE TCAD
//! 1989).
//!
//! An operation is spread evenly over its window, and the sum of these gives what a resource is likely to be asked for,
//! step by step. To start an operation at a step pulls it there with a force, the change of `Σ demand · probability`, its own
//! and that of the neighbours whose windows it cuts. The operation and step of least force go first.
//!
//! Forces are the first-order change of the sum of squares of demand. Where one step closes the windows of many neighbours
//! alike, the second order decides, and is added for them (the paper's look-ahead is of that kind; without it, the readers
//! of a value with hundreds of them end up in one step).
//!
//! The original chooses one operation at a time among all steps, in time cubic in the size of the graph. Bounded here: a
//! round fixes `⌈operations left / rounds left⌉` of them, with as many rounds as [`ROUNDS`] allows (one each up to 2000
//! operations); forces are compared at [`STEPS`] steps of a window; when it is fixed, an operation looks at [`CLOSE_STEPS`]. Forces
//! on neighbours go one dependence far; the original follows them as far as windows change, so that it sees, and this does
//! not, that an operation squeezes a long tail of others against the end. Windows are always exact;
//! demand is, too, up to [`WORK`] a round.

use super::{BaselineError, Task};
use crate::control::Paced;
use std::collections::VecDeque;
use twill_graph::ResourceUse;

/// Rounds times operations.
const ROUNDS: usize = 4_000_000;
/// Fewest rounds.
const FEWEST_ROUNDS: usize = 16;
/// Steps at which forces are compared.
const STEPS: i64 = 16;
/// Steps of windows over which demand is spread anew within a round.
const WORK: usize = 10_000_000;
/// Steps that are tried when an operation is fixed.
const CLOSE_STEPS: i64 = 256;

pub(super) fn balance(task: &Task) -> Result<Vec<u64>, BaselineError> {
    let count = task.precedence.len();
    let mut forces = Forces::new(task)?;
    let mut left: Vec<usize> = (0..count).collect();
    let mut paced = Paced::new(&task.clock);
    let mut rounds = (ROUNDS / count).max(FEWEST_ROUNDS).min(count);
    while !left.is_empty() {
        forces.spread();
        left.retain(|&v| forces.low[v] < forces.high[v]);
        // A look at an operation takes microseconds.
        let in_time = left.iter().take_while(|_| !paced.is_over_after(10_000));
        let mut order: Vec<(f64, usize)> = in_time.map(|&v| (forces.best(v, STEPS).0, v)).collect();
        if order.len() < left.len() {
            return Err(task.out_of_time());
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for &(_, v) in order.iter().take(left.len().div_ceil(rounds)) {
            if paced.is_over_after(100_000) {
                return Err(task.out_of_time());
            }
            let (_, step) = forces.best(v, CLOSE_STEPS);
            forces.fix(v, step);
        }
        rounds = (rounds - 1).max(1);
    }
    Ok(forces.low.iter().map(|&step| step as u64).collect())
}

struct Forces<'a> {
    task: &'a Task<'a>,
    /// Windows.
    low: Vec<i64>,
    high: Vec<i64>,
    /// By resource and row: what is likely to be asked for; and its sums up to a row, as of the last round.
    demand: Vec<Vec<f64>>,
    sums: Vec<Vec<f64>>,
    rows: usize,
    /// The windows that demand was last spread over, and how many rows may still be written in this round.
    windows: Vec<(i64, i64)>,
    work: usize,
    queue: VecDeque<usize>,
    /// By resource: who uses it, and how.
    users: Vec<Vec<(usize, ResourceUse)>>,
}

impl<'a> Forces<'a> {
    fn new(task: &'a Task<'a>) -> Result<Forces<'a>, BaselineError> {
        let uses = task.graph.operations().iter().flat_map(|op| &op.uses);
        let longest = uses.map(|u| u64::from(u.offset) + u64::from(u.steps)).max().unwrap_or(0);
        let steps = task.mobility.latency.saturating_add(longest + 1);
        task.table_of(steps)?;
        let rows = task.problem.interval.unwrap_or(steps) as usize;
        task.table_of(rows as u64)?;
        let resources = task.graph.resources().len();
        let mut users = vec![Vec::new(); resources];
        for (v, op) in task.graph.operations().iter().enumerate() {
            op.uses.iter().for_each(|used| users[used.resource.index()].push((v, *used)));
        }
        Ok(Forces {
            users,
            task,
            low: task.mobility.earliest.iter().map(|&s| s as i64).collect(),
            high: task.mobility.latest.iter().map(|&s| s as i64).collect(),
            demand: vec![vec![0.0; rows]; resources],
            sums: vec![vec![0.0; rows + 1]; resources],
            rows,
            windows: Vec::new(),
            work: 0,
            queue: VecDeque::new(),
        })
    }

    /// Demand anew, from all windows.
    fn spread(&mut self) {
        self.windows = self.low.iter().copied().zip(self.high.iter().copied()).collect();
        self.work = WORK;
        let length = self.task.mobility.latency as usize + 1;
        for (r, resource) in self.demand.iter_mut().enumerate() {
            // Where demand begins or ends to grow: the second differences of it.
            let users = &self.users[r];
            let longest = users.iter().map(|(_, u)| u.offset as usize + u.steps as usize).max().unwrap_or(0);
            let mut bends = vec![0.0; length + longest + 2];
            for &(v, used) in users {
                let (low, width) =
                    (self.low[v] as usize + used.offset as usize, (self.high[v] - self.low[v] + 1) as usize);
                let share = used.amount as f64 / width as f64;
                bends[low] += share;
                bends[low + width] -= share;
                bends[low + used.steps as usize] -= share;
                bends[low + width + used.steps as usize] += share;
            }
            resource.fill(0.0);
            let (mut slope, mut level) = (0.0, 0.0);
            for (step, bend) in bends.into_iter().enumerate() {
                slope += bend;
                level += slope;
                resource[step % self.rows] += level;
            }
            let mut sum = 0.0;
            for (row, demand) in resource.iter().enumerate() {
                sum += demand;
                self.sums[r][row + 1] = sum;
            }
        }
    }

    /// Σ demand over steps `from..to`, as of the last round.
    fn sum(&self, resource: usize, from: i64, to: i64) -> f64 {
        let rows = self.rows as i64;
        let sums = &self.sums[resource];
        let up_to = |step: i64| step.div_euclid(rows) as f64 * sums[self.rows] + sums[step.rem_euclid(rows) as usize];
        up_to(to) - up_to(from)
    }

    /// Mean over the starts `low..=high` of the demand at an operation's steps.
    fn mean(&self, used: &ResourceUse, low: i64, high: i64) -> f64 {
        let (first, steps) = (low + i64::from(used.offset), i64::from(used.steps));
        let width = high - low + 1;
        let inner = if steps == 1 {
            self.sum(used.resource.index(), first, first + width)
        } else if steps <= width.min(64) {
            (0..steps).map(|k| self.sum(used.resource.index(), first + k, first + k + width)).sum()
        } else {
            // At most 64 starts of the window stand for all.
            let tries = width.min(64);
            let at = |k: i64| first + k * (width - 1) / (tries - 1).max(1);
            let met: f64 = (0..tries).map(|k| self.sum(used.resource.index(), at(k), at(k) + steps)).sum();
            met * width as f64 / tries as f64
        };
        inner / width as f64
    }

    /// The change of the demand at an operation's steps, when its window becomes `low..=high`.
    fn change(&self, v: usize, low: i64, high: i64) -> f64 {
        let uses = &self.task.graph.operations()[v].uses;
        let of = |used: &ResourceUse| {
            used.amount as f64 * (self.mean(used, low, high) - self.mean(used, self.low[v], self.high[v]))
        };
        uses.iter().map(of).sum()
    }

    /// The demand at `step` for `v` now.
    fn met(&self, v: usize, step: i64) -> f64 {
        let uses = &self.task.graph.operations()[v].uses;
        let of = |used: &ResourceUse| {
            let (demand, first) = (&self.demand[used.resource.index()], step + i64::from(used.offset));
            let rows = (0..i64::from(used.steps)).map(|k| demand[(first + k).rem_euclid(self.rows as i64) as usize]);
            used.amount as f64 * rows.sum::<f64>()
        };
        uses.iter().map(of).sum()
    }

    /// The step of least force among `most` of the window, and that force.
    fn best(&self, v: usize, most: i64) -> (f64, i64) {
        let (low, high) = (self.low[v], self.high[v]);
        let tries = most.min(high - low + 1);
        // More than an interval apart, steps are the same but for neighbours.
        let at = |k: i64| low + k * (high - low) / (tries - 1).max(1);
        let uses = &self.task.graph.operations()[v].uses;
        let now: f64 = uses.iter().map(|used| used.amount as f64 * self.mean(used, low, high)).sum();
        let mut best = (f64::INFINITY, low);
        for step in (0..tries).map(at) {
            let mut force = self.met(v, step) - now;
            for (ahead, neighbours) in
                [(true, self.task.precedence.successors(v)), (false, self.task.precedence.predecessors(v))]
            {
                // Neighbours that are cut alike overlap each other: half of the square of what they add.
                let (mut before, mut after) = (0.0, 0.0);
                for n in neighbours.iter().filter(|n| n.op() != v) {
                    let w = n.op();
                    let (low, high) = if ahead {
                        (self.low[w].max(step + n.lag), self.high[w])
                    } else {
                        (self.low[w], self.high[w].min(step - n.lag))
                    };
                    if (low, high) == (self.low[w], self.high[w]) {
                        continue;
                    }
                    force += self.change(w, low, high);
                    let amount: u64 = self.task.graph.operations()[w].uses.iter().map(|used| used.amount).sum();
                    before += amount as f64 / ((self.high[w] - self.low[w] + 1) as f64).sqrt();
                    after += amount as f64 / ((high - low + 1) as f64).sqrt();
                }
                force += (after * after - before * before) / 2.0;
            }
            if force < best.0 {
                best = (force, step);
            }
        }
        best
    }

    /// Starts `v` at `step`; cuts all windows that depend on it.
    fn fix(&mut self, v: usize, step: i64) {
        (self.low[v], self.high[v]) = (step, step);
        self.deal(v);
        self.queue.push_back(v);
        let mut cut = Vec::new();
        // In difference constraints, every step of a window is part of a solution: this ends, and no window is empty.
        while let Some(v) = self.queue.pop_front() {
            for s in self.task.precedence.successors(v) {
                if self.low[s.op()] < self.low[v] + s.lag {
                    self.low[s.op()] = self.low[v] + s.lag;
                    self.queue.push_back(s.op());
                    cut.push(s.op());
                }
            }
            for p in self.task.precedence.predecessors(v) {
                if self.high[p.op()] > self.high[v] - p.lag {
                    self.high[p.op()] = self.high[v] - p.lag;
                    self.queue.push_back(p.op());
                    cut.push(p.op());
                }
            }
        }
        cut.into_iter().for_each(|v| self.deal(v));
    }

    /// Spreads the demand of `v` over its window as it is now; where the work is too much, the next round does it.
    fn deal(&mut self, v: usize) {
        let (before, now) = (self.windows[v], (self.low[v], self.high[v]));
        let rows = (before.1 - before.0 + now.1 - now.0 + 2) as usize;
        if before == now || self.work < rows {
            return;
        }
        self.work -= rows;
        self.add(v, before, -1.0);
        self.add(v, now, 1.0);
        self.windows[v] = now;
    }

    fn add(&mut self, v: usize, (low, high): (i64, i64), sign: f64) {
        let rows = self.rows as i64;
        for used in &self.task.graph.operations()[v].uses {
            let share = sign * used.amount as f64 / (high - low + 1) as f64;
            let (first, steps) = (i64::from(used.offset), i64::from(used.steps));
            let demand = &mut self.demand[used.resource.index()];
            // Covered by as many starts as lie in the window and in the last `steps` steps.
            for step in low + first..=high + first + steps - 1 {
                let starts = (step - first).min(high) - (step - first - steps + 1).max(low) + 1;
                demand[step.rem_euclid(rows) as usize] += share * starts as f64;
            }
        }
    }
}
