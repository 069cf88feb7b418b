//! Sums of curves over steps, and what a change of a curve does to a function of the sum.

use super::curve::Curve;

/// Second differences of a sum of piecewise linear functions: adding one takes time by its knots, not its length.
#[derive(Clone, Debug)]
pub struct Bends {
    bends: Vec<f64>,
}

impl Bends {
    /// Nothing yet, over steps `0 .. length`.
    pub fn new(length: usize) -> Self {
        Self { bends: vec![0.0; length + 2] }
    }

    fn bend(&mut self, step: i64, slope: f64) {
        // The part beyond the last step has no effect.
        if let Some(bend) = usize::try_from(step).ok().and_then(|step| self.bends.get_mut(step)) {
            *bend += slope;
        }
    }

    /// Adds `scale` times a curve, `shift` steps later.
    pub fn add(&mut self, curve: &Curve, shift: i64, scale: f64) {
        let (mut x, mut value, mut slope) = (curve.before + shift, 0.0, 0.0);
        for &(step, at_step) in &curve.knots {
            let next = step + shift;
            let rise = scale * (at_step - value) / (next - x) as f64;
            self.bend(x + 1, rise - slope);
            (x, value, slope) = (next, at_step, rise);
        }
        self.bend(x + 1, -slope);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Bends) {
        for (bend, more) in self.bends.iter_mut().zip(&other.bends) {
            *bend += more;
        }
    }

    /// The sum at every step; with an interval, at every slot: steps that are equal modulo it are added up.
    pub fn profile(&self, interval: Option<usize>) -> Vec<f64> {
        let length = self.bends.len() - 2;
        let mut profile = vec![0.0; interval.unwrap_or(length)];
        let slots = profile.len();
        let (mut slope, mut value, mut slot) = (0.0, 0.0, 0);
        for &bend in &self.bends[..length] {
            slope += bend;
            value += slope;
            profile[slot] += value;
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
        profile
    }
}

/// The other way round: from the derivative of a loss by the profile to that by the knots of a curve in it.
#[derive(Clone, Debug)]
pub struct Ramps {
    /// `R(x) = Σ_{d < x} g(d) · (x − d)`, from `x = 0`.
    ramps: Vec<f64>,
}

impl Ramps {
    /// `by_profile` has the derivative for every step, or for every slot of the interval; steps are `0 .. length`.
    pub fn new(by_profile: &[f64], length: usize) -> Self {
        let mut ramps = Vec::with_capacity(length + 2);
        let (mut sum, mut ramp, mut slot) = (0.0, 0.0, 0);
        ramps.push(0.0);
        for _ in 0..=length {
            sum += by_profile[slot];
            ramp += sum;
            ramps.push(ramp);
            slot = if slot + 1 == by_profile.len() { 0 } else { slot + 1 };
        }
        Self { ramps }
    }

    fn at(&self, x: i64) -> f64 {
        let Ok(x) = usize::try_from(x) else { return 0.0 };
        self.ramps[x.min(self.ramps.len() - 1)]
    }

    /// Gives `report` the number of each knot of `curve` but the last, and the derivative of the loss by its value, for
    /// the curve `shift` steps later.
    pub fn trace(&self, curve: &Curve, shift: i64, mut report: impl FnMut(usize, f64)) {
        let Some(&(first, _)) = curve.knots.first() else { return };
        let mut at_here = self.at(first + shift);
        let mut left = (at_here - self.at(curve.before + shift)) / (first - curve.before) as f64;
        for (knot, ends) in curve.knots.windows(2).enumerate() {
            let at_next = self.at(ends[1].0 + shift);
            let right = (at_next - at_here) / (ends[1].0 - ends[0].0) as f64;
            report(knot, right - left);
            (at_here, left) = (at_next, right);
        }
    }
}

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
    use super::super::curve::{Detail, Drawn, Start};
    use super::*;

    const START: Start = Start { mu: 6.3, sigma: 2.7, earliest: 1, latest: 14 };

    #[test]
    fn a_drawn_curve_is_its_distribution() {
        let mut drawn = Drawn::default();
        for spacing in [0.0, 1.0] {
            drawn.draw(&START, Detail { reach: 9.0, spacing });
            let mut bends = Bends::new(20);
            bends.add(&drawn.curve, 3, 2.0);
            let tolerance = if spacing == 0.0 { 1e-12 } else { 0.05 };
            for (step, &value) in bends.profile(None).iter().enumerate() {
                let expected = 2.0 * START.at(step as i64 - 3).value;
                assert!((value - expected).abs() < tolerance, "{value}, not {expected}, at {step}");
            }
        }
    }

    #[test]
    fn ramps_are_the_adjoint_of_bends() {
        let mut drawn = Drawn::default();
        drawn.draw(&START, Detail { reach: 9.0, spacing: 0.8 });
        let by_slot: Vec<f64> = (0..7).map(|slot| f64::from(slot * slot) - 3.0).collect();
        let curve = &drawn.curve;
        let loss = |curve: &Curve| -> f64 {
            let mut bends = Bends::new(25);
            bends.add(curve, 2, 1.0);
            bends.profile(Some(7)).iter().zip(&by_slot).map(|(a, b)| a * b).sum()
        };
        let mut traced = Vec::new();
        Ramps::new(&by_slot, 25).trace(curve, 2, |_, by_value| traced.push(by_value));
        assert_eq!(traced.len(), curve.knots.len() - 1);
        for (knot, by_value) in traced.into_iter().enumerate() {
            let mut moved = curve.clone();
            moved.knots[knot].1 += 1.0;
            assert!((loss(&moved) - loss(curve) - by_value).abs() < 1e-9);
        }
    }
}
