//! Adam (Kingma, Ba, ICLR 2015) on the two parameters of every operation.

use rayon::prelude::*;

/// The moments of all parameters.
#[derive(Clone, Debug)]
pub(crate) struct Adam {
    /// By operation: the means of both gradients, and those of their squares.
    moments: Vec<[f64; 4]>,
    steps: i32,
}

/// Decay of the mean of gradients; the default of the paper that introduced Adam.
const BETA_1: f64 = 0.9;
/// Decay of the mean of their squares. Own: 0.99 rather than 0.999, as the weights of penalties change within hundreds of
/// steps.
const BETA_2: f64 = 0.99;
const EPSILON: f64 = 1e-12;
/// Operations that a thread takes at a time.
const CHUNK: usize = 4096;

impl Adam {
    pub fn new(count: usize) -> Self {
        Self { moments: vec![[0.0; 4]; count], steps: 0 }
    }

    /// One step downhill; `apply` is given each operation, its parameters and their change, each of about `rate`.
    pub fn step(
        &mut self,
        gradient: &[[f64; 2]],
        rate: f64,
        at: &mut [[f64; 2]],
        apply: impl Fn(usize, &mut [f64; 2], [f64; 2]) + Sync,
    ) {
        self.steps = self.steps.saturating_add(1);
        let [first_bias, second_bias] = corrections(rate, self.steps);
        let all = self.moments.par_iter_mut().zip(at).zip(gradient).with_min_len(CHUNK).enumerate();
        all.for_each(|(v, ((moments, at), gradient))| {
            let mut change = [0.0; 2];
            for k in 0..2 {
                let by = gradient[k];
                moments[k] = BETA_1 * moments[k] + (1.0 - BETA_1) * by;
                moments[k + 2] = BETA_2 * moments[k + 2] + (1.0 - BETA_2) * by * by;
                change[k] = -first_bias * moments[k] / ((moments[k + 2] * second_bias).sqrt() + EPSILON);
            }
            apply(v, at, change);
        });
    }
}

/// The rate by the correction for the mean of so many gradients, and that for the mean of their squares.
pub(crate) fn corrections(rate: f64, steps: i32) -> [f64; 2] {
    [rate / (1.0 - BETA_1.powi(steps)), 1.0 / (1.0 - BETA_2.powi(steps))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bowl() {
        let mut at = [[3.0, -2.0]];
        let mut adam = Adam::new(1);
        for _ in 0..2000 {
            let gradient = [[2.0 * (at[0][0] - 1.0), 200.0 * (at[0][1] - 0.5)]];
            adam.step(&gradient, 0.01, &mut at, |_, at, change| {
                at[0] += change[0];
                at[1] += change[1];
            });
        }
        assert!((at[0][0] - 1.0).abs() < 0.02 && (at[0][1] - 0.5).abs() < 0.02, "{at:?}");
    }
}
