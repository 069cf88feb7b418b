//! Cost normalisation: small integers in nearly the same ratios (docs/model.md; Twill, arXiv
//! 2512.18134, section on cost normalisation).
//!
//! Given cycle counts `C`, find integers `C' ≥ 1` with `ΣC' ≤ U` that
//!
//! ```text
//! minimise F   subject to   |C_i C'_j − C_j C'_i| ≤ F   for all i, j
//! ```
//!
//! and among those the least `ΣC'`. Our solver does not need it: its cost does not grow with cycle
//! counts. It is here to compare with schedulers that do.

use std::collections::BTreeMap;
use thiserror::Error;
use twill_graph::saturate;
use twill_graph::{Bytes, Cycles, GraphError, LoopGraph};

/// A normalised graph, and what normalising cost.
#[derive(Clone, Debug)]
pub struct Normalised {
    /// The graph with small costs.
    pub graph: LoopGraph,
    /// Each distinct cycle count and what became of it.
    pub costs: BTreeMap<Cycles, Cycles>,
    /// `F`: the largest `|C_i C'_j − C_j C'_i|`; proved least.
    pub error: i64,
    /// The largest factor by which a ratio of two costs changed, at least 1.
    pub distortion: f64,
}

/// Why costs could not be normalised.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NormaliseError {
    /// Every cost must stay at least 1.
    #[error("{count} distinct costs cannot sum to at most {limit}; allow at least {count}")]
    LimitTooSmall {
        /// Distinct positive costs.
        count: usize,
        /// `U`.
        limit: i64,
    },
    /// Products of costs would not fit.
    #[error("cost {cost} is too large to normalise; the largest supported is {largest}")]
    CostTooLarge {
        /// The cost.
        cost: Cycles,
        /// The largest supported.
        largest: i64,
    },
    /// The normalised graph is not well formed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

const LARGEST_COST: i64 = 1 << 30;

/// Replaces a graph's cycle counts by integers whose sum over distinct costs is at most `limit`.
///
/// Occupancies, latencies and delays are normalised together. Handoff and transfer costs and holds
/// that are not among them are scaled by the ratio of the largest cost and rounded up: in the list
/// they would distort small costs. So is what goes through shared memory, whose bytes a cycle stay, rounded down.
///
/// # Errors
/// When there are more distinct costs than `limit` or one is above 2^30.
pub fn normalise(graph: &LoopGraph, limit: u32) -> Result<Normalised, NormaliseError> {
    let limit = i64::from(limit);
    let mut costs: Vec<i64> = Vec::new();
    for op in graph.operations() {
        costs.extend([op.occupancy.0, op.latency.0]);
        costs.extend(op.reservations.iter().flat_map(|r| [r.start.0, r.cycles.0]));
    }
    costs.extend(graph.dependences().iter().map(|d| d.delay.0));
    costs.retain(|c| *c > 0);
    costs.sort_unstable();
    costs.dedup();
    if let Some(&cost) = costs.last().filter(|c| **c > LARGEST_COST) {
        return Err(NormaliseError::CostTooLarge { cost: Cycles(cost), largest: LARGEST_COST });
    }
    if saturate::<i64>(costs.len()) > limit {
        return Err(NormaliseError::LimitTooSmall { count: costs.len(), limit });
    }
    let (small, error) = smallest(&costs, limit);
    let map: BTreeMap<i64, i64> = costs.iter().copied().zip(small.iter().copied()).collect();
    let (largest, scaled) = map.last_key_value().map_or((1, 1), |(c, s)| (*c, *s));
    let exact = |c: &mut Cycles| c.0 = map.get(&c.0).copied().unwrap_or(0);
    let up = |c: &mut Cycles| {
        c.0 = match map.get(&c.0) {
            Some(&known) => known,
            None => {
                saturate::<i64>((i128::from(c.0) * i128::from(scaled) + i128::from(largest) - 1) / i128::from(largest))
            }
        }
    };
    let graph = graph.map(
        |op| {
            exact(&mut op.occupancy);
            exact(&mut op.latency);
            for r in &mut op.reservations {
                exact(&mut r.start);
                exact(&mut r.cycles);
                // Rounding may let a later reservation end after the operation.
                op.occupancy = op.occupancy.max(r.start + r.cycles);
            }
            up(&mut op.handoff);
            up(&mut op.transfer_latency);
            // Rounded down, for fewer bytes bound no more.
            let shared = u128::from(op.traffic.shared.0) * saturate::<u128>(scaled);
            let smaller = shared / saturate::<u128>(largest.max(1));
            op.traffic.shared = Bytes(saturate::<u64>(smaller));
        },
        |d| {
            exact(&mut d.delay);
            up(&mut d.hold);
        },
    )?;
    let mut distortion: f64 = 1.0;
    for (a, x) in &map {
        for (b, y) in &map {
            distortion = distortion.max((x * b) as f64 / (y * a) as f64);
        }
    }
    let costs = map.into_iter().map(|(c, s)| (Cycles(c), Cycles(s))).collect();
    Ok(Normalised { graph, costs, error, distortion })
}

/// Exact search: the value of the largest cost is tried from 1 upwards, the others are branched on
/// within what the best error so far leaves them.
fn smallest(costs: &[i64], limit: i64) -> (Vec<i64>, i64) {
    let Some((&largest, others)) = costs.split_last() else { return (Vec::new(), 0) };
    // All ones is always allowed, and something to compare with from the start.
    let ones = saturate::<i64>(costs.len());
    let mut best = Best { error: largest - costs[0], sum: ones, values: vec![1; costs.len()] };
    let room = limit - saturate::<i64>(others.len());
    for value in 1..=room {
        let mut chosen = vec![(largest, value)];
        branch(others, &mut chosen, 0, value, limit, &mut best);
        if best.error == 0 {
            break; // Exact ratios only grow from here.
        }
    }
    // Values were chosen from the largest cost down.
    best.values.reverse();
    (best.values, best.error)
}

struct Best {
    error: i64,
    sum: i64,
    values: Vec<i64>,
}

fn branch(open: &[i64], chosen: &mut Vec<(i64, i64)>, error: i64, sum: i64, limit: i64, best: &mut Best) {
    let Some((&cost, rest)) = open.split_last() else {
        if (error, sum) < (best.error, best.sum) {
            *best = Best { error, sum, values: chosen.iter().map(|c| c.1).collect() };
        }
        return;
    };
    let (largest, anchor) = chosen[0];
    // |largest · x − cost · anchor| must stay within the best error: outwards from the quotient.
    let middle = (cost * anchor / largest).max(1);
    let mut values: Vec<i64> = Vec::new();
    for (from, step) in [(middle, -1), (middle + 1, 1)] {
        let mut value = from;
        while value >= 1 && value <= limit {
            let off = (largest * value - cost * anchor).abs();
            if off.max(error) > best.error {
                break;
            }
            values.push(value);
            value += step;
        }
    }
    values.sort_by_key(|v| ((largest * v - cost * anchor).abs(), *v));
    for value in values {
        let off = chosen.iter().map(|(c, v)| (c * value - cost * v).abs()).max().unwrap_or(0);
        let (error, sum) = (error.max(off), sum + value);
        let least_rest = saturate::<i64>(rest.len());
        if sum + least_rest > limit || (error, sum + least_rest) >= (best.error, best.sum) {
            continue;
        }
        chosen.push((cost, value));
        branch(rest, chosen, error, sum, limit, best);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_ratios_become_exact_small_integers() {
        assert_eq!(smallest(&[512, 1024], 300), (vec![1, 2], 0));
        assert_eq!(smallest(&[16, 64, 512], 300), (vec![1, 4, 32], 0));
        assert_eq!(smallest(&[7], 300), (vec![1], 0));
        assert_eq!(smallest(&[], 300), (vec![], 0));
    }

    #[test]
    fn agrees_with_enumeration() {
        let cases: [(&[i64], i64); 6] = [
            (&[3, 10, 17], 12),
            (&[1, 1000], 20),
            (&[64, 65, 512], 14),
            (&[16, 48, 65, 100], 11),
            (&[5, 6, 7], 3),
            (&[2, 3, 5, 9], 9),
        ];
        for (costs, limit) in cases {
            let (values, error) = smallest(costs, limit);
            let mut least = (i64::MAX, i64::MAX);
            enumerate(costs, &mut Vec::new(), limit, &mut least);
            assert_eq!((error, values.iter().sum::<i64>()), least, "{costs:?} {values:?}");
        }
    }

    fn enumerate(costs: &[i64], values: &mut Vec<i64>, limit: i64, least: &mut (i64, i64)) {
        let sum: i64 = values.iter().sum();
        if sum > limit {
            return;
        }
        if values.len() == costs.len() {
            let mut error = 0;
            for i in 0..costs.len() {
                for j in 0..i {
                    error = error.max((costs[i] * values[j] - costs[j] * values[i]).abs());
                }
            }
            *least = (*least).min((error, sum));
            return;
        }
        for value in 1..=limit {
            values.push(value);
            enumerate(costs, values, limit, least);
            values.pop();
        }
    }
}
