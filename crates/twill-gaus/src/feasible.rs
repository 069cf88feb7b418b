//! Is there a schedule at all, at this interval and within this latency? Tried again and again in different orders.

use crate::control::Clock;
use crate::descent::{Descent, descend};
use crate::legal::{Ejection, Preference, Table, eject, settle};
use crate::model::Model;
use crate::options::Options;
use crate::polish::{Polish, polish};
use twill_graph::SplitMix64;

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Orders alone.
    Orders,
    /// And annealing of what is above limits.
    All,
}

/// A schedule within windows and limits, and the number of gradients that it took to find; `None` where nothing
/// tried led to one.
pub(crate) fn feasible(
    model: &Model<'_>,
    options: &Options,
    effort: Effort,
    seed: u64,
    clock: &Clock<'_>,
) -> (Option<Vec<i64>>, u64) {
    let mut random = SplitMix64::new(seed);
    let mut gradients = 0;
    // The gradient's wishes are found once, and only when the first orders fail.
    let mut wished: Option<Vec<i64>> = None;
    for attempt in 0..options.tries {
        if clock.is_over() {
            break;
        }
        let guided = attempt >= 2 && attempt % 2 == 0 && options.descent.is_some();
        if let (true, None, Some(descent)) = (guided, &wished, &options.descent) {
            // An eighth of the steps: what is asked for is a schedule, and another interval or latency may need the time more.
            let (rounds, steps) = ((descent.rounds / 2).max(1), (descent.steps / 4).max(1));
            let quick = Descent { rounds, steps, rate: 3.0 * descent.rate, on_gpu: false, ..*descent };
            let found = descend(model, model.middle(), &quick, clock);
            gradients += found.gradients;
            wished = Some(settle(model, &found.means, options.side));
        }
        let noise = if attempt < 3 { 0.0 } else { 0.2 };
        let (wishes, preference) = match &wished {
            Some(wished) if guided => (wished, Preference::Nearest),
            _ if attempt % 2 == 1 => (&model.earliest, Preference::Snug),
            _ => (&model.earliest, Preference::Earliest),
        };
        let rank = rank(model, |v| {
            let jitter = 1.0 + noise * (random.unit() - 0.5);
            match attempt % 4 {
                // Rau's priority, the longest path to the end, is the latest start.
                0 => model.latest[v] as f64 * jitter,
                // Operations with the least mobility first: recurrences before all.
                1 => model.width(v) as f64 * jitter,
                2 => wishes[v] as f64 * jitter,
                _ => (model.width(v) as f64 + model.latest[v] as f64) * jitter,
            }
        });
        let how = Ejection { preference, budget: options.ejections, seed: random.next_number() };
        if let Some(steps) = eject(model, wishes, &rank, &model.limits, how, clock) {
            return (Some(steps), gradients);
        }
    }
    if effort == Effort::Orders {
        return (None, gradients);
    }
    // Operations that cannot be placed one by one may still be moved together.
    let start = wished.unwrap_or_else(|| settle(model, &model.middle(), options.side));
    let short = Polish { sweeps: options.polish.sweeps / 4, ..options.polish };
    let (steps, _) = polish(model, start, short, random.next_number(), clock);
    let legal =
        Table::of(model, &steps).peaks().iter().zip(&model.limits).all(|(p, limit)| limit.is_none_or(|l| *p <= l));
    (legal.then_some(steps), gradients)
}

/// Positions in the order of keys; equal keys in topological order.
pub(crate) fn rank(model: &Model<'_>, key: impl FnMut(usize) -> f64) -> Vec<u32> {
    let keys: Vec<f64> = (0..model.len()).map(key).collect();
    let mut order: Vec<usize> = model.precedence.order().collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    let mut rank = vec![0; order.len()];
    for (position, v) in order.into_iter().enumerate() {
        rank[v] = position as u32;
    }
    rank
}
