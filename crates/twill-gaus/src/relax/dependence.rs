//! The cost of a dependence that may be broken. Recurrences are no different: a back edge's lag is
//! `delay − distance · II`.

use super::curve::{Detail, Drawn, Start};
use super::normal::normal;

/// How broken dependences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependenceLoss {
    /// `P(X_j < X_i + lag)` in closed form, `Φ((μ_i + lag − μ_j − ½)/√(σ_i² + σ_j²))`: roundings and windows are
    /// neglected (own derivation). Far beyond the standard deviations it is flat, and pulls no longer.
    Probability,
    /// The same probability for rounded starts in their windows: `Σ_d P_i(d) · F_j(d + lag − 1)` (the paper's sum, with
    /// lags). Its cost grows with `σ`.
    ExactProbability,
    /// The expected number of steps by which it is broken, `E max(0, Y_i + lag − ½ − Y_j)` for the normals before
    /// rounding: pulls the harder the more it is broken (own).
    Shortfall,
}

/// A loss with its derivatives by the two starts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairLoss {
    /// The loss.
    pub value: f64,
    /// By `μ` and `σ` of who goes first.
    pub by_from: [f64; 2],
    /// By `μ` and `σ` of who waits.
    pub by_to: [f64; 2],
}

impl DependenceLoss {
    /// The loss of `to ≥ from + lag`. `scratch` is used for drawing.
    pub fn of(self, from: &Start, to: &Start, lag: i64, detail: Detail, scratch: &mut Drawn) -> PairLoss {
        match self {
            DependenceLoss::ExactProbability => exact(from, to, lag, detail, scratch),
            DependenceLoss::Probability => {
                let (short, spread) = apart(from, to, lag);
                let (value, density) = normal(short / spread);
                let by_short = density / spread;
                let by_spread = -by_short * short / spread;
                by_ends(value, by_short, by_spread, from, to, spread)
            }
            DependenceLoss::Shortfall => {
                let (short, spread) = apart(from, to, lag);
                let (cdf, density) = normal(short / spread);
                by_ends(short * cdf + spread * density, cdf, density, from, to, spread)
            }
        }
    }
}

/// Mean and standard deviation of `Y_i + lag − ½ − Y_j`.
fn apart(from: &Start, to: &Start, lag: i64) -> (f64, f64) {
    (from.mu + lag as f64 - 0.5 - to.mu, from.sigma.hypot(to.sigma))
}

fn by_ends(value: f64, by_short: f64, by_spread: f64, from: &Start, to: &Start, spread: f64) -> PairLoss {
    PairLoss {
        value,
        by_from: [by_short, by_spread * from.sigma / spread],
        by_to: [-by_short, by_spread * to.sigma / spread],
    }
}

fn exact(from: &Start, to: &Start, lag: i64, detail: Detail, scratch: &mut Drawn) -> PairLoss {
    scratch.draw(from, Detail { spacing: 0.0, ..detail });
    let mut loss = PairLoss::default();
    let mut below = super::curve::Point::NEVER;
    for (&(step, _), &upto) in scratch.curve.knots.iter().zip(&scratch.points) {
        let mass = upto.value - below.value;
        let reader = to.at(step + lag - 1);
        loss.value += mass * reader.value;
        loss.by_from[0] += (upto.by_mu - below.by_mu) * reader.value;
        loss.by_from[1] += (upto.by_sigma - below.by_sigma) * reader.value;
        loss.by_to[0] += mass * reader.by_mu;
        loss.by_to[1] += mass * reader.by_sigma;
        below = upto;
    }
    loss
}
