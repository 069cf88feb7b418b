//! What a schedule uses, step by step, and the price of each step.

use crate::legal::Table;
use crate::model::Model;
use crate::polish::live::LiveLevel;
use twill_graph::DataflowObjective;
use twill_graph::SplitMix64;

/// Least temperature: below, it is no smoother than the maximum.
const COLDEST: f64 = 0.3;

/// Usage of a resource, or live storage, with its smooth maximum `τ · log Σ exp(usage/τ)`.
struct Track {
    weight: f64,
    usage: Vec<i64>,
    peak: i64,
    temperature: f64,
    /// `exp((usage − peak)/τ)`, and their sum.
    shares: Vec<f64>,
    sum: f64,
    /// By step, the prices of all steps before.
    before: Vec<f64>,
}

impl Track {
    fn new(weight: f64, usage: Vec<i64>) -> Track {
        let (shares, before) = (vec![0.0; usage.len()], vec![0.0; usage.len() + 1]);
        Track { weight, usage, peak: 0, temperature: 1.0, shares, sum: 0.0, before }
    }

    fn share(&self, usage: i64) -> f64 {
        ((usage - self.peak) as f64 / self.temperature).exp()
    }

    fn price(&mut self, temperature: f64) {
        self.peak = self.usage.iter().copied().max().unwrap_or(0);
        self.temperature = (temperature * self.peak as f64).max(COLDEST);
        for step in 0..self.usage.len() {
            self.shares[step] = self.share(self.usage[step]);
        }
        self.sum = self.shares.iter().sum();
        let (mut sum, unit) = (0.0, self.weight / self.sum);
        for (step, share) in self.shares.iter().enumerate() {
            sum += share * unit;
            self.before[step + 1] = sum;
        }
    }

    /// The price of steps `from .. to`; negative the other way round.
    fn between(&self, from: i64, to: i64) -> f64 {
        self.before[to as usize] - self.before[from as usize]
    }
}

/// A change of usage from a step on.
type Event = (u32, u32, i64);

pub(super) struct Landscape<'m> {
    pub model: &'m Model<'m>,
    pub steps: Vec<i64>,
    /// Of resources, or the one of storage.
    tracks: Vec<Track>,
    pub is_storage: bool,
    /// By operation, what communication costs more when it starts a step later.
    later: Vec<f64>,
    communication: f64,
    /// Scratch: what changes, and steps with their new usage and share.
    events: Vec<Event>,
    changed: Vec<(u32, u32, i64, f64)>,
    values: Vec<u32>,
}

impl<'m> Landscape<'m> {
    pub fn new(model: &'m Model<'m>, steps: Vec<i64>) -> Self {
        let is_storage = model.objective() == DataflowObjective::Storage;
        let (mut tracks, mut rate) = (Vec::new(), 0.0);
        match model.objective() {
            DataflowObjective::Resources { peak, communication } => {
                let table = Table::of(model, &steps);
                let usage = (0..model.limits.len()).map(|resource| table.usage(resource).to_vec());
                tracks.extend(usage.map(|usage| Track::new(peak as f64, usage)));
                rate = communication as f64;
            }
            _ => tracks.push(Track::new(1.0, LiveLevel::new(model, &steps, i64::MAX).level.usage)),
        }
        let (mut later, mut communication) = (vec![0.0; model.len()], 0.0);
        for v in (0..model.len()).filter(|_| rate > 0.0) {
            for edge in &model.edges()[model.edges_of(v)] {
                later[v] -= rate * edge.communication;
                later[edge.to] += rate * edge.communication;
                communication += rate * edge.communication * (steps[edge.to] - steps[v]) as f64;
            }
        }
        let (events, changed, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { model, steps, tracks, is_storage, later, communication, events, changed, values }
    }

    /// Prices steps by smooth maxima; the temperature is in parts of the peaks.
    pub fn price(&mut self, temperature: f64) {
        self.tracks.iter_mut().for_each(|track| track.price(temperature));
    }

    /// The objective.
    pub fn value(&self) -> f64 {
        let peaks =
            self.tracks.iter().map(|track| track.weight * track.usage.iter().copied().max().unwrap_or(0) as f64);
        peaks.sum::<f64>() + self.communication
    }

    /// A step to look at: mostly by price, so that peaks are looked at most.
    pub fn step(&self, random: &mut SplitMix64) -> i64 {
        // Without resources, or without steps, there is nothing to choose from.
        let Some(track) = self.tracks.get(random.index(self.tracks.len().max(1))).filter(|t| !t.usage.is_empty())
        else {
            return 0;
        };
        let all = track.before[track.usage.len()];
        if random.index(4) == 0 || all <= 0.0 {
            return random.index(track.usage.len()) as i64;
        }
        let at = random.unit() * all;
        track.before.partition_point(|&before| before <= at) as i64 - 1
    }

    /// What it costs more to start `v` at `high` than at `low`, but for the values that it reads.
    pub fn start_cost(&self, v: usize, low: i64, high: i64) -> f64 {
        if self.is_storage {
            return -self.value_cost(v, low, high);
        }
        let model = self.model;
        let used = model.uses[v].iter().map(|used| {
            let track = &self.tracks[used.resource];
            let first = |start: i64| start + used.offset;
            let at = |start: i64| track.between(first(start), first(start) + used.steps);
            used.amount as f64 * (at(high) - at(low))
        });
        used.sum::<f64>() + self.later[v] * (high - low) as f64
    }

    /// What it costs more to keep the value of `v` up to `high` than up to `low`.
    pub fn value_cost(&self, v: usize, low: i64, high: i64) -> f64 {
        match self.model.edges_of(v).is_empty() {
            true => 0.0,
            false => self.model.storage[v] as f64 * self.tracks[0].between(low, high),
        }
    }

    /// The usage of `v` as it stands, `sign` times.
    fn note_use(&mut self, v: usize, sign: i64) {
        for used in &self.model.uses[v] {
            let first = self.steps[v] + used.offset;
            self.events.push((used.resource as u32, first as u32, sign * used.amount));
            self.events.push((used.resource as u32, (first + used.steps) as u32, -sign * used.amount));
        }
    }

    /// The life of the value of `v` as it stands, `sign` times.
    fn note_life(&mut self, v: usize, sign: i64) {
        let readers = self.model.edges()[self.model.edges_of(v)].iter().map(|edge| self.steps[edge.to]);
        let start = self.steps[v];
        let end = readers.max().unwrap_or(start).max(start);
        if end > start {
            let amount = sign * self.model.storage[v];
            self.events.push((0, start as u32, amount));
            self.events.push((0, end as u32, -amount));
        }
    }

    /// Everything that `part` takes part in, `sign` times.
    fn note(&mut self, part: &[u32], sign: i64) {
        if self.is_storage {
            let values = std::mem::take(&mut self.values);
            values.iter().for_each(|&v| self.note_life(v as usize, sign));
            self.values = values;
        } else {
            part.iter().for_each(|&v| self.note_use(v as usize, sign));
        }
    }

    fn shift(&mut self, part: &[u32], by: i64) {
        part.iter().for_each(|&v| self.steps[v as usize] += by);
    }

    /// Moves `part` by `by` steps, which is legal, if that is better by the smooth maxima; whether it is.
    pub fn offer(&mut self, part: &[u32], by: i64) -> bool {
        let model = self.model;
        self.values.clear();
        if self.is_storage {
            for &v in part {
                self.values.push(v);
                self.values.extend(model.precedence.predecessors(v as usize).iter().map(|p| p.op() as u32));
            }
            self.values.sort_unstable();
            self.values.dedup();
            self.values.retain(|&v| model.storage[v as usize] > 0);
        }
        self.events.clear();
        self.note(part, -1);
        self.shift(part, by);
        self.note(part, 1);
        self.events.sort_unstable();
        let communication: f64 = part.iter().map(|&v| self.later[v as usize] * by as f64).sum();
        let worse = self.peaks_after() + communication;
        if worse >= 0.0 {
            self.shift(part, -by);
            return false;
        }
        for &(track, step, usage, share) in &self.changed {
            let track = &mut self.tracks[track as usize];
            track.sum += share - track.shares[step as usize];
            (track.usage[step as usize], track.shares[step as usize]) = (usage, share);
        }
        self.communication += communication;
        true
    }

    /// By how much the events raise the smooth maxima; notes the steps that change.
    fn peaks_after(&mut self) -> f64 {
        self.changed.clear();
        let mut worse = 0.0;
        for of_track in self.events.chunk_by(|a, b| a.0 == b.0) {
            let index = of_track[0].0;
            let track = &self.tracks[index as usize];
            let (mut amount, mut grown) = (0, 0.0);
            for (k, &(_, step, change)) in of_track.iter().enumerate() {
                amount += change;
                let Some(&(_, next, _)) = of_track.get(k + 1).filter(|_| amount != 0) else { continue };
                for at in step..next {
                    let usage = track.usage[at as usize] + amount;
                    let share = track.share(usage);
                    grown += share - track.shares[at as usize];
                    self.changed.push((index, at, usage, share));
                }
            }
            // What is left of a sum of shares is never nothing.
            let after = (track.sum + grown).max(f64::MIN_POSITIVE);
            worse += track.weight * track.temperature * (after / track.sum).ln();
        }
        worse
    }
}
