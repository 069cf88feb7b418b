//! A normal distribution as a mixture of two spline kernels.
//!
//! The kernel of level `k` is a quadratic spline on a grid of `2^k` steps, refined to single steps by the rule of cubic
//! splines: a bell whose mean is exactly `μ` and whose variance is exactly `4^k/4 + (4^k − 1)/3`, so that `σ` is 0.5, 1.41,
//! 3.0, 6.1, … A `σ` between two of these is the mixture of both kernels that has its variance. So a distribution takes six
//! numbers, whatever its `σ`, and none is an exponential (own; the paper integrates `Φ` over every step). Its distribution
//! function is within 0.1 of `Φ`, worst at `σ = 1`.

/// The kernels of one `σ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The narrower kernel.
    pub level: usize,
    /// The weight of the wider one.
    pub share: f64,
    /// The derivative of `share` by the variance.
    pub by_variance: f64,
}

impl Spread {
    /// Kernels for a variance, below level `levels`, of which there are 2 or more.
    pub fn new(variance: f64, levels: usize) -> Self {
        let quarters = (12.0 * variance + 4.0) * (1.0 / 7.0);
        if quarters <= 1.0 {
            return Self { level: 0, share: 0.0, by_variance: 0.0 };
        }
        // The exponent of the number: 4^level ≤ quarters.
        let exponent = (quarters.to_bits() >> 52) as usize - 1023;
        let level = (exponent / 2).min(levels - 2);
        // By 1.75 · 4^level the next kernel is wider.
        let by_variance = (1.0 / 1.75) * f64::from_bits((1023 - 2 * level as u64) << 52);
        let share = (variance - kernel_variance(level)) * by_variance;
        if share >= 1.0 {
            return Self { level, share: 1.0, by_variance: 0.0 };
        }
        Self { level, share, by_variance }
    }
}

/// The variance of a kernel, in steps squared.
fn kernel_variance(level: usize) -> f64 {
    let quarters = (1_u64 << (2 * level)) as f64;
    quarters / 4.0 + (quarters - 1.0) / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_has_the_variance_asked_for() {
        for k in 1..400 {
            let sigma = 0.1 * f64::from(k);
            let spread = Spread::new(sigma * sigma, 12);
            let (narrow, wide) = (kernel_variance(spread.level), kernel_variance(spread.level + 1));
            let mixed = narrow + spread.share * (wide - narrow);
            assert!((0.0..=1.0).contains(&spread.share), "{spread:?}");
            assert!((mixed - (sigma * sigma).max(0.25)).abs() < 1e-9, "σ = {sigma}: {mixed}");
        }
        // Beyond the widest kernel there is nothing wider.
        assert_eq!(Spread::new(1e9, 3), Spread { level: 1, share: 1.0, by_variance: 0.0 });
    }
}
