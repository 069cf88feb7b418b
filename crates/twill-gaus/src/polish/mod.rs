//! Local improvement of legal schedules: simulated annealing towards a peak just below the best one known.
//!
//! A peak alone tells nothing about moves elsewhere, so what is made small is usage above a target, over all slots; once
//! there is none, the target is lowered. The moves shift one operation and push on who is in its way. This is no part of
//! the paper: an option, so that what the gradient is worth can be told apart.

mod live;
mod state;

use crate::control::Clock;
use crate::model::Model;
use crate::random::Random;
use state::State;
use std::time::Instant;
use twill_graph::DataflowObjective;

/// How to anneal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polish {
    /// Moves tried, in multiples of the number of operations. 0 for none. Default 200 (own).
    pub sweeps: u32,
    /// First temperature, in means of the moves that make the energy worse. Default 0.5 (own).
    pub hot: f64,
    /// Last temperature, in the same. Default 0.02 (own).
    pub cold: f64,
    /// Most operations that one move may push on. Default 32 (own).
    pub push: usize,
}

impl Default for Polish {
    fn default() -> Self {
        Self { sweeps: 200, hot: 0.5, cold: 0.02, push: 32 }
    }
}

/// What to aim at, by resource, and for storage.
struct Aim {
    weights: Vec<f64>,
    storage: f64,
    communication: f64,
}

struct Annealer<'m> {
    state: State<'m>,
    aim: Aim,
    best: Vec<i64>,
    best_value: Option<i128>,
    /// Operations that differ from `best`, perhaps.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    random: Random,
    how: Polish,
}

/// Improves `steps`, which keep dependences and windows; never for the worse. Limits may be exceeded at first.
/// The value of what is returned comes with it, `None` while a limit is exceeded.
pub(crate) fn polish(
    model: &Model<'_>,
    steps: Vec<i64>,
    how: Polish,
    seed: u64,
    clock: &Clock<'_>,
) -> (Vec<i64>, Option<i128>) {
    let state = State::new(model, steps.clone());
    let best_value = state.value();
    if how.sweeps == 0 || model.objective() == DataflowObjective::Latency && best_value.is_some() {
        return (steps, best_value);
    }
    let aim = Aim::new(model);
    let is_dirty = vec![false; model.len()];
    let random = Random::new(seed);
    let mut annealer = Annealer { state, aim, best: steps, best_value, dirty: Vec::new(), is_dirty, random, how };
    annealer.lower_targets();
    annealer.run(clock);
    (annealer.best, annealer.best_value)
}

impl Aim {
    fn new(model: &Model<'_>) -> Aim {
        let resources = model.limits.len();
        match model.objective() {
            DataflowObjective::Resources { peak, communication } => {
                Aim { weights: vec![peak as f64; resources], storage: 0.0, communication: communication as f64 }
            }
            DataflowObjective::Storage | DataflowObjective::Latency => {
                // In units of what one operation takes, so that neither drowns the other.
                let mean = |sum: i64, count: usize| sum as f64 / count.max(1) as f64;
                let amounts = |resource: usize| {
                    let uses = || model.uses.iter().flatten().filter(move |used| used.resource == resource);
                    mean(uses().map(|used| used.amount).sum(), uses().count()).max(1.0)
                };
                let stored = model.storage.iter().filter(|&&storage| storage > 0);
                Aim {
                    weights: (0..resources).map(|resource| 4.0 / amounts(resource)).collect(),
                    storage: 1.0 / mean(stored.clone().sum(), stored.count()).max(1.0),
                    communication: 0.0,
                }
            }
        }
    }
}

impl Annealer<'_> {
    fn energy(&self) -> f64 {
        let state = &self.state;
        let levels = state.levels.iter().zip(&self.aim.weights).map(|(level, weight)| level.above as f64 * weight);
        let live = state.live.as_ref().map_or(0.0, |live| live.level.above as f64 * self.aim.storage);
        levels.sum::<f64>() + live + self.aim.communication * state.communication as f64
    }

    fn is_above(&self) -> bool {
        self.state.levels.iter().any(|level| level.above > 0)
            || self.state.live.as_ref().is_some_and(|live| live.level.above > 0)
    }

    /// Aims a little below the best there is.
    fn lower_targets(&mut self) {
        let State { model, levels, live, .. } = &mut self.state;
        if let DataflowObjective::Resources { communication, .. } = model.objective() {
            let chosen = self.random.below(levels.len().max(1));
            for (resource, level) in levels.iter_mut().enumerate() {
                let peak = level.peak();
                let lower = peak - (peak / 256).max(1);
                let target = if communication > 0 || resource == chosen { lower } else { peak };
                level.aim(target.min(model.limits[resource].unwrap_or(i64::MAX)).max(0));
            }
        }
        if let Some(live) = live {
            let peak = live.level.peak();
            live.level.aim((peak - (peak / 256).max(1)).max(0));
        }
    }

    fn run(&mut self, clock: &Clock<'_>) {
        let count = self.state.model.len();
        let moves = count as u64 * u64::from(self.how.sweeps);
        let unit = self.typical();
        let (hot, cold) = (self.how.hot * unit, self.how.cold * unit);
        let since = Instant::now();
        let mut temperature = hot;
        let mut energy = self.energy();
        for tried in 0..moves {
            if tried % 1024 == 0 {
                if clock.is_over() {
                    break;
                }
                let done = (tried as f64 / moves as f64).max(clock.gone(since));
                temperature = hot * (cold / hot).powf(done);
            }
            if tried % (2 * count as u64) == 0 && self.aim.communication > 0.0 {
                self.retarget();
                energy = self.energy();
            }
            let Some(next) = self.propose() else { continue };
            let worse = next - energy;
            if worse <= 0.0 || self.random.unit() < (-worse / temperature).exp() {
                energy = next;
                self.accept();
                if self.aim.communication == 0.0 && !self.is_above() {
                    self.record();
                    self.lower_targets();
                    energy = self.energy();
                }
            } else {
                self.state.undo();
            }
        }
        self.record();
    }

    /// Where peaks are traded for communication, targets follow what has been worth it: further down while the objective
    /// falls or there is nothing above them, and halfway back up to the peak where neither is so.
    fn retarget(&mut self) {
        let before = self.best_value;
        self.record();
        let improved = self.best_value != before;
        for (level, limit) in self.state.levels.iter_mut().zip(&self.state.model.limits) {
            let peak = level.peak();
            let target = if improved || level.above == 0 {
                peak - (peak / 32).max(1)
            } else {
                level.target + (peak - level.target + 1) / 2
            };
            level.aim(target.min(limit.unwrap_or(i64::MAX)).max(0));
        }
    }

    /// Mean of what makes the energy worse, over some moves that are all taken back.
    fn typical(&mut self) -> f64 {
        let energy = self.energy();
        let (mut sum, mut count) = (0.0, 0);
        for _ in 0..512 {
            if let Some(next) = self.propose() {
                if next > energy {
                    sum += next - energy;
                    count += 1;
                }
                self.state.undo();
            }
        }
        if count == 0 { 1.0 } else { sum / f64::from(count) }
    }

    /// Moves something; the energy then. `None` when nothing was moved.
    fn propose(&mut self) -> Option<f64> {
        let model = self.state.model;
        let v = self.pick();
        let now = self.state.steps[v];
        let push = self.how.push > 0 && self.random.below(4) == 0;
        let (low, high) = if push { (model.earliest[v], model.latest[v]) } else { self.state.slack(v) };
        if low >= high {
            return None;
        }
        // Near steps as often as far ones: distances are uniform in their logarithm.
        let up = if now == low { true } else { now < high && self.random.below(2) == 0 };
        let room = if up { high - now } else { now - low };
        if room <= 0 {
            return None;
        }
        let distance = ((room as f64).powf(self.random.unit()).round() as i64).clamp(1, room);
        let step = if up { now + distance } else { now - distance };
        if !self.state.shift(v, step, self.how.push.max(1)) {
            self.state.undo();
            return None;
        }
        Some(self.energy())
    }

    /// An operation, rather one that takes part in what is above its target.
    fn pick(&mut self) -> usize {
        let model = self.state.model;
        let mut v = self.random.below(model.len());
        for _ in 0..6 {
            let hot = model.uses[v].iter().any(|used| {
                let level = &self.state.levels[used.resource];
                !level.usage.is_empty() && level.usage[model.slot(self.state.steps[v] + used.offset)] > level.target
            });
            if hot || model.width(v) > 0 && self.random.below(3) == 0 {
                break;
            }
            v = self.random.below(model.len());
        }
        v
    }

    fn accept(&mut self) {
        let (dirty, is_dirty) = (&mut self.dirty, &mut self.is_dirty);
        self.state.keep(|v| {
            if !std::mem::replace(&mut is_dirty[v], true) {
                dirty.push(v as u32);
            }
        });
    }

    /// Remembers the schedule if it is the best.
    fn record(&mut self) {
        let Some(value) = self.state.value() else { return };
        if self.best_value.is_none_or(|best| value < best) {
            self.best_value = Some(value);
            for v in self.dirty.drain(..) {
                let v = v as usize;
                self.best[v] = self.state.steps[v];
                self.is_dirty[v] = false;
            }
        }
    }
}
