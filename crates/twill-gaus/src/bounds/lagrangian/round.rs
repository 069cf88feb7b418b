//! Multipliers in whole numbers, and exactly what they prove.

use super::ascent::Point;
use super::program::Program;
use twill_graph::proof::{Multipliers, StepPrice};

/// Scale of prices, in bits: what rounding takes away is beyond the digits of prices.
const BITS: u32 = 40;
/// Sums of costs stay below this.
const LARGEST: f64 = (1_u64 << 61) as f64;

/// `None` where they do not fit.
pub(super) fn round(program: &Program, point: &Point) -> Option<Multipliers> {
    let terms = program.terms.iter().map(|term| term.amount.unsigned_abs() as f64);
    let mean = terms.sum::<f64>() / program.terms.len().max(1) as f64 * program.peak as f64;
    let bits = BITS.checked_sub((mean.max(1.0).log2().ceil()) as u32)?;
    // The weights of a peak must still differ.
    if bits < 16 {
        return None;
    }
    let scale = 1_u64 << bits;
    let whole = |value: f64| (value * scale as f64) as i64;
    let weights: Vec<Vec<i64>> =
        point.weights.iter().map(|track| track.iter().map(|&weight| whole(weight.max(0.0))).collect()).collect();
    let most = |track: &[i64]| track.iter().sum::<i64>() <= (program.peak * scale) as i64;
    let prices: Vec<i64> = point.prices.iter().map(|&price| whole(f64::from(price.max(0.0)))).collect();
    if !weights.iter().all(|track| most(track)) || !fits(program, &weights, &prices, scale) {
        return None;
    }
    let total = total(program, &weights, &prices, scale);
    let least = total.div_euclid(scale.into()) + i128::from(total.rem_euclid(scale.into()) > 0);
    let mut found = Multipliers { least, scale, ..Multipliers::default() };
    for (track, weights) in weights.iter().enumerate() {
        for (step, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            found.weights.push(StepPrice { index: track as u32, step: step as u32, price: weight.unsigned_abs() });
        }
    }
    for pair in &program.pairs {
        let of = if pair.is_read { &mut found.reads } else { &mut found.dependences };
        for (price, step) in
            prices[pair.at..pair.at + pair.len].iter().zip(pair.step..).filter(|(price, _)| **price > 0)
        {
            of.push(StepPrice { index: pair.dependence, step: step as u32, price: price.unsigned_abs() });
        }
    }
    Some(found)
}

/// Whether no sum overflows.
fn fits(program: &Program, weights: &[Vec<i64>], prices: &[i64], scale: u64) -> bool {
    let peaks = weights.iter().map(|track| track.iter().sum::<i64>() as f64).fold(0.0, f64::max);
    let used: f64 = program.terms.iter().map(|term| term.amount.unsigned_abs() as f64 * peaks).sum();
    let linear: f64 = program.rows.iter().map(|row| row.linear.unsigned_abs() as f64 * row.len as f64).sum();
    let priced: f64 = prices.iter().map(|&price| price as f64).sum();
    used + linear * scale as f64 + priced < LARGEST
}

/// The bound times the scale.
fn total(program: &Program, weights: &[Vec<i64>], prices: &[i64], scale: u64) -> i128 {
    let mut costs = vec![0_i64; program.variables];
    for pair in &program.pairs {
        for (k, price) in prices[pair.at..pair.at + pair.len].iter().enumerate() {
            costs[pair.to + k] += price;
            costs[pair.from + k] -= price;
        }
    }
    let tracks = weights.iter().zip(&program.constant);
    let each = |(w, c): (&Vec<i64>, &Vec<i64>)| -> i128 {
        w.iter().zip(c).map(|(&w, &c)| i128::from(w) * i128::from(c)).sum()
    };
    let mut total: i128 = tracks.map(each).sum();
    for row in &program.rows {
        let linear = if row.len == 0 { 0 } else { row.linear * scale as i64 };
        let (mut sum, mut least) = (0_i64, 0_i64);
        for t in (0..row.len).rev() {
            let terms = program.terms[row.terms.clone()].iter();
            let used = terms.map(|term| weights[term.track][(row.first + term.shift) as usize + t] * term.amount);
            sum += costs[row.at + t] - linear + used.sum::<i64>();
            least = least.min(sum);
        }
        total += i128::from(row.linear) * i128::from(row.last) * i128::from(scale) + i128::from(least);
    }
    total
}
