//! The relaxation against the plain formulas, summed over every step, and against finite differences.

use super::normal::normal;
use super::*;
use crate::Precedence;
use crate::testing::everything;
use twill_graph::DataflowProblem;
use twill_graph::SplitMix64;

fn gaussians(model: &Model<'_>) -> Gaussians {
    let mut random = SplitMix64::new(3);
    let mut unit = || random.unit();
    let mu = (0..model.len()).map(|v| model.earliest[v] as f64 + unit() * model.width(v) as f64).collect();
    Gaussians { mu, sigma: (0..model.len()).map(|_| 0.4 + 2.0 * unit()).collect() }
}

const EXACT: Detail = Detail { reach: 9.0, spacing: 0.0 };

fn shape(dependence: DependenceLoss) -> Shape {
    Shape { detail: EXACT, dependence, temperature: 0.3 }
}

/// `P(X_v ≤ d)`.
fn upto(model: &Model<'_>, at: &Gaussians, v: usize, d: i64) -> f64 {
    match d {
        d if d < model.earliest[v] => 0.0,
        d if d >= model.latest[v] => 1.0,
        d => normal((d as f64 + 0.5 - at.mu[v]) / at.sigma[v]).0,
    }
}

/// The losses by their definitions, summed over all steps.
fn plain(model: &Model<'_>, at: &Gaussians, shape: Shape) -> Losses {
    let mut losses = Losses::default();
    let steps = 0..model.length as i64;
    let mass = |v, d| upto(model, at, v, d) - upto(model, at, v, d - 1);
    let edges = || (0..model.len()).flat_map(|v| model.edges()[model.edges_of(v)].iter().map(move |edge| (v, *edge)));
    let smooth = |profile: &[f64]| {
        let tau = temperature(model, shape, profile);
        tau * profile.iter().map(|x| (x / tau).exp()).sum::<f64>().ln()
    };
    for (from, edge) in edges() {
        losses.dependence += match shape.dependence {
            DependenceLoss::ExactProbability => {
                let broken = |d| mass(from, d) * upto(model, at, edge.to, d + edge.lag - 1);
                steps.clone().map(broken).sum()
            }
            DependenceLoss::Probability => {
                let short = at.mu[from] + edge.lag as f64 - 0.5 - at.mu[edge.to];
                normal(short / (at.sigma[from].powi(2) + at.sigma[edge.to].powi(2)).sqrt()).0
            }
            DependenceLoss::Shortfall => {
                let short = at.mu[from] + edge.lag as f64 - 0.5 - at.mu[edge.to];
                let spread = (at.sigma[from].powi(2) + at.sigma[edge.to].powi(2)).sqrt();
                // ∫ max(0, short + spread·z) φ(z) dz.
                let one = |k: i32| {
                    let z = f64::from(k) * 1e-3;
                    (short + spread * z).max(0.0) * normal(z).1 * 1e-3
                };
                (-9000..=9000).map(one).sum()
            }
        };
    }
    if let DataflowObjective::Resources { communication, .. } = model.objective() {
        for (from, edge) in edges() {
            let span = at.mu[edge.to] + edge.shift as f64 - at.mu[from];
            losses.objective += communication as f64 * edge.communication * span;
        }
    }
    for resource in 0..2 {
        let mut usage = vec![0.0; model.slots];
        for v in 0..model.len() {
            for used in model.uses[v].iter().filter(|used| used.resource == resource) {
                for d in steps.clone() {
                    for held in used.offset..used.offset + used.steps {
                        usage[model.slot(d + held) % model.slots] += used.amount as f64 * mass(v, d);
                    }
                }
            }
        }
        if let Some(limit) = model.limits[resource] {
            losses.limits += usage.iter().map(|u| (u - limit as f64).max(0.0)).sum::<f64>();
        }
        if let DataflowObjective::Resources { peak, .. } = model.objective() {
            losses.objective += peak as f64 * smooth(&usage);
        }
    }
    if model.objective() == DataflowObjective::Storage {
        let mut live = vec![0.0; model.slots];
        for v in (0..model.len()).filter(|&v| !model.edges_of(v).is_empty()) {
            for d in steps.clone() {
                let reads = model.edges()[model.edges_of(v)].iter();
                let read: f64 = reads.map(|edge| upto(model, at, edge.to, d - edge.shift)).product();
                live[model.slot(d)] += model.storage[v] as f64 * upto(model, at, v, d) * (1.0 - read);
            }
        }
        losses.objective += smooth(&live);
    }
    if model.objective() == DataflowObjective::Latency {
        let finishes = (0..model.len()).map(|v| (at.mu[v] + model.latencies[v] as f64).exp());
        losses.objective += finishes.sum::<f64>().ln();
    }
    losses
}

fn cases() -> impl Iterator<Item = (DataflowProblem, DependenceLoss)> {
    let objectives = [
        DataflowObjective::Resources { peak: 3, communication: 2 },
        DataflowObjective::Storage,
        DataflowObjective::Latency,
    ];
    let dependences = [DependenceLoss::Probability, DependenceLoss::ExactProbability, DependenceLoss::Shortfall];
    objectives.into_iter().zip(dependences).flat_map(|(objective, dependence)| {
        [None, Some(11)].map(|interval| (everything(objective, interval), dependence))
    })
}

fn with_model(problem: &DataflowProblem, check: impl FnOnce(&Model<'_>)) {
    let precedence = Precedence::new(&problem.graph, problem.interval);
    let least = crate::Mobility::new(problem).unwrap().latency;
    check(&Model::new(problem, &precedence, least + 9).unwrap());
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn losses_are_the_plain_formulas() {
    for (problem, dependence) in cases() {
        with_model(&problem, |model| {
            let at = gaussians(model);
            let evaluated = evaluate(model, &at, shape(dependence), Losses::default()).losses;
            let expected = plain(model, &at, shape(dependence));
            let context = format!("{evaluated:?}, not {expected:?}, at {:?}", problem.interval);
            assert!(close(evaluated.objective, expected.objective, 1e-9), "{context}");
            assert!(close(evaluated.dependence, expected.dependence, 1e-6), "{context}");
            assert!(close(evaluated.limits, expected.limits, 1e-9), "{context}");
            // Drawn coarsely, losses stay near.
            let coarse = Shape { detail: Detail::default(), ..shape(dependence) };
            let coarse = evaluate(model, &at, coarse, Losses::default()).losses;
            assert!(close(coarse.objective, expected.objective, 0.01), "{coarse:?}, not {expected:?}");
        });
    }
}

#[test]
fn gradients_are_finite_differences_of_the_plain_formulas() {
    let weights = Losses { objective: 0.7, dependence: 1.3, limits: 0.9 };
    let weighted =
        |l: Losses| l.objective * weights.objective + l.dependence * weights.dependence + l.limits * weights.limits;
    for (problem, dependence) in cases() {
        with_model(&problem, |model| {
            let shape = shape(dependence);
            // The sum that stands for the integral of the shortfall has a kink at each of its steps.
            let tolerance = if dependence == DependenceLoss::Shortfall { 2e-4 } else { 2e-5 };
            let at = gaussians(model);
            let evaluation = evaluate(model, &at, shape, weights);
            // τ of storage follows the mean, which is left out of the gradient: the comparison holds it still.
            let storage = problem.objective == DataflowObjective::Storage;
            for v in (0..model.len()).step_by(if storage { 1 } else { 3 }) {
                for by_sigma in [false, true] {
                    let moved = |by: f64| {
                        let mut at = at.clone();
                        if by_sigma {
                            at.sigma[v] += by
                        } else {
                            at.mu[v] += by
                        }
                        let held = held_temperature(model, &gaussians(model), &at, shape);
                        weighted(plain(model, &at, Shape { temperature: held, ..shape }))
                    };
                    let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                    let gradient = if by_sigma { evaluation.by_sigma[v] } else { evaluation.by_mu[v] };
                    assert!(
                        close(gradient, slope, tolerance),
                        "∂/∂{} of {v}: {gradient}, not {slope} ({:?}, {dependence:?}, {:?})",
                        if by_sigma { "σ" } else { "μ" },
                        problem.objective,
                        problem.interval
                    );
                }
            }
        });
    }
}

/// The relative temperature at `at` that is the absolute one of `fixed`.
fn held_temperature(model: &Model<'_>, fixed: &Gaussians, at: &Gaussians, shape: Shape) -> f64 {
    if model.objective() != DataflowObjective::Storage {
        return shape.temperature;
    }
    let total = |at: &Gaussians| {
        let interval = model.interval.map(|_| model.slots);
        let sums = add_up(model, at, shape, 0..model.len());
        sums.storage.map_or(1.0, |bends| bends.profile(interval).iter().sum::<f64>())
    };
    shape.temperature * total(fixed) / total(at)
}

#[test]
fn evaluation_is_the_same_on_any_number_of_threads() {
    let problem = everything(DataflowObjective::Storage, Some(11));
    with_model(&problem, |model| {
        let weights = Losses { objective: 1.0, dependence: 1.0, limits: 1.0 };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| evaluate(model, &gaussians(model), shape(DependenceLoss::Shortfall), weights))
        };
        assert_eq!(on(1).by_mu, on(3).by_mu);
    });
}
