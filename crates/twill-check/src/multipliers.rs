//! Checks a lower bound on the objective of a graph without warps, from its Lagrange multipliers.
//!
//! With weights `y ≥ 0` of steps, `Y(t) = Σ_{d < t} y_d`, the objective times the scale is at least
//!
//! - storage, `Σ y ≤ scale`: `Σ_v storage_v · (Y(end_v) − Y(s_v))`, where `end_v` is the last read of the value;
//! - resources, `Σ y_r ≤ peak · scale` for each: `Σ amount · (Y_r(s_v + offset + steps) − Y_r(s_v + offset))` over all
//!   uses, and `α · scale · Σ communication · (s_to − s_from)`.
//!
//! A schedule keeps `[s_to ≤ t] ≤ [s_from ≤ t − delay]` and `[end_v ≤ t] ≤ [s_w ≤ t]` for each reader `w`, so that the
//! left side less the right side, times a price, may be added. The sum is then one of functions of single starts (and
//! ends), and not less than the sum of their least values within windows, which follow from dependences and the
//! latency bound.

use thiserror::Error;
use twill_graph::proof::{Multipliers, StepPrice};
use twill_graph::{Dataflow, DataflowDependence, DataflowObjective, DataflowProblem};

/// Why multipliers prove nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MultiplierError {
    /// Loops, the objective latency, or no latency bound.
    #[error("multipliers are for resources and storage within a latency bound, without an interval")]
    Unsupported,
    /// There is no schedule at all, so that nothing can be said of the best.
    #[error("dependences alone rule out every schedule within the latency bound")]
    Windows,
    /// Numbers whose sums might not be exact.
    #[error("the numbers of the certificate or of the problem are too large to be added up")]
    TooLarge,
    /// A price of something that is not there.
    #[error("{what} {index} has a price at step {step}, and there is no such thing")]
    Nothing {
        /// `weight`, `dependence` or `read`.
        what: &'static str,
        /// Its position in the graph.
        index: u32,
        /// The step.
        step: u32,
    },
    /// Weights that are more than a mean.
    #[error("the weights of steps add up to {sum} where at most {most} prove anything")]
    Weights {
        /// Their sum.
        sum: u128,
        /// The weight of a peak in the objective, times the scale.
        most: u128,
    },
    /// The claim is more than what follows.
    #[error("the multipliers prove {proved}, not {claimed}")]
    Claim {
        /// The claim.
        claimed: i128,
        /// What follows from them.
        proved: i128,
    },
}

/// Most steps.
const STEPS: i64 = 1 << 24;
/// Most of `scale`, times weights in the objective: sums then stay below 2^124 (2^48 storage, 2^24 steps).
const LARGEST_SCALE: u128 = 1 << 48;
/// Most that a price may be.
const LARGEST_PRICE: u64 = 1 << 62;

/// Checks that no schedule of `problem` has an objective below `claim.least`; the bound that the multipliers prove.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify_multipliers(problem: &DataflowProblem, claim: &Multipliers) -> Result<i128, MultiplierError> {
    let total = Parts::new(problem, claim)?.least()?;
    let scale = i128::from(claim.scale);
    let proved = total.div_euclid(scale) + i128::from(total.rem_euclid(scale) > 0);
    if claim.least > proved {
        return Err(MultiplierError::Claim { claimed: claim.least, proved });
    }
    Ok(proved)
}

/// `amount` is added to the cost of a row where it starts at step `until` or before.
struct Step {
    row: u32,
    /// Within what windows may be: all else is the same as that.
    until: i32,
    amount: i64,
}

/// The ends of values that several operations read have rows after those of the operations.
struct Parts<'a> {
    graph: &'a Dataflow,
    objective: DataflowObjective,
    scale: i128,
    /// By row, the first and last step.
    windows: Vec<(i64, i64)>,
    /// By operation, the row of its value's last read; `None` where nobody reads it.
    ends: Vec<Option<usize>>,
    /// By track, `Y`.
    sums: Vec<Vec<i128>>,
    /// By row.
    steps: Vec<Step>,
}

impl<'a> Parts<'a> {
    fn new(problem: &'a DataflowProblem, claim: &Multipliers) -> Result<Self, MultiplierError> {
        let (graph, objective) = (&problem.graph, problem.objective);
        let bound = problem.latency_bound.filter(|_| problem.interval.is_none()).ok_or(MultiplierError::Unsupported)?;
        let (tracks, peak, alpha) = match objective {
            DataflowObjective::Storage => (1, 1, 0),
            DataflowObjective::Resources { peak, communication } => (graph.resources().len(), peak, communication),
            DataflowObjective::Latency => return Err(MultiplierError::Unsupported),
        };
        let scale = u128::from(claim.scale);
        let largest = u128::from(peak.max(alpha).max(1)).checked_mul(scale).filter(|&most| most <= LARGEST_SCALE);
        let uses = graph.operations().iter().flat_map(|op| &op.uses);
        let longest = uses.map(|used| i64::from(used.offset) + i64::from(used.steps)).max().unwrap_or(0);
        let bound = i64::try_from(bound).ok().filter(|&bound| bound <= STEPS && longest <= STEPS);
        let (Some(_), Some(bound), 1..) = (largest, bound, scale) else { return Err(MultiplierError::TooLarge) };
        let mut windows = windows(graph, bound)?;
        let length = (bound + longest + 1) as usize;
        if tracks.saturating_mul(length) > STEPS as usize {
            return Err(MultiplierError::TooLarge);
        }
        let sums = sums(claim, tracks, length, u128::from(peak) * scale)?;
        let ends = match objective {
            DataflowObjective::Storage => ends(graph, &mut windows),
            _ => vec![None; graph.operations().len()],
        };
        let mut parts = Parts { graph, objective, scale: claim.scale.into(), windows, ends, sums, steps: Vec::new() };
        parts.price(claim)?;
        parts.steps.sort_unstable_by_key(|step| step.row);
        Ok(parts)
    }

    fn price(&mut self, claim: &Multipliers) -> Result<(), MultiplierError> {
        let operations = self.graph.operations().len();
        let dependence = |price: &StepPrice| self.graph.dependences().get(price.index as usize).copied();
        let nothing = |what, price: &StepPrice| MultiplierError::Nothing { what, index: price.index, step: price.step };
        let mut steps = Vec::with_capacity(2 * (claim.dependences.len() + claim.reads.len()));
        let mut add = |row: usize, until: i64, amount: i64| {
            steps.push(Step { row: row as u32, until: until.clamp(-1, 2 * STEPS) as i32, amount });
        };
        for price in claim.dependences.iter().chain(&claim.reads) {
            if price.price > LARGEST_PRICE {
                return Err(MultiplierError::TooLarge);
            }
        }
        for price in &claim.dependences {
            let counts = dependence(price).filter(|d| d.distance == 0);
            let d: DataflowDependence = counts.ok_or_else(|| nothing("dependence", price))?;
            add(d.to.index(), price.step.into(), price.price as i64);
            add(d.from.index(), i64::from(price.step) - d.delay, -(price.price as i64));
        }
        for price in &claim.reads {
            let end = dependence(price).filter(|d| d.distance == 0).and_then(|d| Some((d, self.ends[d.from.index()]?)));
            let (d, end) = end.filter(|(_, end)| *end >= operations).ok_or_else(|| nothing("read", price))?;
            add(end, price.step.into(), price.price as i64);
            add(d.to.index(), price.step.into(), -(price.price as i64));
        }
        self.steps = steps;
        Ok(())
    }

    /// The sum of the least parts.
    fn least(&self) -> Result<i128, MultiplierError> {
        // Storage that begins and ends with a row.
        let mut stored = vec![0_i128; self.windows.len()];
        for (v, op) in self.graph.operations().iter().enumerate() {
            if let Some(end) = self.ends[v] {
                stored[v] -= i128::from(op.storage);
                stored[end] += i128::from(op.storage);
            }
        }
        let mut spans = vec![0_i128; self.windows.len()];
        if let DataflowObjective::Resources { communication: alpha, .. } = self.objective {
            for d in self.graph.dependences().iter().filter(|d| d.distance == 0) {
                let cost = self.scale * i128::from(alpha) * i128::from(d.communication);
                spans[d.to.index()] += cost;
                spans[d.from.index()] -= cost;
            }
        }
        let (mut total, mut at, mut later) = (0_i128, 0, Vec::new());
        for (row, &(first, last)) in self.windows.iter().enumerate() {
            // Prices that still apply at `first`, and where they cease to.
            let mut now = 0_i128;
            later.clear();
            later.resize((last - first) as usize + 1, 0_i128);
            while let Some(step) = self.steps.get(at).filter(|step| step.row as usize == row) {
                at += 1;
                let (until, amount) = (i64::from(step.until), i128::from(step.amount));
                if until >= first {
                    now += amount;
                }
                if (first..last).contains(&until) {
                    later[(until + 1 - first) as usize] -= amount;
                }
            }
            let mut least = None;
            for start in first..=last {
                now += later[(start - first) as usize];
                let cost = now + spans[row] * i128::from(start) + self.weighted(row, start, stored[row]);
                least = Some(least.map_or(cost, |least: i128| least.min(cost)));
            }
            total = least.and_then(|least| total.checked_add(least)).ok_or(MultiplierError::TooLarge)?;
        }
        Ok(total)
    }

    /// What weights of steps add to the cost of a row.
    fn weighted(&self, row: usize, start: i64, stored: i128) -> i128 {
        if self.objective == DataflowObjective::Storage {
            return stored * self.sums[0][start as usize];
        }
        let uses = self.graph.operations().get(row).map_or(&[][..], |op| &op.uses);
        let used = uses.iter().map(|used| {
            let (sums, from) = (&self.sums[used.resource.index()], start as usize + used.offset as usize);
            i128::from(used.amount) * (sums[from + used.steps as usize] - sums[from])
        });
        used.sum()
    }
}

/// By track and step, the weights of all steps before.
fn sums(claim: &Multipliers, tracks: usize, length: usize, most: u128) -> Result<Vec<Vec<i128>>, MultiplierError> {
    let mut sums = vec![vec![0_i128; length + 1]; tracks];
    let mut added = vec![0_u128; tracks];
    for weight in &claim.weights {
        let (track, step) = (weight.index as usize, weight.step as usize);
        if track >= tracks || step >= length {
            return Err(MultiplierError::Nothing { what: "weight", index: weight.index, step: weight.step });
        }
        sums[track][step + 1] += i128::from(weight.price);
        added[track] += u128::from(weight.price);
    }
    if let Some(&sum) = added.iter().find(|&&sum| sum > most) {
        return Err(MultiplierError::Weights { sum, most });
    }
    for track in &mut sums {
        for step in 0..length {
            track[step + 1] += track[step];
        }
    }
    Ok(sums)
}

/// First and last start of each operation.
fn windows(graph: &Dataflow, bound: i64) -> Result<Vec<(i64, i64)>, MultiplierError> {
    let order = graph.order().map_err(|_| MultiplierError::Windows)?;
    let mut position = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, op)| position[op.index()] = at);
    let mut counted: Vec<&DataflowDependence> = graph.dependences().iter().filter(|d| d.distance == 0).collect();
    counted.sort_by_key(|d| position[d.from.index()]);
    let last = |op: &twill_graph::DataflowOperation| (0, bound - i64::from(op.latency));
    let mut windows: Vec<(i64, i64)> = graph.operations().iter().map(last).collect();
    for d in &counted {
        let earliest = windows[d.from.index()].0.saturating_add(d.delay);
        let first = &mut windows[d.to.index()].0;
        *first = earliest.max(*first);
    }
    for d in counted.iter().rev() {
        let latest = windows[d.to.index()].1.saturating_sub(d.delay);
        let last = &mut windows[d.from.index()].1;
        *last = latest.min(*last);
    }
    match windows.iter().all(|(first, last)| first <= last) {
        true => Ok(windows),
        false => Err(MultiplierError::Windows),
    }
}

/// By operation, the row of its value's last read: its reader's, or one of its own after all `windows`, which it adds.
fn ends(graph: &Dataflow, windows: &mut Vec<(i64, i64)>) -> Vec<Option<usize>> {
    let mut ends: Vec<Option<usize>> = vec![None; graph.operations().len()];
    for d in graph.dependences().iter().filter(|d| d.distance == 0) {
        let (reader, operations) = (d.to.index(), ends.len());
        let (first, last) = windows[reader];
        let end = &mut ends[d.from.index()];
        match *end {
            None => *end = Some(reader),
            Some(known) if known == reader => {}
            Some(known) if known < operations => {
                let other = windows[known];
                *end = Some(windows.len());
                windows.push((other.0.max(first), other.1.max(last)));
            }
            Some(known) => windows[known] = (windows[known].0.max(first), windows[known].1.max(last)),
        }
    }
    ends
}
