//! The relaxation: every start a random variable `N(μ, σ²)`, every quantity its expectation, everything with a gradient.
//!
//! A gradient takes constant time an operation and a dependence, and time in proportion to the steps once for each
//! resource: distributions are laid on [grids](pyramid) as [mixtures of two kernels](spread).

mod dependence;
mod last_read;
#[cfg(test)]
mod normal;
mod profile;
mod pyramid;
mod spread;
#[cfg(test)]
mod tests;

pub use dependence::DependenceLoss;

use crate::model::Model;
use last_read::{LastRead, last_read};
use profile::{overflow, smooth_maximum};
use pyramid::Layout;
use rayon::prelude::*;
use spread::Spread;
use twill_graph::DataflowObjective;

/// Operations that are summed up one after another before sums are added in order: the same on any number of threads.
const CHUNK: usize = 4096;

/// Most chunks whose sums are kept at a time.
const MOST_CHUNKS: usize = 16;

/// `μ` and `σ` of an operation.
pub(crate) type Gaussian = [f64; 2];

/// The data that is fixed during gradient descent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
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

/// What adds up over steps: of a resource, or storage.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// Uses of one step are laid where they are, all else where it begins and where it ends.
    ends: bool,
    /// Where its grids begin.
    first: usize,
}

/// The losses of one problem, with room for their gradients.
pub(crate) struct Relaxation<'m> {
    model: &'m Model<'m>,
    layout: Layout,
    tracks: Vec<Track>,
    /// By resource, the tracks of its uses of one step and of longer ones.
    of_resource: Vec<[Option<usize>; 2]>,
    storage: Option<usize>,
    /// Slots that means are taken over.
    slots: f64,
    /// By operation, what communication grows by when it starts a step later; empty where it costs nothing.
    later: Vec<f64>,
    /// `Σ communication · δ·II`.
    apart: f64,
    /// Grids of all tracks, then of every chunk beyond the first.
    grids: Vec<f64>,
    /// By operation whose value is stored: its last read; the derivative by mean and variance.
    reads: Vec<LastRead>,
    by_read: Vec<[f64; 2]>,
    /// By edge: how likely its reader is the last.
    shares: Vec<f32>,
    /// By operation: the derivative by `μ` and `σ`.
    pub gradient: Vec<[f64; 2]>,
}

impl<'m> Relaxation<'m> {
    pub fn new(model: &'m Model<'m>) -> Self {
        let layout = Layout::new(model.length);
        let (mut tracks, mut of_resource) = (Vec::new(), vec![[None; 2]; model.limits.len()]);
        let track = |ends, tracks: &mut Vec<Track>| {
            tracks.push(Track { ends, first: tracks.len() * layout.len() });
            Some(tracks.len() - 1)
        };
        let counted: Vec<bool> = (0..model.limits.len()).map(|resource| counts(model, resource)).collect();
        for used in model.uses.all().iter().filter(|used| counted[used.resource]) {
            let long = usize::from(used.steps > 1);
            if of_resource[used.resource][long].is_none() {
                of_resource[used.resource][long] = track(long == 1, &mut tracks);
            }
        }
        let stored = model.objective() == DataflowObjective::Storage;
        let storage = if stored { track(true, &mut tracks) } else { None };
        let finish = model.earliest.iter().zip(&model.latencies).map(|(s, l)| s + l).max().unwrap_or(1).max(1);
        let (mut later, mut apart) = (Vec::new(), 0.0);
        if let DataflowObjective::Resources { communication: 1.., .. } = model.objective() {
            later = vec![0.0; model.len()];
            for v in 0..model.len() {
                for edge in &model.edges()[model.edges_of(v)] {
                    later[v] -= edge.communication;
                    later[edge.to] += edge.communication;
                    apart += edge.communication * edge.shift as f64;
                }
            }
        }
        let of = |wanted: bool, count: usize| if wanted { count } else { 0 };
        Self {
            slots: if model.interval.is_some() { model.slots } else { model.slots.min(finish as usize) } as f64,
            layout,
            tracks,
            of_resource,
            storage,
            later,
            apart,
            grids: Vec::new(),
            reads: vec![LastRead::default(); of(stored, model.len())],
            by_read: vec![[0.0; 2]; of(stored, model.len())],
            shares: vec![0.0; of(stored, model.edges().len())],
            gradient: vec![[0.0; 2]; model.len()],
            model,
        }
    }

    /// Evaluates losses, and the gradient of their sum, weighted by `weights`.
    pub fn evaluate(&mut self, at: &[Gaussian], shape: Shape, weights: Losses) -> Losses {
        let mut losses = Losses::default();
        self.find_last_reads(at);
        self.lay(at);
        self.pull(shape, weights, &mut losses);
        let finish = self.finish(at, weights, &mut losses);
        self.trace(at, weights, finish.as_deref());
        losses.dependence = self.follow_edges(at, shape, weights);
        losses.objective += self.communication(at);
        losses
    }

    fn find_last_reads(&mut self, at: &[Gaussian]) {
        if self.storage.is_none() {
            return;
        }
        let model = self.model;
        let mut shares = self.shares.as_mut_slice();
        let chunks = self.reads.chunks_mut(CHUNK).enumerate().map(|(k, reads)| {
            let first = k * CHUNK;
            let edges = model.edges_of(first).start..model.edges_of(first + reads.len() - 1).end;
            let (own, rest) = std::mem::take(&mut shares).split_at_mut(edges.len());
            shares = rest;
            (first, reads, own)
        });
        let chunks: Vec<_> = chunks.collect();
        chunks.into_par_iter().for_each(|(first, reads, mut shares)| {
            for (k, read) in reads.iter_mut().enumerate() {
                let edges = &model.edges()[model.edges_of(first + k)];
                let (own, rest) = std::mem::take(&mut shares).split_at_mut(edges.len());
                shares = rest;
                if edges.is_empty() {
                    continue;
                }
                let starts = edges.iter().map(|edge| [at[edge.to][0] + edge.shift as f64, at[edge.to][1]]);
                *read = last_read(starts, own);
            }
        });
    }

    /// Lays all distributions on grids.
    fn lay(&mut self, at: &[Gaussian]) {
        let size = self.tracks.len() * self.layout.len();
        if size == 0 {
            return;
        }
        let count = self.model.len();
        let chunks = count.div_ceil(CHUNK).min(MOST_CHUNKS).min((8 * count / size).max(1));
        let mut grids = std::mem::take(&mut self.grids);
        grids.resize(size * chunks, 0.0);
        let (this, each) = (&*self, count.div_ceil(chunks));
        grids.par_chunks_mut(size).enumerate().for_each(|(k, grids)| {
            grids.fill(0.0);
            (k * each..count.min((k + 1) * each)).for_each(|v| this.lay_one(at, v, grids));
        });
        let (total, others) = grids.split_at_mut(size);
        for other in others.chunks(size) {
            total.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
        }
        grids.truncate(size);
        self.grids = grids;
    }

    fn lay_one(&self, at: &[Gaussian], v: usize, grids: &mut [f64]) {
        let ([mu, sigma], levels) = (at[v], self.layout.levels());
        let spread = Spread::new(sigma * sigma, levels);
        for used in &self.model.uses[v] {
            let Some(track) = self.of_resource[used.resource][usize::from(used.steps > 1)] else { continue };
            let (grids, amount) = (&mut grids[self.tracks[track].first..], used.amount as f64);
            self.layout.add(grids, spread, mu + used.offset as f64, amount);
            if used.steps > 1 {
                self.layout.add(grids, spread, mu + (used.offset + used.steps) as f64, -amount);
            }
        }
        if let Some(track) = self.storage.filter(|_| self.is_stored(v)) {
            let (grids, amount) = (&mut grids[self.tracks[track].first..], self.model.storage[v] as f64);
            let read = self.reads[v];
            self.layout.add(grids, spread, mu, amount);
            self.layout.add(grids, Spread::new(read.variance, levels), read.mean.max(mu), -amount);
        }
    }

    fn is_stored(&self, v: usize) -> bool {
        self.model.storage[v] > 0 && !self.model.edges_of(v).is_empty()
    }

    /// Evaluates what depends on profiles, and turns grids into those of derivatives.
    fn pull(&mut self, shape: Shape, weights: Losses, losses: &mut Losses) {
        let resources: Vec<Vec<usize>> = (0..self.of_resource.len())
            .map(|resource| self.of_resource[resource].iter().flatten().copied().collect())
            .collect();
        for (resource, tracks) in resources.iter().enumerate().filter(|(_, tracks)| !tracks.is_empty()) {
            let profile = self.profile(tracks);
            let mut by_profile = vec![0.0; profile.len()];
            if let DataflowObjective::Resources { peak, .. } = self.model.objective() {
                let (most, by) = smooth_maximum(&profile, self.temperature(shape, &profile));
                losses.objective += peak as f64 * most;
                let weight = weights.objective * peak as f64;
                by_profile.iter_mut().zip(by).for_each(|(sum, by)| *sum += weight * by);
            }
            if let Some(limit) = self.model.limits[resource] {
                let (over, by) = overflow(&profile, limit as f64);
                losses.limits += over;
                by_profile.iter_mut().zip(by).for_each(|(sum, by)| *sum += weights.limits * by);
            }
            self.unfold(tracks, &by_profile);
        }
        if let Some(track) = self.storage {
            let profile = self.profile(&[track]);
            let (most, mut by) = smooth_maximum(&profile, self.temperature(shape, &profile));
            losses.objective += most;
            by.iter_mut().for_each(|by| *by *= weights.objective);
            self.unfold(&[track], &by);
        }
    }

    /// `τ` of a profile. It follows the mean; that the mean depends on what is optimised is left out of the gradient, and
    /// for usage it does not.
    fn temperature(&self, shape: Shape, profile: &[f64]) -> f64 {
        shape.temperature * (profile.iter().sum::<f64>() / self.slots).max(1e-3)
    }

    /// The sum of tracks, by step or by slot of the interval.
    fn profile(&mut self, tracks: &[usize]) -> Vec<f64> {
        let (length, slots) = (self.model.length, self.model.slots);
        let (mut folded, mut steps) = (vec![0.0; slots], vec![0.0; length]);
        for &track in tracks {
            let Track { ends, first } = self.tracks[track];
            self.layout.profile(&mut self.grids[first..first + self.layout.len()], &mut steps);
            let (mut sum, mut slot) = (0.0, 0);
            for &step in &steps {
                sum = if ends { sum + step } else { step };
                folded[slot] += sum;
                slot = if slot + 1 == slots { 0 } else { slot + 1 };
            }
        }
        folded
    }

    /// The adjoint of [`profile`](Self::profile).
    fn unfold(&mut self, tracks: &[usize], by_profile: &[f64]) {
        let (length, slots) = (self.model.length, self.model.slots);
        for &track in tracks {
            let Track { ends, first } = self.tracks[track];
            let mut steps: Vec<f64> = (0..length).map(|step| by_profile[step % slots]).collect();
            if ends {
                let mut sum = 0.0;
                for step in steps.iter_mut().rev() {
                    sum += *step;
                    *step = sum;
                }
            }
            self.layout.adjoint(&steps, &mut self.grids[first..first + self.layout.len()]);
        }
    }

    /// Where latency is the objective: the latest finish, and its derivative by `μ`.
    fn finish(&self, at: &[Gaussian], weights: Losses, losses: &mut Losses) -> Option<Vec<f64>> {
        (self.model.objective() == DataflowObjective::Latency).then(|| {
            let finishes: Vec<f64> =
                at.iter().zip(&self.model.latencies).map(|(at, &lat)| at[0] + lat as f64).collect();
            let (most, mut by) = smooth_maximum(&finishes, 1.0);
            losses.objective += most;
            by.iter_mut().for_each(|by| *by *= weights.objective);
            by
        })
    }

    /// The part of the gradient that comes through profiles.
    fn trace(&mut self, at: &[Gaussian], weights: Losses, finish: Option<&[f64]>) {
        let (mut gradient, mut by_read) = (std::mem::take(&mut self.gradient), std::mem::take(&mut self.by_read));
        let this = &*self;
        let one = |v: usize, by_read: &mut [f64; 2]| {
            let ([mu, sigma], levels) = (at[v], this.layout.levels());
            let spread = Spread::new(sigma * sigma, levels);
            let (mut by_mu, mut by_variance) = (finish.map_or(0.0, |finish| finish[v]), 0.0);
            let mut add = |slopes: [f64; 2], amount: f64| {
                by_mu += amount * slopes[0];
                by_variance += amount * slopes[1];
            };
            for used in &this.model.uses[v] {
                let Some(track) = this.of_resource[used.resource][usize::from(used.steps > 1)] else { continue };
                let (grids, amount) = (&this.grids[this.tracks[track].first..], used.amount as f64);
                add(this.layout.slopes(grids, spread, mu + used.offset as f64), amount);
                if used.steps > 1 {
                    add(this.layout.slopes(grids, spread, mu + (used.offset + used.steps) as f64), -amount);
                }
            }
            *by_read = [0.0; 2];
            if let Some(track) = this.storage.filter(|_| this.is_stored(v)) {
                let (grids, amount) = (&this.grids[this.tracks[track].first..], this.model.storage[v] as f64);
                let read = this.reads[v];
                add(this.layout.slopes(grids, spread, mu), amount);
                let slopes = this.layout.slopes(grids, Spread::new(read.variance, levels), read.mean.max(mu));
                if read.mean < mu {
                    // Read before it is there, for now: it ends where it begins.
                    add([slopes[0], 0.0], -amount);
                } else {
                    *by_read = [-amount * slopes[0], -amount * slopes[1]];
                }
            }
            if let Some(later) = this.later.get(v) {
                by_mu += weights.objective * this.paid() * later;
            }
            [by_mu, by_variance * 2.0 * sigma]
        };
        if by_read.is_empty() {
            gradient.par_iter_mut().with_min_len(CHUNK).enumerate().for_each(|(v, by)| *by = one(v, &mut [0.0; 2]));
        } else {
            let both = gradient.par_iter_mut().zip(&mut by_read).with_min_len(CHUNK).enumerate();
            both.for_each(|(v, (by, by_read))| *by = one(v, by_read));
        }
        (self.gradient, self.by_read) = (gradient, by_read);
    }

    fn paid(&self) -> f64 {
        match self.model.objective() {
            DataflowObjective::Resources { communication, .. } => communication as f64,
            _ => 0.0,
        }
    }

    /// Communication, weighted as in the objective.
    pub(crate) fn communication(&self, at: &[Gaussian]) -> f64 {
        if self.later.is_empty() {
            return 0.0;
        }
        let spans: f64 = self.later.iter().zip(at).map(|(later, at)| later * at[0]).sum();
        self.paid() * (spans + self.apart)
    }

    /// The part of the gradient that comes along dependences, to every operation from its neighbours, so that threads write
    /// nothing of each other's; the loss of broken ones.
    fn follow_edges(&mut self, at: &[Gaussian], shape: Shape, weights: Losses) -> f64 {
        let mut gradient = std::mem::take(&mut self.gradient);
        let this = &*self;
        let losses: Vec<f64> = gradient
            .par_chunks_mut(CHUNK)
            .enumerate()
            .map(|(k, gradient)| {
                let mut broken = 0.0;
                for (v, by) in gradient.iter_mut().enumerate() {
                    broken += this.follow_one(at, shape, weights.dependence, k * CHUNK + v, by);
                }
                broken
            })
            .collect();
        self.gradient = gradient;
        losses.iter().sum()
    }

    fn follow_one(&self, at: &[Gaussian], shape: Shape, weight: f64, v: usize, by: &mut [f64; 2]) -> f64 {
        let (model, [mu, sigma]) = (self.model, at[v]);
        let variance = sigma * sigma;
        let (mut by_short, mut by_variance, mut broken) = (0.0, 0.0, 0.0);
        for s in model.precedence.successors(v) {
            let [to, wide] = at[s.op()];
            let loss = shape.dependence.of(mu + s.lag as f64 - 0.5 - to, variance + wide * wide);
            broken += loss.value;
            by_short += loss.by_short;
            by_variance += loss.by_variance;
        }
        let mut read = [0.0; 2];
        for (p, &edge) in model.precedence.predecessors(v).iter().zip(model.edges_into(v)) {
            let [from, wide] = at[p.op()];
            let loss = shape.dependence.of(from + p.lag as f64 - 0.5 - mu, variance + wide * wide);
            by_short -= loss.by_short;
            by_variance += loss.by_variance;
            if let Some(&share) = self.shares.get(edge as usize) {
                let by_read = self.by_read[p.op()];
                read[0] += f64::from(share) * by_read[0];
                read[1] += f64::from(share) * by_read[1];
            }
        }
        by[0] += weight * by_short + read[0];
        by[1] += 2.0 * sigma * (weight * by_variance + read[1]);
        broken
    }
}

/// How profiles are laid out, for who computes them elsewhere.
#[cfg(feature = "cuda")]
pub(crate) struct Laid {
    /// By level of the grids of a track, where its cells begin, and where the last one's end.
    pub first_cells: Vec<u32>,
    pub mean_slots: f64,
    /// By track.
    pub ends: Vec<bool>,
    /// By resource, then of storage.
    pub tracks_of: Vec<twill_gaus_cuda::Profile>,
    pub has_storage: bool,
}

#[cfg(feature = "cuda")]
impl Relaxation<'_> {
    pub(crate) fn laid(&self) -> Laid {
        let peak = match self.model.objective() {
            DataflowObjective::Resources { peak, .. } => peak as f64,
            _ => 0.0,
        };
        let of = |(tracks, limit): (&[Option<usize>; 2], &Option<i64>)| twill_gaus_cuda::Profile {
            tracks: *tracks,
            limit: limit.map(|limit| limit as f64),
            peak,
        };
        let storage =
            self.storage.map(|track| twill_gaus_cuda::Profile { tracks: [Some(track), None], limit: None, peak: 1.0 });
        Laid {
            first_cells: self.layout.first_cells(),
            mean_slots: self.slots,
            ends: self.tracks.iter().map(|track| track.ends).collect(),
            tracks_of: self.of_resource.iter().zip(&self.model.limits).map(of).chain(storage).collect(),
            has_storage: self.storage.is_some(),
        }
    }

    /// What the objective grows by when an operation starts a step later, by communication.
    pub(crate) fn later(&self, v: usize) -> f64 {
        self.later.get(v).map_or(0.0, |later| self.paid() * later)
    }
}

/// Returns whether usage of a resource has a part in any loss.
fn counts(model: &Model<'_>, resource: usize) -> bool {
    matches!(model.objective(), DataflowObjective::Resources { .. }) || model.limits[resource].is_some()
}
