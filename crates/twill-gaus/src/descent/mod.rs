//! Downhill: Adam on an augmented Lagrangian, `L = objective + Σ_c (λ_c V_c + ρ_c/2 · V_c²)`.
//!
//! After each round of steps `λ_c += ρ_c V_c`, and `ρ_c` grows where `V_c` did not fall enough. Weights are relative: a
//! weight of 1 makes the pull of the constraints as strong as that of the objective at the start, so that one set of
//! options does for all objectives and sizes.

mod adam;

use crate::control::Clock;
use crate::model::Model;
use crate::relax::{DependenceLoss, Detail, Gaussians, Losses, Shape, evaluate};
use adam::Adam;
use std::time::Instant;

/// Every knob of the gradient phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// Rounds of the augmented Lagrangian. Default 10 (own).
    pub rounds: u32,
    /// Adam steps in a round. Default 10 (own: 30 at a third of the rate give the same).
    pub steps: u32,
    /// Adam's learning rate, in widths of the operation's mobility window. Default 0.03 (own; the paper's is 0.01, in a
    /// unit that is not known).
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
    /// `τ` of the smooth maximum in the first round, in means of the profile. Default 0.3 (own).
    pub hot: f64,
    /// The same in the last round. Default 0.02 (own).
    pub cold: f64,
    /// How broken dependences count. Default the shortfall (own: without polish, peak storage of EPFL `i2c` at twice its
    /// depth comes to 99, with the probability to 316, without any gradient to 397).
    pub dependence: DependenceLoss,
    /// How finely distributions are drawn.
    pub detail: Detail,
}

impl Default for Descent {
    fn default() -> Self {
        Self {
            rounds: 10,
            steps: 10,
            rate: 0.03,
            kappa: 1.0 / 6.0,
            sigma_floor: 0.3,
            sigma_end: 0.5,
            lambda: 0.1,
            rho: 1.0,
            growth: 2.0,
            hot: 0.3,
            cold: 0.02,
            dependence: DependenceLoss::Shortfall,
            detail: Detail::default(),
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
fn pull(model: &Model<'_>, at: &Gaussians, shape: Shape, weights: Losses) -> f64 {
    evaluate(model, at, shape, weights).by_mu.iter().map(|by| by.abs()).sum()
}

/// Goes downhill from `mu`; the means it ends at, and the number of gradients taken.
pub(crate) fn descend(model: &Model<'_>, mu: Vec<f64>, how: &Descent, clock: &Clock<'_>) -> (Vec<f64>, u64) {
    let widths: Vec<f64> = (0..model.len()).map(|v| model.width(v) as f64).collect();
    let sigma: Vec<f64> = widths.iter().map(|width| (how.kappa * width).max(how.sigma_floor)).collect();
    let ceiling = sigma.iter().copied().fold(how.sigma_floor, f64::max);
    let mut at = Gaussians { mu, sigma };
    let mut shape = Shape { detail: how.detail, dependence: how.dependence, temperature: how.hot };
    let nothing = Losses::default();
    let mut losses = evaluate(model, &at, shape, nothing).losses;
    let objective = pull(model, &at, shape, Losses { objective: 1.0, ..nothing });
    let dependences = pull(model, &at, shape, Losses { dependence: 1.0, ..nothing });
    let limits = pull(model, &at, shape, Losses { limits: 1.0, ..nothing });
    let least = 0.01 * model.edges().len().max(1) as f64;
    let mut dependence = Multiplier::new(how, losses.dependence, dependences, objective, least);
    let mut limit = Multiplier::new(how, losses.limits, limits, objective, 1.0);
    let (mut by_mu, mut by_sigma) = (Adam::new(model.len()), Adam::new(model.len()));
    let mut taken = 4;
    let (since, all) = (Instant::now(), f64::from(how.rounds.max(1) * how.steps.max(1)));
    for round in 0..how.rounds {
        for step in 0..how.steps {
            if clock.is_over() {
                return (at.mu, taken);
            }
            // Where time runs out sooner than steps, what is annealed follows the time.
            let done = (f64::from(round * how.steps + step) / all).max(clock.gone(since));
            shape.temperature = how.hot * (how.cold / how.hot).powf(done);
            let ceiling = ceiling * (how.sigma_end / ceiling).powf(done);
            let weights = Losses {
                objective: 1.0,
                dependence: dependence.weight(losses.dependence),
                limits: limit.weight(losses.limits),
            };
            let evaluation = evaluate(model, &at, shape, weights);
            taken += 1;
            losses = evaluation.losses;
            by_mu.step(&evaluation.by_mu, how.rate, |v, change| {
                let (first, last) = (model.earliest[v] as f64, model.latest[v] as f64);
                at.mu[v] = (at.mu[v] + change * widths[v]).clamp(first, last);
            });
            by_sigma.step(&evaluation.by_sigma, how.rate, |v, change| {
                let sigma = at.sigma[v] * change.exp();
                at.sigma[v] = sigma.min(ceiling).max(how.sigma_floor);
            });
        }
        dependence.update(losses.dependence, how.growth);
        limit.update(losses.limits, how.growth);
    }
    (at.mu, taken)
}
