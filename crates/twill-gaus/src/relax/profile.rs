//! Functions of profiles, with their derivatives.

/// `τ · log Σ exp(x/τ)` and its derivative, which sums up to 1. At least the greatest of `values`, and at most
/// `τ · log(their number)` above it.
pub fn smooth_maximum(values: &[f64], temperature: f64) -> (f64, Vec<f64>) {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = values.iter().map(|&value| ((value - most) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    (most + temperature * sum.ln(), weights)
}

/// `Σ max(0, x − cap)` and its derivative.
pub fn overflow(values: &[f64], cap: f64) -> (f64, Vec<f64>) {
    let total = values.iter().map(|&value| (value - cap).max(0.0)).sum();
    (total, values.iter().map(|&value| if value > cap { 1.0 } else { 0.0 }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_maximum_lies_above_and_its_derivative_is_a_mean() {
        let values = [1.0, 4.0, 3.5];
        let (most, by) = smooth_maximum(&values, 0.5);
        assert!((4.0..4.0 + 0.5 * 3.0_f64.ln()).contains(&most));
        assert!((by.iter().sum::<f64>() - 1.0).abs() < 1e-12 && by[1] > by[2]);
        let (over, by) = overflow(&values, 3.0);
        assert_eq!((over, by), (1.5, vec![0.0, 1.0, 1.0]));
    }
}
