//! The relaxation against the plain formulas, summed over every step, and against finite differences.

use super::normal::normal;
use super::*;
use crate::testing::with_model;

const SHAPE: Shape = Shape { dependence: DependenceLoss::Shortfall, temperature: 0.3 };
const RESOURCES: DataflowObjective = DataflowObjective::Resources { peak: 3, communication: 2 };

/// `P(X_v = d)`, by the normal distribution.
fn mass([mu, sigma]: Gaussian, d: i64) -> f64 {
    let upto = |d: f64| normal((d + 0.5 - mu) / sigma).0;
    upto(d as f64) - upto(d as f64 - 1.0)
}

#[test]
fn usage_is_nearly_that_of_normal_distributions() {
    for interval in [None, Some(11)] {
        with_model(RESOURCES, interval, |model, at| {
            let mut relaxation = Relaxation::new(model);
            relaxation.find_last_reads(&at);
            relaxation.lay(&at);
            for resource in 0..2 {
                let tracks: Vec<usize> = relaxation.of_resource[resource].iter().flatten().copied().collect();
                let found = relaxation.profile(&tracks);
                let mut expected = vec![0.0; model.slots];
                for (v, &at) in at.iter().enumerate() {
                    for used in model.uses[v].iter().filter(|used| used.resource == resource) {
                        for d in -20..model.length as i64 {
                            for held in used.offset..used.offset + used.steps {
                                let step = (d + held).clamp(0, model.length as i64 - 1);
                                expected[model.slot(step)] += used.amount as f64 * mass(at, d);
                            }
                        }
                    }
                }
                // Kernels are within 0.1 of normal distributions, and their sums nearer.
                let apart: f64 = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs()).sum();
                let (found, all): (f64, f64) = (found.iter().sum(), expected.iter().sum());
                assert!((found - all).abs() < 0.05 * all && apart < 0.2 * all, "{found}, not {all}, {apart} apart");
            }
        });
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let weights = Losses { objective: 1.3, dependence: 0.7, limits: 0.4 };
    for (objective, interval) in [
        (RESOURCES, None),
        (RESOURCES, Some(11)),
        (DataflowObjective::Latency, None),
        (DataflowObjective::Latency, Some(11)),
    ] {
        with_model(objective, interval, |model, at| {
            let mut relaxation = Relaxation::new(model);
            let mut loss = |at: &[Gaussian]| {
                let losses = relaxation.evaluate(at, SHAPE, weights);
                let sum = losses.objective * weights.objective + losses.dependence * weights.dependence;
                (sum + losses.limits * weights.limits, relaxation.gradient.clone())
            };
            let (_, gradient) = loss(&at);
            for v in 0..model.len() {
                for k in 0..2 {
                    let mut moved = |by: f64| {
                        let mut at = at.clone();
                        at[v][k] += by;
                        loss(&at).0
                    };
                    let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    let found = gradient[v][k];
                    let tolerance = 1e-3 * (1.0 + numeric.abs());
                    assert!((found - numeric).abs() < tolerance, "{objective:?} {v} {k}: {found}, not {numeric}");
                }
            }
        });
    }
}

#[test]
fn storage_falls_along_its_gradient() {
    for interval in [None, Some(11)] {
        with_model(DataflowObjective::Storage, interval, |model, mut at| {
            let weights = Losses { objective: 1.0, dependence: 1.0, limits: 1.0 };
            let mut relaxation = Relaxation::new(model);
            let mut sum = |at: &[Gaussian]| {
                let losses = relaxation.evaluate(at, SHAPE, weights);
                (losses.objective + losses.dependence + losses.limits, relaxation.gradient.clone())
            };
            let (before, gradient) = sum(&at);
            let square: f64 = gradient.iter().flatten().map(|by| by * by).sum();
            let step = 1e-4;
            at.iter_mut().zip(&gradient).for_each(|(at, by)| (0..2).for_each(|k| at[k] -= step * by[k]));
            let fall = (before - sum(&at).0) / (step * square);
            // What is left out of the gradient (of temperatures, and of who is last) is a small part.
            assert!((0.7..1.3).contains(&fall), "{fall} of what the gradient says");
        });
    }
}

#[test]
fn the_last_read_and_the_start_bound_what_is_live() {
    with_model(DataflowObjective::Storage, None, |model, mut at| {
        // Everything where a schedule has it, nearly for certain.
        at.iter_mut().zip(&model.earliest).for_each(|(at, &earliest)| *at = [earliest as f64, 0.01]);
        let steps: Vec<u64> = model.earliest.iter().map(|&s| s as u64).collect();
        let measure = crate::Measure::with(&model.problem.graph, model.precedence, None, &steps);
        let mut relaxation = Relaxation::new(model);
        let cold = Shape { temperature: 1e-3, ..SHAPE };
        let losses = relaxation.evaluate(&at, cold, Losses::default());
        // Kernels are at least half a step wide: a peak of one step is a little lower.
        let ratio = losses.objective / measure.storage as f64;
        assert!((0.75..1.05).contains(&ratio), "{} of {}", losses.objective, measure.storage);
    });
}
