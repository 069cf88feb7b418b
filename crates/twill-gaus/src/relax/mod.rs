//! The relaxation: every start a random variable `N(μ, σ²)`, every quantity its expectation, everything with a gradient.

mod curve;
mod dependence;
mod normal;
mod profile;
mod storage;
#[cfg(test)]
mod tests;

pub use curve::Detail;
pub use dependence::DependenceLoss;

use crate::model::Model;
use curve::{Drawn, Start};
use profile::{Bends, Ramps, overflow, smooth_maximum};
use rayon::prelude::*;
use storage::Live;
use twill_graph::DataflowObjective;

/// Operations that are summed up one after another before sums are added in order: the same on any number of threads.
const CHUNK: usize = 2048;

/// Most chunks, so that their profiles stay few.
const MOST_CHUNKS: usize = 16;

/// Most numbers in the profiles of all chunks together.
const MOST_PROFILED: usize = 1 << 24;

/// `μ` and `σ` of every operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gaussians {
    pub mu: Vec<f64>,
    pub sigma: Vec<f64>,
}

impl Gaussians {
    fn start(&self, model: &Model<'_>, v: usize) -> Start {
        Start { mu: self.mu[v], sigma: self.sigma[v], earliest: model.earliest[v], latest: model.latest[v] }
    }
}

/// The data that is fixed during gradient descent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub detail: Detail,
    pub dependence: DependenceLoss,
    /// `τ` of smooth maxima, in means of what they are the maximum of.
    pub temperature: f64,
}

/// The losses, or the weights at which they are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    pub objective: f64,
    /// Broken dependences and recurrences.
    pub dependence: f64,
    /// Usage above limits, over all slots.
    pub limits: f64,
}

/// Losses, and the gradient of their weighted sum.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    pub losses: Losses,
    pub by_mu: Vec<f64>,
    pub by_sigma: Vec<f64>,
}

/// The sums of a chunk of operations.
struct Sums {
    usage: Vec<Bends>,
    storage: Option<Bends>,
}

/// The derivatives that a chunk of producers gives.
struct Slopes {
    own: Vec<[f64; 2]>,
    /// By edge of the chunk, what is to be added to its reader.
    readers: Vec<[f64; 2]>,
    dependence: f64,
    communication: f64,
}

/// Derivatives of the weighted losses by the profiles.
struct Pull {
    usage: Vec<Option<Ramps>>,
    storage: Option<Ramps>,
    /// By `μ`, from the latest finish.
    finish: Option<Vec<f64>>,
}

/// Evaluates losses and the gradient of their sum, weighted by `weights`.
pub(crate) fn evaluate(model: &Model<'_>, at: &Gaussians, shape: Shape, weights: Losses) -> Evaluation {
    let profile = model.length * (model.limits.len() + 1);
    let chunk = model.len().div_ceil(MOST_CHUNKS.min(MOST_PROFILED / profile).max(1)).max(CHUNK);
    let chunks: Vec<_> = (0..model.len()).step_by(chunk).map(|v| v..(v + chunk).min(model.len())).collect();
    let sums: Vec<Sums> = chunks.par_iter().map(|chunk| add_up(model, at, shape, chunk.clone())).collect();
    let mut losses = Losses::default();
    let pull = pull(model, at, shape, weights, sums, &mut losses);
    let slopes: Vec<Slopes> =
        chunks.par_iter().map(|chunk| slopes(model, at, shape, weights, &pull, chunk.clone())).collect();
    let mut to_readers = Vec::with_capacity(model.edges().len());
    let mut own = Vec::with_capacity(model.len());
    for slopes in slopes {
        losses.dependence += slopes.dependence;
        losses.objective += slopes.communication;
        own.extend(slopes.own);
        to_readers.extend(slopes.readers);
    }
    for (v, own) in own.iter_mut().enumerate() {
        for &edge in model.edges_into(v) {
            let more = to_readers[edge as usize];
            own[0] += more[0];
            own[1] += more[1];
        }
    }
    let (by_mu, by_sigma) = own.into_iter().map(|[mu, sigma]| (mu, sigma)).unzip();
    Evaluation { losses, by_mu, by_sigma }
}

fn add_up(model: &Model<'_>, at: &Gaussians, shape: Shape, chunk: std::ops::Range<usize>) -> Sums {
    let mut sums = Sums {
        usage: model.limits.iter().map(|_| Bends::new(model.length)).collect(),
        storage: wants_storage(model).then(|| Bends::new(model.length)),
    };
    let (mut drawn, mut live) = (Drawn::default(), Live::default());
    for v in chunk {
        let start = at.start(model, v);
        if !model.uses[v].is_empty() && wants_usage(model) {
            drawn.draw(&start, shape.detail);
        }
        for used in model.uses[v].iter().filter(|used| counts(model, used.resource)) {
            let amount = used.amount as f64;
            sums.usage[used.resource].add(&drawn.curve, used.offset, amount);
            sums.usage[used.resource].add(&drawn.curve, used.offset + used.steps, -amount);
        }
        if let Some(storage) = sums.storage.as_mut().filter(|_| model.storage[v] > 0) {
            let readers = model.edges()[model.edges_of(v)].iter().map(|edge| (at.start(model, edge.to), edge.shift));
            if live.draw(&start, readers, shape.detail) {
                storage.add(&live.curve, 0, model.storage[v] as f64);
            }
        }
    }
    sums
}

fn wants_storage(model: &Model<'_>) -> bool {
    model.objective() == DataflowObjective::Storage
}

fn wants_usage(model: &Model<'_>) -> bool {
    (0..model.limits.len()).any(|resource| counts(model, resource))
}

/// Returns whether usage of a resource has a part in any loss.
fn counts(model: &Model<'_>, resource: usize) -> bool {
    matches!(model.objective(), DataflowObjective::Resources { .. }) || model.limits[resource].is_some()
}

/// Evaluates what depends on profiles, and their derivatives.
fn pull(
    model: &Model<'_>,
    at: &Gaussians,
    shape: Shape,
    weights: Losses,
    sums: Vec<Sums>,
    losses: &mut Losses,
) -> Pull {
    let interval = model.interval.map(|_| model.slots);
    let mut sums = sums.into_iter();
    let Some(mut total) = sums.next() else {
        return Pull { usage: Vec::new(), storage: None, finish: None };
    };
    for sum in sums {
        total.usage.iter_mut().zip(&sum.usage).for_each(|(total, more)| total.merge(more));
        total.storage.iter_mut().zip(&sum.storage).for_each(|(total, more)| total.merge(more));
    }
    let mut usage = Vec::new();
    for (resource, bends) in total.usage.iter().enumerate() {
        if !counts(model, resource) {
            usage.push(None);
            continue;
        }
        let profile = bends.profile(interval);
        let mut by_profile = vec![0.0; profile.len()];
        if let DataflowObjective::Resources { peak, .. } = model.objective() {
            let (most, by) = smooth_maximum(&profile, temperature(model, shape, &profile));
            losses.objective += peak as f64 * most;
            let weight = weights.objective * peak as f64;
            by_profile.iter_mut().zip(by).for_each(|(sum, by)| *sum += weight * by);
        }
        if let Some(limit) = model.limits[resource] {
            let (over, by) = overflow(&profile, limit as f64);
            losses.limits += over;
            by_profile.iter_mut().zip(by).for_each(|(sum, by)| *sum += weights.limits * by);
        }
        usage.push(Some(Ramps::new(&by_profile, model.length)));
    }
    let storage = total.storage.map(|bends| {
        let profile = bends.profile(interval);
        let (most, mut by) = smooth_maximum(&profile, temperature(model, shape, &profile));
        losses.objective += most;
        by.iter_mut().for_each(|by| *by *= weights.objective);
        Ramps::new(&by, model.length)
    });
    let finish = (model.objective() == DataflowObjective::Latency).then(|| {
        let finishes: Vec<f64> = at.mu.iter().zip(&model.latencies).map(|(mu, &lat)| mu + lat as f64).collect();
        let (most, mut by) = smooth_maximum(&finishes, 1.0);
        losses.objective += most;
        by.iter_mut().for_each(|by| *by *= weights.objective);
        by
    });
    Pull { usage, storage, finish }
}

/// `τ` of a profile. It follows the mean; that the mean depends on what is optimised is left out of the gradient, and
/// for usage it does not.
fn temperature(model: &Model<'_>, shape: Shape, profile: &[f64]) -> f64 {
    let latency = model.earliest.iter().zip(&model.latencies).map(|(s, l)| s + l).max().unwrap_or(1);
    let slots = if model.interval.is_some() { profile.len() } else { profile.len().min(latency.max(1) as usize) };
    let mean = profile.iter().sum::<f64>() / slots as f64;
    shape.temperature * mean.max(1e-3)
}

fn slopes(
    model: &Model<'_>,
    at: &Gaussians,
    shape: Shape,
    weights: Losses,
    pull: &Pull,
    chunk: std::ops::Range<usize>,
) -> Slopes {
    let first_edge = model.edges_of(chunk.start).start;
    let edges = first_edge..model.edges_of(chunk.end - 1).end;
    let mut slopes = Slopes {
        own: Vec::with_capacity(chunk.len()),
        readers: vec![[0.0; 2]; edges.len()],
        dependence: 0.0,
        communication: 0.0,
    };
    let (mut drawn, mut live) = (Drawn::default(), Live::default());
    let paid = match model.objective() {
        DataflowObjective::Resources { communication, .. } => communication as f64,
        _ => 0.0,
    };
    for v in chunk {
        let start = at.start(model, v);
        let mut own = [pull.finish.as_ref().map_or(0.0, |finish| finish[v]), 0.0];
        if !model.uses[v].is_empty() && wants_usage(model) {
            drawn.draw(&start, shape.detail);
        }
        for used in &model.uses[v] {
            let Some(ramps) = &pull.usage[used.resource] else { continue };
            for (shift, amount) in [(used.offset, used.amount), (used.offset + used.steps, -used.amount)] {
                ramps.trace(&drawn.curve, shift, |knot, by_value| {
                    own[0] += by_value * amount as f64 * drawn.points[knot].by_mu;
                    own[1] += by_value * amount as f64 * drawn.points[knot].by_sigma;
                });
            }
        }
        let of_v = model.edges_of(v);
        let to_readers = &mut slopes.readers[of_v.start - first_edge..of_v.end - first_edge];
        let of_v = &model.edges()[of_v];
        if let Some(ramps) = pull.storage.as_ref().filter(|_| model.storage[v] > 0) {
            let readers = of_v.iter().map(|edge| (at.start(model, edge.to), edge.shift));
            if live.draw(&start, readers, shape.detail) {
                let by_own = live.trace(&start, ramps, model.storage[v] as f64, |reader, by| {
                    to_readers[reader][0] += by[0];
                    to_readers[reader][1] += by[1];
                });
                own[0] += by_own[0];
                own[1] += by_own[1];
            }
        }
        for (edge, to_reader) in of_v.iter().zip(to_readers) {
            let reader = at.start(model, edge.to);
            let loss = shape.dependence.of(&start, &reader, edge.lag, shape.detail, &mut drawn);
            slopes.dependence += loss.value;
            let span = paid * edge.communication;
            slopes.communication += span * (reader.mu + edge.shift as f64 - start.mu);
            for by in 0..2 {
                own[by] += weights.dependence * loss.by_from[by];
                to_reader[by] += weights.dependence * loss.by_to[by];
            }
            own[0] -= weights.objective * span;
            to_reader[0] += weights.objective * span;
        }
        slopes.own.push(own);
    }
    slopes
}
