//! Downhill: Adam on an augmented Lagrangian, `L = objective + Σ_c (λ_c V_c + ρ_c/2 · V_c²)`.
//!
//! After each round of steps `λ_c += ρ_c V_c`, and `ρ_c` grows where `V_c` did not fall enough. Weights are relative: a
//! weight of 1 makes the pull of the constraints as strong as that of the objective at the start, so that one set of
//! options does for all objectives and sizes.

mod adam;
#[cfg(feature = "cuda")]
pub(crate) mod gpu;

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
    /// Gradients on a CUDA GPU, if there is one that [`gpu`](crate::gpu) has begun, or does within a second. They are those of
    /// processors up to rounding, so that the answer may be another one. Default no (own).
    pub on_gpu: bool,
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
            on_gpu: false,
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

/// The constraints of a problem.
#[derive(Clone, Copy, Debug)]
struct Lagrangian {
    dependence: Multiplier,
    limits: Multiplier,
}

/// One step of a round.
#[derive(Clone, Copy, Debug)]
struct Stride {
    shape: Shape,
    /// Least and greatest `σ`.
    widths: [f64; 2],
    /// Adam's.
    rate: f64,
}

/// What computes gradients, and takes steps along them.
trait Stepper {
    /// Losses where the distributions are, and `Σ |∂/∂μ|` of their weighted sum.
    fn evaluate(&mut self, shape: Shape, weights: Losses) -> Result<(Losses, f64), Stopped>;

    /// Takes a step, whose weights follow the losses of the one before.
    fn step(&mut self, stride: &Stride, lagrangian: &Lagrangian) -> Result<(), Stopped>;

    /// The losses of the last step.
    fn losses(&mut self) -> Result<Losses, Stopped>;

    /// The means of the distributions.
    fn means(&mut self) -> Result<Vec<f64>, Stopped>;
}

/// A GPU gave up on the way.
#[derive(Clone, Copy, Debug)]
struct Stopped;

/// Gradients by threads.
struct Threads<'m> {
    model: &'m Model<'m>,
    relaxation: Relaxation<'m>,
    adam: Adam,
    at: Vec<Gaussian>,
    losses: Losses,
}

impl<'m> Threads<'m> {
    fn new(model: &'m Model<'m>, at: Vec<Gaussian>) -> Self {
        let (relaxation, adam) = (Relaxation::new(model), Adam::new(model.len()));
        Self { model, relaxation, adam, at, losses: Losses::default() }
    }
}

impl Stepper for Threads<'_> {
    fn evaluate(&mut self, shape: Shape, weights: Losses) -> Result<(Losses, f64), Stopped> {
        self.losses = self.relaxation.evaluate(&self.at, shape, weights);
        Ok((self.losses, self.relaxation.gradient.iter().map(|by| by[0].abs()).sum()))
    }

    fn step(&mut self, stride: &Stride, lagrangian: &Lagrangian) -> Result<(), Stopped> {
        let weights = Losses {
            objective: 1.0,
            dependence: lagrangian.dependence.weight(self.losses.dependence),
            limits: lagrangian.limits.weight(self.losses.limits),
        };
        self.losses = self.relaxation.evaluate(&self.at, stride.shape, weights);
        let (model, [least, most]) = (self.model, stride.widths);
        self.adam.step(&self.relaxation.gradient, stride.rate, &mut self.at, |v, at, change| {
            let (first, last) = (model.earliest[v] as f64, model.latest[v] as f64);
            at[0] = (at[0] + change[0] * model.width(v) as f64).clamp(first, last);
            // For a small change, its exponential.
            at[1] = (at[1] * (1.0 + change[1])).min(most).max(least);
        });
        Ok(())
    }

    fn losses(&mut self) -> Result<Losses, Stopped> {
        Ok(self.losses)
    }

    fn means(&mut self) -> Result<Vec<f64>, Stopped> {
        Ok(self.at.iter().map(|at| at[0]).collect())
    }
}

/// What a descent came to.
#[derive(Clone, Debug)]
pub(crate) struct Descended {
    pub means: Vec<f64>,
    /// Gradients taken.
    pub gradients: u64,
    /// A GPU computed them.
    pub on_gpu: bool,
}

/// Goes downhill from `mu`.
pub(crate) fn descend(model: &Model<'_>, mu: Vec<f64>, how: &Descent, clock: &Clock<'_>) -> Descended {
    if clock.is_over() {
        return Descended { means: mu, gradients: 0, on_gpu: false };
    }
    let width = |v: usize| (how.kappa * model.width(v) as f64).max(how.sigma_floor);
    let at: Vec<Gaussian> = mu.iter().enumerate().map(|(v, &mu)| [mu, width(v)]).collect();
    #[cfg(feature = "cuda")]
    if how.on_gpu
        && let Some((means, gradients)) = on_gpu(model, &at, how, clock)
    {
        return Descended { means, gradients, on_gpu: true };
    }
    // Within the pool: from outside, each of the parts of a step would wait for a thread to wake up.
    let by_threads = || walk(&mut Threads::new(model, at.clone()), model, &at, how, clock);
    let (means, gradients) = rayon::scope(|_| by_threads()).unwrap_or((mu, 0));
    Descended { means, gradients, on_gpu: false }
}

/// How long a GPU may take to begin.
#[cfg(feature = "cuda")]
const BEGINNING: std::time::Duration = std::time::Duration::from_secs(1);

/// Goes downhill on a GPU; `None` where there is none, it has not begun within a second, or it gave up.
#[cfg(feature = "cuda")]
fn on_gpu(model: &Model<'_>, at: &[Gaussian], how: &Descent, clock: &Clock<'_>) -> Option<(Vec<f64>, u64)> {
    let waits_since = Instant::now();
    while !twill_gaus_cuda::has_begun() {
        if clock.is_over() || waits_since.elapsed() > BEGINNING {
            return None;
        }
        std::thread::sleep(BEGINNING / 200);
    }
    let mut gpu = gpu::Gpu::new(model, at, how)?;
    walk(&mut gpu, model, at, how, clock).ok()
}

/// Goes downhill; the means it ends at, and the number of gradients taken.
fn walk(
    stepper: &mut impl Stepper,
    model: &Model<'_>,
    at: &[Gaussian],
    how: &Descent,
    clock: &Clock<'_>,
) -> Result<(Vec<f64>, u64), Stopped> {
    let ceiling = at.iter().map(|at| at[1]).fold(how.sigma_floor, f64::max);
    let (hot, cold) = match model.objective() {
        DataflowObjective::Storage => (how.storage_hot, how.storage_cold),
        _ => (how.hot, how.cold),
    };
    let shape = |temperature| Shape { dependence: how.dependence, temperature };
    let nothing = Losses::default();
    let (losses, _) = stepper.evaluate(shape(hot), nothing)?;
    let (_, objective) = stepper.evaluate(shape(hot), Losses { objective: 1.0, ..nothing })?;
    let (_, dependences) = stepper.evaluate(shape(hot), Losses { dependence: 1.0, ..nothing })?;
    let limits = if losses.limits > 0.0 || model.limits.iter().any(Option::is_some) {
        stepper.evaluate(shape(hot), Losses { limits: 1.0, ..nothing })?.1
    } else {
        0.0
    };
    let least = 0.01 * model.edges().len().max(1) as f64;
    let mut lagrangian = Lagrangian {
        dependence: Multiplier::new(how, losses.dependence, dependences, objective, least),
        limits: Multiplier::new(how, losses.limits, limits, objective, 1.0),
    };
    let mut taken = 4;
    let (since, all) = (Instant::now(), f64::from(how.rounds.max(1) * how.steps.max(1)));
    for round in 0..how.rounds {
        for step in 0..how.steps {
            if clock.is_over() {
                return Ok((stepper.means()?, taken));
            }
            // Where time runs out sooner than steps, what is annealed follows the time.
            let done = (f64::from(round * how.steps + step) / all).max(clock.gone(since));
            let stride = Stride {
                shape: shape(hot * (cold / hot).powf(done)),
                widths: [how.sigma_floor, ceiling * (how.sigma_end / ceiling).powf(done)],
                rate: how.rate,
            };
            stepper.step(&stride, &lagrangian)?;
            taken += 1;
        }
        let losses = stepper.losses()?;
        lagrangian.dependence.update(losses.dependence, how.growth);
        lagrangian.limits.update(losses.limits, how.growth);
    }
    Ok((stepper.means()?, taken))
}
