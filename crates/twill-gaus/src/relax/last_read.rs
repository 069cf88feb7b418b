//! When a value has been read by all: the maximum of its readers' starts, as one distribution.
//!
//! Mean `m = τ · log Σ_j exp(μ_j/τ)` with `τ` half of the widest `σ_j`, which lies above the greatest mean by what the
//! expectation of a maximum does; variance the mean of `σ_j²`, weighted by who is likely to be last (own; exact for one
//! reader). So storage is a sum of distributions of starts and last reads, `F_i(d) − F_last(d)`, in time by the readers.

/// The last read of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastRead {
    /// Mean, in steps.
    pub mean: f64,
    /// Variance, in steps squared.
    pub variance: f64,
}

/// The last of reads with mean and `σ`, and to `shares` how likely each is to be the last.
pub fn last_read(reads: impl Iterator<Item = [f64; 2]> + Clone, shares: &mut [f32]) -> LastRead {
    if let [share] = shares {
        *share = 1.0;
        let [mean, sigma] = reads.clone().next().unwrap_or_default();
        return LastRead { mean, variance: sigma * sigma };
    }
    let last = reads.clone().map(|[mean, _]| mean).fold(f64::NEG_INFINITY, f64::max);
    let temperature = 0.5 * reads.clone().map(|[_, sigma]| sigma).fold(0.0, f64::max).max(1e-3);
    let (mut sum, mut variance) = (0.0, 0.0);
    for (share, [mean, sigma]) in shares.iter_mut().zip(reads) {
        let below = (mean - last) / temperature;
        let weight = if below < -16.0 { 0.0 } else { below.exp() };
        *share = weight as f32;
        sum += weight;
        variance += weight * sigma * sigma;
    }
    shares.iter_mut().for_each(|share| *share = (f64::from(*share) / sum) as f32);
    LastRead { mean: last + temperature * sum.ln(), variance: variance / sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_read_is_that_of_the_latest_reader_or_a_little_later() {
        let mut shares = [0.0; 3];
        let found = last_read([[3.0, 1.0], [9.0, 2.0], [2.0, 0.5]].into_iter(), &mut shares);
        assert!((9.0..9.1).contains(&found.mean) && (found.variance - 4.0).abs() < 0.05, "{found:?}");
        assert!(shares[1] > 0.99);
        // Of two normals alike, the expected maximum lies σ/√π = 0.56 σ above their mean.
        let mut shares = [0.0; 2];
        let found = last_read([[5.0, 2.0], [5.0, 2.0]].into_iter(), &mut shares);
        assert!((found.mean - 6.1).abs() < 0.5, "{found:?}");
        assert_eq!((shares, found.variance), ([0.5, 0.5], 4.0));
        let found = last_read([[7.5, 0.5]].into_iter(), &mut shares[..1]);
        assert_eq!(found, LastRead { mean: 7.5, variance: 0.25 });
    }
}
