//! Adam (Kingma, Ba, ICLR 2015), with a step size for each parameter.

/// The moments of one vector of parameters.
#[derive(Clone, Debug)]
pub(crate) struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    steps: i32,
}

/// Decay of the mean of gradients; the default of the paper that introduced Adam.
const BETA_1: f64 = 0.9;
/// Decay of the mean of their squares. Own: 0.99 rather than 0.999, as the weights of penalties change within hundreds of
/// steps.
const BETA_2: f64 = 0.99;
const EPSILON: f64 = 1e-12;

impl Adam {
    pub fn new(count: usize) -> Self {
        Self { first: vec![0.0; count], second: vec![0.0; count], steps: 0 }
    }

    /// One step downhill; `apply` is given each parameter's number and its change, of about `rate`.
    pub fn step(&mut self, gradient: &[f64], rate: f64, mut apply: impl FnMut(usize, f64)) {
        self.steps = self.steps.saturating_add(1);
        let first_bias = 1.0 - BETA_1.powi(self.steps);
        let second_bias = 1.0 - BETA_2.powi(self.steps);
        let moments = self.first.iter_mut().zip(&mut self.second);
        for (parameter, (&gradient, (first, second))) in gradient.iter().zip(moments).enumerate() {
            *first = BETA_1 * *first + (1.0 - BETA_1) * gradient;
            *second = BETA_2 * *second + (1.0 - BETA_2) * gradient * gradient;
            let change = -rate * (*first / first_bias) / ((*second / second_bias).sqrt() + EPSILON);
            apply(parameter, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bowl() {
        let mut at = [3.0, -2.0];
        let mut adam = Adam::new(2);
        for _ in 0..2000 {
            let gradient = [2.0 * (at[0] - 1.0), 200.0 * (at[1] - 0.5)];
            adam.step(&gradient, 0.01, |parameter, change| at[parameter] += change);
        }
        assert!((at[0] - 1.0).abs() < 0.02 && (at[1] - 0.5).abs() < 0.02, "{at:?}");
    }
}
