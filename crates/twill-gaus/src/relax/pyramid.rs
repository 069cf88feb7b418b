//! A sum of distributions over steps: grids of 1, 2, 4, … steps, on which [spreads](super::spread) are laid, and which are
//! then refined into one profile. The adjoint goes back from the derivative by the profile to grids from which the derivatives
//! of every distribution are read. Both take time in proportion to the steps once, and constant time a distribution.

use super::spread::Spread;

/// Cells beyond either end of a grid.
const PAD: usize = 3;

/// Where the grids of a profile lie in a row of numbers.
#[derive(Clone, Debug)]
pub struct Layout {
    /// By level, the first number.
    first: Vec<usize>,
    /// Steps of the profile; what lies beyond either end counts at it.
    steps: usize,
}

/// Quadratic spline weights around the nearest cell.
#[derive(Clone, Copy, Debug)]
struct Weights {
    cell: usize,
    values: [f64; 3],
    slopes: [f64; 3],
}

impl Layout {
    pub fn new(steps: usize) -> Self {
        let levels = (steps.max(2).ilog2() as usize + 1).max(2);
        let mut first = vec![0];
        for level in 0..levels {
            first.push(first[level] + (steps >> level) + 2 + 2 * PAD);
        }
        Self { first, steps }
    }

    /// Numbers in all grids.
    pub fn len(&self) -> usize {
        self.first[self.levels()]
    }

    /// By level, where its cells begin, and where the last one's end.
    #[cfg(feature = "cuda")]
    pub fn first_cells(&self) -> Vec<u32> {
        self.first.iter().map(|&first| first as u32).collect()
    }

    pub fn levels(&self) -> usize {
        self.first.len() - 1
    }

    fn weights(&self, level: usize, at: f64) -> Weights {
        // 2^−level
        let scale = f64::from_bits((1023 - level as u64) << 52);
        let cells = (self.first[level + 1] - self.first[level]) as f64;
        let at = (at * scale + PAD as f64).clamp(1.0, cells - 2.0);
        let cell = (at + 0.5) as usize;
        let t = at - cell as f64;
        let (low, high) = (0.5 - t, 0.5 + t);
        let values = [0.5 * low * low, 0.75 - t * t, 0.5 * high * high];
        let slopes = [-low, -2.0 * t, high];
        Weights {
            cell: self.first[level] + cell - 1,
            values: values.map(|value| value * scale),
            slopes: slopes.map(|slope| slope * scale * scale),
        }
    }

    /// Lays `amount` around `at`.
    pub fn add(&self, grids: &mut [f64], spread: Spread, at: f64, amount: f64) {
        for (level, amount) in
            [(spread.level, amount * (1.0 - spread.share)), (spread.level + 1, amount * spread.share)]
        {
            if amount != 0.0 {
                let weights = self.weights(level, at);
                let cells = &mut grids[weights.cell..weights.cell + 3];
                cells.iter_mut().zip(weights.values).for_each(|(cell, value)| *cell += amount * value);
            }
        }
    }

    /// Derivatives, by position and by variance, of what one unit around `at` adds to the loss.
    pub fn slopes(&self, grids: &[f64], spread: Spread, at: f64) -> [f64; 2] {
        let read = |level| {
            let weights = self.weights(level, at);
            let cells = &grids[weights.cell..weights.cell + 3];
            let sum = |by: [f64; 3]| cells[0] * by[0] + cells[1] * by[1] + cells[2] * by[2];
            [sum(weights.values), sum(weights.slopes)]
        };
        let narrow = read(spread.level);
        if spread.share == 0.0 && spread.by_variance == 0.0 {
            return [narrow[1], 0.0];
        }
        let wide = read(spread.level + 1);
        [narrow[1] + spread.share * (wide[1] - narrow[1]), (wide[0] - narrow[0]) * spread.by_variance]
    }

    /// The fine cells, and their weights, of a coarse one.
    fn finer(&self, level: usize, coarse: usize) -> impl Iterator<Item = (usize, f64)> + use<> {
        let last = (self.first[level] - self.first[level - 1]) as i64 - 1;
        let middle = 2 * (coarse as i64 - PAD as i64) + PAD as i64;
        let weights = [0.125, 0.5, 0.75, 0.5, 0.125];
        (0..5).map(move |k| ((middle + k as i64 - 2).clamp(0, last) as usize, weights[k]))
    }

    /// Refines what was laid on all grids to `profile`, step by step.
    pub fn profile(&self, grids: &mut [f64], profile: &mut [f64]) {
        for level in (1..self.levels()).rev() {
            let (fine, coarse) = grids.split_at_mut(self.first[level]);
            let fine = &mut fine[self.first[level - 1]..];
            for (cell, value) in coarse[..self.first[level + 1] - self.first[level]].iter_mut().enumerate() {
                let value = std::mem::take(value);
                if value != 0.0 {
                    self.finer(level, cell).for_each(|(at, weight)| fine[at] += weight * value);
                }
            }
        }
        profile.fill(0.0);
        for (cell, value) in grids[..self.first[1]].iter_mut().enumerate() {
            profile[self.step(cell)] += std::mem::take(value);
        }
    }

    /// The adjoint: from the derivative by the profile to grids that [`slopes`](Self::slopes) reads.
    pub fn adjoint(&self, by_profile: &[f64], grids: &mut [f64]) {
        for (cell, value) in grids[..self.first[1]].iter_mut().enumerate() {
            *value = by_profile[self.step(cell)];
        }
        for level in 1..self.levels() {
            let (fine, coarse) = grids.split_at_mut(self.first[level]);
            let fine = &fine[self.first[level - 1]..];
            for (cell, value) in coarse[..self.first[level + 1] - self.first[level]].iter_mut().enumerate() {
                *value = self.finer(level, cell).map(|(at, weight)| weight * fine[at]).sum();
            }
        }
    }

    fn step(&self, cell: usize) -> usize {
        cell.saturating_sub(PAD).min(self.steps - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal::normal;
    use super::*;

    fn drawn(layout: &Layout, mu: f64, sigma: f64) -> Vec<f64> {
        let mut grids = vec![0.0; layout.len()];
        layout.add(&mut grids, Spread::new(sigma * sigma, layout.levels()), mu, 1.0);
        let mut profile = vec![0.0; layout.steps];
        layout.profile(&mut grids, &mut profile);
        profile
    }

    #[test]
    fn a_drawn_distribution_is_nearly_normal_and_has_its_mean_and_variance() {
        let layout = Layout::new(400);
        for (mu, sigma) in [(200.0, 0.5), (200.3, 1.0), (190.7, 2.0), (210.1, 5.0), (200.4, 17.3)] {
            let profile = drawn(&layout, mu, sigma);
            let moment = |power| profile.iter().enumerate().map(|(d, p)| p * (d as f64 - mu).powi(power)).sum::<f64>();
            assert!((moment(0) - 1.0).abs() < 1e-12 && moment(1).abs() < 1e-9, "{mu} {sigma}");
            assert!((moment(2).sqrt() / sigma - 1.0).abs() < 1e-6, "{sigma}: {}", moment(2).sqrt());
            let mut sum = 0.0;
            for (step, mass) in profile.iter().enumerate() {
                sum += mass;
                let expected = normal((step as f64 + 0.5 - mu) / sigma).0;
                // Worst between the two narrowest kernels.
                assert!((sum - expected).abs() < 0.1, "Φ of {mu}, {sigma} at {step}: {sum}, not {expected}");
            }
        }
    }

    #[test]
    fn what_lies_beyond_an_end_counts_there() {
        let layout = Layout::new(10);
        for mu in [-0.5, 0.0, 9.0, 9.4] {
            assert!((drawn(&layout, mu, 2.0).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert!(drawn(&layout, 0.0, 3.0)[0] > 0.4);
    }

    #[test]
    fn slopes_are_the_derivatives_of_a_loss() {
        let layout = Layout::new(50);
        let by_profile: Vec<f64> = (0..50).map(|d| (f64::from(d) * 0.7).sin()).collect();
        let loss = |mu: f64, sigma: f64| -> f64 {
            drawn(&layout, mu, sigma).iter().zip(&by_profile).map(|(a, b)| a * b).sum()
        };
        let mut grids = vec![0.0; layout.len()];
        layout.adjoint(&by_profile, &mut grids);
        for (mu, sigma) in [(3.2, 0.8), (20.9, 2.5), (47.6, 4.0), (25.1, 0.3)] {
            let [by_mu, by_variance] = layout.slopes(&grids, Spread::new(sigma * sigma, layout.levels()), mu);
            let numeric = (loss(mu + 1e-5, sigma) - loss(mu - 1e-5, sigma)) / 2e-5;
            assert!((by_mu - numeric).abs() < 1e-6, "by μ at {mu}, {sigma}: {by_mu}, not {numeric}");
            let numeric = (loss(mu, sigma + 1e-5) - loss(mu, sigma - 1e-5)) / 2e-5;
            let by_sigma = 2.0 * sigma * by_variance;
            assert!((by_sigma - numeric).abs() < 1e-6, "by σ at {mu}, {sigma}: {by_sigma}, not {numeric}");
        }
    }
}
