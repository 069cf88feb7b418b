//! Downhill: Adam on an augmented Lagrangian, `L = objective + Σ_c (λ_c V_c + ρ_c/2 · V_c²)`.
//!
//! After each round of steps `λ_c += ρ_c V_c`, and `ρ_c` grows where `V_c` did not fall enough. Weights are relative: a
//! weight of 1 makes the pull of the constraints as strong as that of the objective at the start, so that one set of
//! options does for all objectives and sizes.

mod adam;

use crate::control::Clock;
use crate::model::Model;
use crate::relax::{DependenceLoss, Gaussian, Losses, Relaxation, Shape};
use adam::Adam;
use std::time::Instant;
use twill_graph::DataflowObjective;

/// Every knob of the gradient phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// Rounds of the augmented Lagrangian. Default 20 (own: with 10, one of GS-Schedule's 12 graphs and EPFL `bar` are no better
    /// than list scheduling).
    pub rounds: u32,
    /// Adam steps in a round. Default 40 (own: 10 at three times the rate are 10 to 20 % worse on EPFL).
    pub steps: u32,
    /// Adam's learning rate, in widths of the operation's mobility window. Default 0.01 (the paper's, whose unit is not known).
    pub rate: f64,
    /// `σ = κ · (ALAP − ASAP)` at the start. Default 1/6 (paper).
    pub kappa: f64,
    /// `σ` is at least this many steps, or operations with narrow windows would be frozen. Default 0.3 (own).
    pub sigma_floor: f64,
    /// `σ` is at most this many steps at the end of the descent; on the way the ceiling falls geometrically from the
    /// widest `σ` at the start. Default 0.5 (own).
    pub sigma_end: f64,
    /// `λ` at the start, relative. Default 0.1 (own).
    pub lambda: f64,
    /// `ρ` at the start, relative, for violations in multiples of those at the start. Default 1 (own; the paper's 1e-4 is
    /// absolute).
    pub rho: f64,
    /// The factor for `ρ` where violations have not halved in a round. Default 2 (own).
    pub growth: f64,
    /// `τ` of the smooth maximum of a resource at the start, in means of its profile. Default 0.3 (own: 1 is up to 20 % worse
    /// by GS-Schedule's score).
    pub hot: f64,
    /// The same at the end. Default 0.005 (own: 0.02 is 1 to 2 % worse).
    pub cold: f64,
    /// `τ` for the maximum of storage at the start. Default 1 (own: 0.3 is 4 % worse).
    pub storage_hot: f64,
    /// The same at the end. Default 0.02 (own: 0.1 and 0.005 are worse on half of the graphs).
    pub storage_cold: f64,
    /// How broken dependences count. Default the shortfall (own).
    pub dependence: DependenceLoss,
}

impl Default for Descent {
    fn default() -> Self {
        Self {
            rounds: 20,
            steps: 40,
            rate: 0.01,
            kappa: 1.0 / 6.0,
            sigma_floor: 0.3,
            sigma_end: 0.5,
            lambda: 0.1,
            rho: 1.0,
            growth: 2.0,
            hot: 0.3,
            cold: 0.005,
            storage_hot: 1.0,
            storage_cold: 0.02,
            dependence: DependenceLoss::Shortfall,
        }
    }
}

/// A constraint of the Lagrangian.
#[derive(Clone, Copy, Debug)]
struct Multiplier {
    lambda: f64,
    rho: f64,
    /// Weight that makes its pull as strong as the objective's.
    unit: f64,
    /// Violation at the start, at least a little.
    scale: f64,
    /// Violation at the end of the last round.
    before: f64,
}

impl Multiplier {
    fn new(how: &Descent, violation: f64, pull: f64, objective: f64, least: f64) -> Self {
        let unit = if pull > 0.0 && objective > 0.0 { objective / pull } else { 1.0 };
        Self { lambda: how.lambda, rho: how.rho, unit, scale: violation.max(least), before: violation }
    }

    /// `∂L/∂V`.
    fn weight(&self, violation: f64) -> f64 {
        self.unit * (self.lambda + self.rho * violation / self.scale)
    }

    fn update(&mut self, violation: f64, growth: f64) {
        self.lambda += self.rho * violation / self.scale;
        if violation > 0.5 * self.before {
            self.rho *= growth;
        }
        self.before = violation;
    }
}

/// `Σ |∂/∂μ|` of one loss.
fn pull(relaxation: &mut Relaxation<'_>, at: &[Gaussian], shape: Shape, weights: Losses) -> f64 {
    relaxation.evaluate(at, shape, weights);
    relaxation.gradient.iter().map(|by| by[0].abs()).sum()
}

/// Goes downhill from `mu`; the means it ends at, and the number of gradients taken.
pub(crate) fn descend(model: &Model<'_>, mu: Vec<f64>, how: &Descent, clock: &Clock<'_>) -> (Vec<f64>, u64) {
    if clock.is_over() {
        return (mu, 0);
    }
    // Within the pool: from outside, each of the parts of a step would wait for a thread to wake up.
    rayon::scope(|_| descend_here(model, mu, how, clock))
}

/// The same, on this thread and those of its pool.
fn descend_here(model: &Model<'_>, mu: Vec<f64>, how: &Descent, clock: &Clock<'_>) -> (Vec<f64>, u64) {
    let width = |v: usize| model.width(v) as f64;
    let mut at: Vec<Gaussian> =
        mu.into_iter().enumerate().map(|(v, mu)| [mu, (how.kappa * width(v)).max(how.sigma_floor)]).collect();
    let ceiling = at.iter().map(|at| at[1]).fold(how.sigma_floor, f64::max);
    let mut relaxation = Relaxation::new(model);
    let (hot, cold) = match model.objective() {
        DataflowObjective::Storage => (how.storage_hot, how.storage_cold),
        _ => (how.hot, how.cold),
    };
    let mut shape = Shape { dependence: how.dependence, temperature: hot };
    let nothing = Losses::default();
    let mut losses = relaxation.evaluate(&at, shape, nothing);
    let objective = pull(&mut relaxation, &at, shape, Losses { objective: 1.0, ..nothing });
    let dependences = pull(&mut relaxation, &at, shape, Losses { dependence: 1.0, ..nothing });
    let limits = if losses.limits > 0.0 || model.limits.iter().any(Option::is_some) {
        pull(&mut relaxation, &at, shape, Losses { limits: 1.0, ..nothing })
    } else {
        0.0
    };
    let least = 0.01 * model.edges().len().max(1) as f64;
    let mut dependence = Multiplier::new(how, losses.dependence, dependences, objective, least);
    let mut limit = Multiplier::new(how, losses.limits, limits, objective, 1.0);
    let mut adam = Adam::new(model.len());
    let mut taken = 4;
    let (since, all) = (Instant::now(), f64::from(how.rounds.max(1) * how.steps.max(1)));
    for round in 0..how.rounds {
        for step in 0..how.steps {
            if clock.is_over() {
                return (means(at), taken);
            }
            // Where time runs out sooner than steps, what is annealed follows the time.
            let done = (f64::from(round * how.steps + step) / all).max(clock.gone(since));
            shape.temperature = hot * (cold / hot).powf(done);
            let ceiling = ceiling * (how.sigma_end / ceiling).powf(done);
            let weights = Losses {
                objective: 1.0,
                dependence: dependence.weight(losses.dependence),
                limits: limit.weight(losses.limits),
            };
            losses = relaxation.evaluate(&at, shape, weights);
            taken += 1;
            adam.step(&relaxation.gradient, how.rate, &mut at, |v, at, change| {
                let (first, last) = (model.earliest[v] as f64, model.latest[v] as f64);
                at[0] = (at[0] + change[0] * width(v)).clamp(first, last);
                // For a small change, its exponential.
                at[1] = (at[1] * (1.0 + change[1])).min(ceiling).max(how.sigma_floor);
            });
        }
        dependence.update(losses.dependence, how.growth);
        limit.update(losses.limits, how.growth);
    }
    (means(at), taken)
}

fn means(at: Vec<Gaussian>) -> Vec<f64> {
    at.into_iter().map(|at| at[0]).collect()
}
