//! The cost of a dependence that may be broken. Recurrences are no different: a back edge's lag is
//! `delay − distance · II`.
//!
//! The sum of two starts is taken to be uniform with their variance, `± c` with `c = √(3 (σ_i² + σ_j²))`: of the same mean and
//! width as the normal, within 0.06 of its distribution function, and without an exponential.

/// How broken dependences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependenceLoss {
    /// `P(X_j < X_i + lag)` (paper). Where a dependence is certainly broken it is flat, and pulls no longer.
    Probability,
    /// The expected number of steps by which it is broken, `E max(0, X_i + lag − ½ − X_j)`: pulls the harder the more it
    /// is broken (own).
    Shortfall,
}

/// A loss with its derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairLoss {
    /// The loss.
    pub value: f64,
    /// By the mean of who goes first; by that of who waits it is the opposite.
    pub by_short: f64,
    /// By the variance of either.
    pub by_variance: f64,
}

impl DependenceLoss {
    /// The loss where the means break the dependence by `short` steps and the variances sum up to `variance`.
    pub fn of(self, short: f64, variance: f64) -> PairLoss {
        let square = 3.0 * variance;
        // Most dependences are kept for certain; they need no root.
        if short <= 0.0 && short * short >= square {
            return PairLoss::default();
        }
        let reach = square.sqrt();
        let inside = short < reach;
        match self {
            DependenceLoss::Probability if inside => PairLoss {
                value: (short + reach) / (2.0 * reach),
                by_short: 0.5 / reach,
                by_variance: -0.75 * short / (reach * reach * reach),
            },
            DependenceLoss::Probability => PairLoss { value: 1.0, ..PairLoss::default() },
            DependenceLoss::Shortfall if inside => {
                let part = (short + reach) / (2.0 * reach);
                PairLoss {
                    value: part * part * reach,
                    by_short: part,
                    // By `c` it is part · (1 − part).
                    by_variance: 1.5 * part * (1.0 - part) / reach,
                }
            }
            DependenceLoss::Shortfall => PairLoss { value: short, by_short: 1.0, by_variance: 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal::normal;
    use super::*;

    #[test]
    fn losses_are_near_those_of_normals_and_have_their_derivatives() {
        for (short, variance) in [(-4.0, 1.0), (-0.4, 0.7), (0.3, 2.0), (1.1, 5.0), (9.0, 1.0)] {
            let (spread, h) = (f64::sqrt(variance), 1e-6);
            let (cdf, pdf) = normal(short / spread);
            for (loss, expected) in
                [(DependenceLoss::Probability, cdf), (DependenceLoss::Shortfall, short * cdf + spread * pdf)]
            {
                let found = loss.of(short, variance);
                assert!((found.value - expected).abs() < 0.07 * spread.max(1.0), "{loss:?}: {found:?}, not {expected}");
                let slope = (loss.of(short + h, variance).value - loss.of(short - h, variance).value) / (2.0 * h);
                assert!((found.by_short - slope).abs() < 1e-6, "{loss:?}: {found:?}, not {slope}");
                let slope = (loss.of(short, variance + h).value - loss.of(short, variance - h).value) / (2.0 * h);
                assert!((found.by_variance - slope).abs() < 1e-6, "{loss:?}: {found:?}, not {slope}");
            }
        }
    }
}
