//! Quantities counted step by step: usage of resources, and live storage.

use crate::bounds::{LowerBound, Term};
use crate::model::Model;
use twill_graph::{DataflowObjective, UnitId};

/// The quantity that a track counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Usage of a resource.
    Resource(usize),
    /// Values that are live.
    Storage,
}

/// Something whose peak costs, or is limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub counted: Counted,
    /// Cost of each unit of its peak.
    pub weight: i64,
    pub limit: Option<i64>,
    /// No schedule has a lower peak.
    pub least: i64,
}

/// The parts of the objective: `Σ weight · peak + alpha · communication`, or the latency.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub tracks: Vec<Track>,
    pub alpha: i64,
    pub latency: bool,
    /// By operation, what communication grows by when it starts a step later.
    pub later: Vec<i64>,
    /// No schedule has a lower objective.
    pub least: i128,
}

/// Largest objective that sums of 64 bits are trusted with.
const LARGEST: i128 = 1 << 60;

impl Costs {
    /// `None` where numbers are too large.
    pub fn new(model: &Model<'_>, bound: &LowerBound) -> Option<Costs> {
        let graph = &model.problem.graph;
        let least_of = |term| bound.terms.iter().find(|t| t.term == term).map_or(0, |t| t.least.max(0) as i64);
        let (weight, alpha) = match model.objective() {
            DataflowObjective::Resources { peak, communication } => (peak, communication),
            DataflowObjective::Storage | DataflowObjective::Latency => (0, 0),
        };
        let amounts: i128 = model.uses.all().iter().map(|used| i128::from(used.amount)).sum();
        let stored: i128 = model.storage.iter().map(|&storage| i128::from(storage)).sum();
        let edges = model.edges();
        let communication: i128 = edges.iter().map(|edge| edge.communication as i128).sum();
        let laps = model.interval.map_or(1, |ii| model.length as i128 / i128::from(ii.max(1)) + 1);
        let largest = (i128::from(weight) * amounts + stored) * laps;
        let largest =
            largest.saturating_add((i128::from(alpha) * communication).saturating_mul(2 * model.length as i128));
        if largest > LARGEST {
            return None;
        }
        let mut tracks = Vec::new();
        for (resource, &limit) in model.limits.iter().enumerate() {
            if weight > 0 || limit.is_some() {
                let least = least_of(Term::Peak(UnitId::new(resource)));
                tracks.push(Track { counted: Counted::Resource(resource), weight: weight as i64, limit, least });
            }
        }
        if model.objective() == DataflowObjective::Storage {
            tracks.push(Track { counted: Counted::Storage, weight: 1, limit: None, least: least_of(Term::Storage) });
        }
        let mut later = vec![0_i64; graph.operations().len()];
        if alpha > 0 {
            for v in 0..later.len() {
                for edge in &edges[model.edges_of(v)] {
                    later[v] -= edge.communication as i64;
                    later[edge.to] += edge.communication as i64;
                }
            }
        }
        let latency = model.objective() == DataflowObjective::Latency;
        Some(Costs { tracks, alpha: alpha as i64, latency, later, least: bound.value })
    }
}

/// The steps that a value is live for: from its producer's start to its last read.
pub(super) fn life(model: &Model<'_>, steps: &[i64], v: usize) -> (i64, i64) {
    let reads = model.edges()[model.edges_of(v)].iter().map(|edge| steps[edge.to] + edge.shift);
    (steps[v], reads.max().unwrap_or(steps[v]).max(steps[v]))
}

/// Calls back with (first slot, slots, amount) of what is there for `length` steps from `start`: laps of the whole
/// interval first.
fn parts(model: &Model<'_>, start: i64, length: i64, amount: i64, mut part: impl FnMut(usize, usize, i64)) {
    let Some(ii) = model.interval else {
        part(start as usize, length as usize, amount);
        return;
    };
    if length >= ii {
        part(0, ii as usize, amount * (length / ii));
    }
    let (from, rest) = (start.rem_euclid(ii), length % ii);
    let first = rest.min(ii - from);
    part(from as usize, first as usize, amount);
    part(0, (rest - first) as usize, amount);
}

/// An operation's own contribution to a track: (start, length, amount).
pub(super) fn spans<'m>(
    model: &'m Model<'_>,
    counted: Counted,
    steps: &'m [i64],
    v: usize,
) -> impl Iterator<Item = (i64, i64, i64)> + 'm {
    let uses = model.uses[v].iter().filter(move |used| counted == Counted::Resource(used.resource));
    let uses = uses.map(move |used| (steps[v] + used.offset, used.steps, used.amount));
    let stored = (counted == Counted::Storage && model.storage[v] > 0).then(|| {
        let (from, to) = life(model, steps, v);
        (from, to - from, model.storage[v])
    });
    uses.chain(stored)
}

/// Adds `sign` times a contribution to the usage of a track.
pub(super) fn add(model: &Model<'_>, usage: &mut [i64], (start, length, amount): (i64, i64, i64), sign: i64) {
    parts(model, start, length, amount, |slot, slots, amount| {
        usage[slot..slot + slots].iter_mut().for_each(|usage| *usage += sign * amount);
    });
}

/// Usage of a track, slot by slot.
pub(super) fn usage(model: &Model<'_>, counted: Counted, steps: &[i64]) -> Vec<i64> {
    let mut change = vec![0_i64; model.slots + 1];
    for v in 0..model.len() {
        for (start, length, amount) in spans(model, counted, steps, v) {
            parts(model, start, length, amount, |slot, slots, amount| {
                change[slot] += amount;
                change[slot + slots] -= amount;
            });
        }
    }
    change.pop();
    let mut now = 0;
    for slot in &mut change {
        now += *slot;
        *slot = now;
    }
    change
}
