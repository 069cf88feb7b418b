//! Local improvement of legal schedules: [`jump`] moves of many operations, then simulated annealing towards a peak just
//! below the best one known.
//!
//! A peak alone tells nothing about moves elsewhere, so what is made small is usage above a target, over all slots; once
//! there is none, the target is lowered. Where peaks are traded for communication, it is their smooth maximum. The
//! moves of annealing shift one operation and push on who is in its way. This is no part of the paper: an option, so
//! that what the gradient is worth can be told apart.

mod jump;
mod live;
mod state;

use crate::control::Clock;
use crate::model::Model;
use state::State;
use std::time::Instant;
use twill_graph::DataflowObjective;
use twill_graph::SplitMix64;

/// Graphs with fewer operations than this get as many moves as if they had them: they are cheap.
const SMALL: usize = 5000;

/// Parts of the time that jump moves may take: for storage, where they find most, and for resources.
const JUMPS: (f64, f64) = (0.8, 0.25);

/// How to anneal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polish {
    /// Moves tried, in multiples of the number of operations (of 5000 where there are fewer). 0 for none. Default 200
    /// (own).
    pub sweeps: u32,
    /// First temperature, in means of the moves that make the energy worse. Default 0.2 (own: measured against 0.1,
    /// 0.5, 1 and 1.5).
    pub hot: f64,
    /// Last temperature, in the same. Default 0.005 (own: measured against 0.002, 0.01, 0.02 and 0.1).
    pub cold: f64,
    /// Most operations that one move may push on. Default 32 (own: 0 and 200 are much the same).
    pub push: usize,
    /// Stages for each of several resources whose peaks are to be lowered; a stage anneals by itself. Default 4 (own).
    pub stages: u32,
    /// Temperature of the smooth maximum that stands for a peak where it is traded for communication, in means of the
    /// usage, at the start. Default 1 (own: measured against 0.05 to 1).
    pub peak_hot: f64,
    /// The same at the end. Default 0.05 (own: measured against 0.003 to 0.1).
    pub peak_cold: f64,
    /// Arcs of networks visited for jump moves, in multiples of operations and dependences. 0 for no such moves. Default
    /// 20,000 (own: a tenth of it is too little for storage).
    pub jumps: u32,
    /// First temperature of jump moves, in parts of the peak. Default 0.15 (own: 0.05 is much the same).
    pub jump_hot: f64,
    /// Last temperature of jump moves, in the same. Default 0.003 (own: measured against
    /// 0.01).
    pub jump_cold: f64,
}

impl Default for Polish {
    fn default() -> Self {
        Self {
            sweeps: 200,
            hot: 0.2,
            cold: 0.005,
            push: 32,
            stages: 4,
            peak_hot: 1.0,
            peak_cold: 0.05,
            jumps: 20_000,
            jump_hot: 0.15,
            jump_cold: 0.003,
        }
    }
}

/// The target, by resource, and for storage.
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
    /// True if the energy has a smooth maximum of usage rather than usage above targets: where peaks are traded for
    /// communication, no target is known beforehand.
    smooth: bool,
    random: SplitMix64,
    how: Polish,
}

/// Returns whether jump moves do most of the polishing.
pub(crate) fn is_jumped(model: &Model<'_>, how: &Polish) -> bool {
    model.objective() == DataflowObjective::Storage && how.sweeps > 0 && jump::is_for(model, how)
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
    let steps = if how.sweeps == 0 {
        steps
    } else {
        let part = if is_jumped(model, &how) { JUMPS.0 } else { JUMPS.1 };
        jump::jump(model, steps, &how, seed, &clock.share(part))
    };
    let state = State::new(model, steps.clone());
    let best_value = state.value();
    if how.sweeps == 0 || model.objective() == DataflowObjective::Latency && best_value.is_some() {
        return (steps, best_value);
    }
    let aim = Aim::new(model);
    let smooth = aim.communication > 0.0;
    let is_dirty = vec![false; model.len()];
    let random = SplitMix64::new(seed);
    let mut annealer =
        Annealer { state, aim, best: steps, best_value, dirty: Vec::new(), is_dirty, smooth, random, how };
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
                    let uses = || model.uses.all().iter().filter(move |used| used.resource == resource);
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
        let levels = state.levels.iter().zip(&self.aim.weights).map(|(level, weight)| level.height() * weight);
        let live = state.live.as_ref().map_or(0.0, |live| live.level.height() * self.aim.storage);
        levels.sum::<f64>() + live + self.aim.communication * state.communication as f64
    }

    fn is_above(&self) -> bool {
        self.state.levels.iter().any(|level| level.above > 0)
            || self.state.live.as_ref().is_some_and(|live| live.level.above > 0)
    }

    /// Aims a little below what the schedule uses. Of several resources one is `chosen` to be lowered; where that is a
    /// `trade`, by two, while another may rise by one.
    fn lower_targets(&mut self, chosen: usize, trade: bool) {
        let State { model, levels, live, .. } = &mut self.state;
        if matches!(model.objective(), DataflowObjective::Resources { .. }) {
            let other = (chosen + 1 + self.random.index(levels.len().max(2) - 1)) % levels.len().max(1);
            for (resource, level) in levels.iter_mut().enumerate() {
                let peak = level.peak();
                let step = (peak / 256).max(1);
                let target = match resource {
                    _ if resource == chosen => peak - if trade { 2 * step } else { step },
                    _ if resource == other && trade => peak + step,
                    _ => peak,
                };
                level.aim(target.min(model.limits[resource].unwrap_or(i64::MAX)).max(0));
            }
        }
        if let Some(live) = live {
            let peak = live.level.peak();
            live.level.aim((peak - (peak / 256).max(1)).max(0));
        }
    }

    /// Anneals in stages: with several peaks to lower, each in turn, and then in trades of two for one; else in one.
    fn run(&mut self, clock: &Clock<'_>) {
        let model = self.state.model;
        let several = matches!(model.objective(), DataflowObjective::Resources { .. }) && model.limits.len() > 1;
        let resources = model.limits.len().max(1);
        let stages = if several && !self.smooth { (self.how.stages as usize).max(1) * resources } else { 1 };
        let moves = model.len().max(SMALL) as u64 * u64::from(self.how.sweeps) / stages as u64;
        for stage in 0..stages {
            if clock.is_over() {
                break;
            }
            if stage > 0 {
                self.state = State::new(model, self.best.clone());
                self.dirty.drain(..).for_each(|v| self.is_dirty[v as usize] = false);
            }
            let turn = stage / resources;
            let aim = (stage % resources, turn % 2 == 1);
            self.lower_targets(aim.0, aim.1);
            self.anneal(moves, aim, &clock.share(1.0 / (stages - stage) as f64));
        }
    }

    fn anneal(&mut self, moves: u64, aim: (usize, bool), clock: &Clock<'_>) {
        let model = self.state.model;
        let count = model.len();
        if self.smooth {
            self.sharpen(0.0);
        }
        let unit = self.typical();
        let (hot, cold) = (self.how.hot * unit, self.how.cold * unit);
        let since = Instant::now();
        let mut temperature = hot;
        let mut energy = self.energy();
        for tried in 0..moves {
            // A move takes up to the time of as many steps as it moves storage by.
            if tried.is_multiple_of(64) {
                if clock.is_over() {
                    break;
                }
                let done = (tried as f64 / moves as f64).max(clock.gone(since));
                temperature = hot * (cold / hot).powf(done);
            }
            if self.smooth && tried.is_multiple_of(2 * count as u64) {
                let done = (tried as f64 / moves as f64).max(clock.gone(since));
                self.sharpen(done);
                energy = self.energy();
            }
            let Some(next) = self.propose() else { continue };
            let worse = next - energy;
            if worse <= 0.0 || self.random.unit() < (-worse / temperature).exp() {
                energy = next;
                self.accept();
                if !self.smooth && !self.is_above() {
                    self.record();
                    if model.objective() == DataflowObjective::Latency {
                        // Within limits, and nothing more is asked of it here.
                        return;
                    }
                    self.lower_targets(aim.0, false);
                    energy = self.energy();
                }
            } else {
                self.state.undo();
            }
        }
        self.record();
    }

    /// Makes smooth maxima sharper, as far as the annealing is `done`; remembers the schedule if it is the best.
    fn sharpen(&mut self, done: f64) {
        self.record();
        let share = self.how.peak_hot * (self.how.peak_cold / self.how.peak_hot).powf(done);
        for level in &mut self.state.levels {
            let mean = level.usage.iter().sum::<i64>() as f64 / level.usage.len().max(1) as f64;
            // Far below one unit it would be no smoother than the maximum itself.
            level.smooth((mean * share).max(0.1));
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
        let push = self.how.push > 0 && self.random.index(4) == 0;
        let (low, high) = if push { (model.earliest[v], model.latest[v]) } else { self.state.slack(v) };
        if low >= high {
            return None;
        }
        // Near steps as often as far ones: distances are uniform in their logarithm.
        let up = if now == low { true } else { now < high && self.random.index(2) == 0 };
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
        let mut v = self.random.index(model.len());
        for _ in 0..6 {
            let hot = model.uses[v].iter().any(|used| {
                let level = &self.state.levels[used.resource];
                !level.usage.is_empty() && level.usage[model.slot(self.state.steps[v] + used.offset)] > level.target
            });
            if hot || model.width(v) > 0 && self.random.index(3) == 0 {
                break;
            }
            v = self.random.index(model.len());
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
