//! The primal-dual hybrid gradient method on the program (Chambolle, Pock, "A First-Order Primal-Dual Algorithm for
//! Convex Problems with Applications to Imaging", Journal of Mathematical Imaging and Vision 40, 2011; step sizes by
//! rows and columns as in Pock, Chambolle, "Diagonal preconditioning", ICCV 2011).
//!
//! `x` goes down the costs that weights and prices give it, within `[0, 1]`; prices go up where `2x' − x` breaks what
//! they are of; weights go up where there is much, and are brought back to a fixed sum.

use super::super::LowerBound;
use super::super::flow::Arc;
use super::program::{Pair, Program};
use std::collections::HashMap;
use twill_graph::{DataflowObjective, DataflowProblem};

/// How far prices go in one step, in proportion to how far `x` goes; and weights, in proportion to prices.
const DUAL: f64 = 2.0;
const HEAVY: f64 = 2.0;

/// Prices of pairs, and weights by track and step.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub prices: Vec<f32>,
    pub weights: Vec<Vec<f64>>,
}

pub(super) struct Ascent<'p> {
    program: &'p Program,
    x: Vec<f32>,
    /// `2x' − x`.
    ahead: Vec<f32>,
    /// The cost of `x`, without its linear part.
    gradient: Vec<f32>,
    /// Price of `x(t − 1) ≤ x(t)`, by `t`.
    order: Vec<f32>,
    /// Where it is.
    point: Point,
    usage: Vec<Vec<f64>>,
    /// Step sizes: by row, of prices, by track.
    down: Vec<f32>,
    up: f32,
    heavier: Vec<f64>,
    scratch: Vec<f64>,
}

impl<'p> Ascent<'p> {
    /// From equal weights, with the flow of a bound as prices.
    pub fn new(program: &'p Program, problem: &DataflowProblem, known: &LowerBound) -> Self {
        let steps = program.steps();
        let unit = DUAL * program.peak as f64 / steps as f64;
        let amounts: Vec<f64> = program.terms.iter().map(|term| term.amount.unsigned_abs() as f64).collect();
        let mean = amounts.iter().sum::<f64>() / (amounts.len().max(1)) as f64;
        let mut degree = vec![2_u32; program.rows.len()];
        let row_of = |position: usize| program.rows.partition_point(|row| row.at + row.len <= position);
        for pair in &program.pairs {
            degree[row_of(pair.to)] += 1;
            degree[row_of(pair.from)] += 1;
        }
        let sum = |row: &super::program::Row| amounts[row.terms.clone()].iter().sum::<f64>();
        let down = |(row, &degree): (&super::program::Row, &u32)| {
            (0.95 / (unit * (HEAVY * sum(row) + mean.max(1e-9) * f64::from(degree)))) as f32
        };
        let mut ascent = Self {
            program,
            x: vec![0.5; program.variables],
            ahead: vec![0.5; program.variables],
            gradient: vec![0.0; program.variables],
            order: vec![0.0; program.variables],
            point: Point {
                prices: vec![0.0; program.multipliers],
                weights: program.constant.iter().map(|track| vec![0.0; track.len()]).collect(),
            },
            usage: program.constant.iter().map(|track| vec![0.0; track.len()]).collect(),
            down: program.rows.iter().zip(&degree).map(down).collect(),
            up: (unit * mean / 2.0) as f32,
            heavier: Vec::new(),
            scratch: Vec::new(),
        };
        ascent.heavier =
            ascent.most().into_iter().map(|most| if most > 0.0 { HEAVY * unit / most } else { 0.0 }).collect();
        ascent.share();
        ascent.begin(problem, known);
        ascent.costs();
        for pair in &program.pairs {
            raise(pair, &ascent.ahead, &mut ascent.point.prices, &mut ascent.gradient, 0.0);
        }
        ascent
    }

    /// Takes over the flow and the schedule of a bound on communication. Those of lifetimes are far from those of a
    /// peak.
    fn begin(&mut self, problem: &DataflowProblem, known: &LowerBound) {
        let DataflowObjective::Resources { communication, .. } = problem.objective else { return };
        let mut flow: HashMap<Arc, i64> = known.flow.iter().copied().collect();
        let unit = communication as f64;
        for pair in &self.program.pairs {
            let d = &problem.graph.dependences()[pair.dependence as usize];
            let (from, to) = (d.from.index() as u32, d.to.index() as u32);
            // Of dependences that are the same, one has it.
            if let Some(flow) = flow.remove(&Arc { from, to, lag: d.delay }) {
                self.point.prices[pair.at..pair.at + pair.len].fill((flow as f64 * unit) as f32);
            }
        }
        for (row, &start) in self.program.rows.iter().zip(known.schedule.iter().flatten()) {
            let before = (start as i64 - row.first).clamp(0, row.len as i64) as usize;
            self.x[row.at..row.at + before].fill(0.0);
            self.x[row.at + before..row.at + row.len].fill(1.0);
        }
        self.ahead.clone_from(&self.x);
    }

    /// Gives the steps at which there may be something equal weights.
    fn share(&mut self) {
        let program = self.program;
        for ((weights, usage), constant) in self.point.weights.iter_mut().zip(&self.usage).zip(&program.constant) {
            let is_used = |step: &usize| usage[*step] > 0.0 || constant[*step] > 0;
            let steps = (0..weights.len()).filter(is_used).count();
            let used = (0..weights.len()).filter(is_used);
            used.for_each(|step| weights[step] = program.peak as f64 / steps as f64);
        }
    }

    /// By track, the most that variables can add at a step.
    fn most(&mut self) -> Vec<f64> {
        let program = self.program;
        for row in &program.rows {
            for term in &program.terms[row.terms.clone()] {
                let usage = &mut self.usage[term.track];
                let from = (row.first + term.shift) as usize;
                usage[from..from + row.len].iter_mut().for_each(|usage| *usage += term.amount.unsigned_abs() as f64);
            }
        }
        self.usage.iter().map(|usage| usage.iter().copied().fold(0.0, f64::max)).collect()
    }

    /// Where it is.
    pub fn multipliers(&self) -> Point {
        self.point.clone()
    }

    /// One step of all.
    pub fn step(&mut self) {
        self.descend();
        self.weigh();
        self.costs();
        for pair in &self.program.pairs {
            raise(pair, &self.ahead, &mut self.point.prices, &mut self.gradient, self.up);
        }
    }

    /// Moves `x`, counts usage, and prices its order.
    fn descend(&mut self) {
        let program = self.program;
        for (usage, constant) in self.usage.iter_mut().zip(&program.constant) {
            usage.iter_mut().zip(constant).for_each(|(usage, &constant)| *usage = constant as f64);
        }
        for (row, &down) in program.rows.iter().zip(&self.down) {
            let range = row.at..row.at + row.len;
            let (x, ahead) = (&mut self.x[range.clone()], &mut self.ahead[range.clone()]);
            let (gradient, order) = (&self.gradient[range.clone()], &mut self.order[range]);
            for ((x, ahead), gradient) in x.iter_mut().zip(ahead.iter_mut()).zip(gradient) {
                let next = (*x - down * gradient).clamp(0.0, 1.0);
                *ahead = 2.0 * next - *x;
                *x = next;
            }
            for t in 1..row.len {
                order[t] = (order[t] + self.up * (ahead[t - 1] - ahead[t])).max(0.0);
            }
            for term in &program.terms[row.terms.clone()] {
                let from = (row.first + term.shift) as usize;
                let usage = &mut self.usage[term.track][from..from + row.len];
                let amount = term.amount as f64;
                usage.iter_mut().zip(ahead.iter()).for_each(|(usage, &x)| *usage += amount * f64::from(x));
            }
        }
    }

    /// Moves weights.
    fn weigh(&mut self) {
        let peak = self.program.peak as f64;
        for ((weights, usage), &heavier) in self.point.weights.iter_mut().zip(&self.usage).zip(&self.heavier) {
            weights.iter_mut().zip(usage).for_each(|(weight, usage)| *weight += heavier * usage);
            project(weights, peak, &mut self.scratch);
        }
    }

    /// The gradient, as far as it is not of pairs.
    fn costs(&mut self) {
        let program = self.program;
        for row in &program.rows {
            let range = row.at..row.at + row.len;
            let (gradient, order) = (&mut self.gradient[range.clone()], &self.order[range]);
            gradient.fill(-row.linear as f32);
            for term in &program.terms[row.terms.clone()] {
                let from = (row.first + term.shift) as usize;
                let (weights, amount) = (&self.point.weights[term.track][from..from + row.len], term.amount as f64);
                gradient.iter_mut().zip(weights).for_each(|(gradient, weight)| *gradient += (amount * weight) as f32);
            }
            for t in 1..row.len {
                gradient[t - 1] += order[t];
                gradient[t] -= order[t];
            }
        }
    }

    /// The bound that weights and prices prove, as near as floating point has it.
    pub fn value(&self) -> f64 {
        let program = self.program;
        let tracks = self.point.weights.iter().zip(&program.constant);
        let constant = tracks.map(|(w, c)| w.iter().zip(c).map(|(w, &c)| w * c as f64).sum::<f64>()).sum::<f64>();
        let rows = program.rows.iter().map(|row| {
            let (mut sum, mut least) = (0.0_f64, 0.0_f64);
            for t in (0..row.len).rev() {
                let next = if t + 1 < row.len { self.order[row.at + t + 1] } else { 0.0 };
                let own = if t > 0 { self.order[row.at + t] } else { 0.0 };
                sum += f64::from(self.gradient[row.at + t]) - f64::from(next) + f64::from(own);
                least = least.min(sum);
            }
            row.linear as f64 * row.last as f64 + least
        });
        constant + rows.sum::<f64>()
    }
}

/// Raises the prices of a pair where it is broken, and adds them to the gradient of both sides.
fn raise(pair: &Pair, ahead: &[f32], prices: &mut [f32], gradient: &mut [f32], up: f32) {
    let prices = &mut prices[pair.at..pair.at + pair.len];
    let (to, from) = (&ahead[pair.to..pair.to + pair.len], &ahead[pair.from..pair.from + pair.len]);
    for ((price, to), from) in prices.iter_mut().zip(to).zip(from) {
        *price = (*price + up * (to - from)).max(0.0);
    }
    let reader = &mut gradient[pair.to..pair.to + pair.len];
    reader.iter_mut().zip(prices.iter()).for_each(|(gradient, price)| *gradient += price);
    let producer = &mut gradient[pair.from..pair.from + pair.len];
    producer.iter_mut().zip(prices.iter()).for_each(|(gradient, price)| *gradient -= price);
}

/// The nearest weights that are not below 0 and add up to `sum` (Held, Wolfe, Crowder, "Validation of subgradient
/// optimization", Mathematical Programming 6, 1974).
fn project(weights: &mut [f64], sum: f64, scratch: &mut Vec<f64>) {
    scratch.clear();
    scratch.extend_from_slice(weights);
    scratch.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut total, mut level) = (0.0, f64::MIN);
    for (k, weight) in scratch.iter().enumerate() {
        total += weight;
        let next = (total - sum) / (k + 1) as f64;
        if *weight <= next {
            break;
        }
        level = next;
    }
    weights.iter_mut().for_each(|weight| *weight = (*weight - level).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::project;

    #[test]
    fn weights_are_brought_back_to_their_sum() {
        let mut weights = [0.5, 1.5, -3.0];
        project(&mut weights, 1.0, &mut Vec::new());
        assert_eq!(weights, [0.0, 1.0, 0.0]);
        let mut even = [2.0, 2.0];
        project(&mut even, 1.0, &mut Vec::new());
        assert_eq!(even, [0.5, 0.5]);
    }
}
