//! Which window comes next, and what it is asked.

mod campaign;
mod whole;

use super::encoding::{Around, Ask, Encoding, Pointless, SatResult, Window};
use super::tracks::{self, Costs};
use super::windows::{Chooser, WindowKind};
use super::{Options, Progress};
use crate::control::Clock;
use crate::model::Model;
use campaign::Campaign;
use twill_graph::SplitMix64;
use whole::Whole;

/// Windows without an improvement that add as much effort to each as the first had.
const DRY: u64 = 64;
/// Fewest operations in a window.
const SMALLEST: usize = 4;

/// The outcome of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Better,
    Refuted,
    Undecided,
}

pub(super) struct Search<'a, 'c> {
    model: &'a Model<'a>,
    costs: &'a Costs,
    clock: Clock<'c>,
    options: Options,
    chooser: Chooser<'a>,
    random: SplitMix64,
    /// The schedule whose windows are tried; with communication, it may be worse than the best for a while.
    steps: Vec<i64>,
    usage: Vec<Vec<i64>>,
    value: i64,
    pub best: Vec<i64>,
    pub best_value: i64,
    pub tried: u64,
    /// Windows tried since the best was found.
    dry: u64,
    pub improved: u64,
    pub effort: u64,
    /// Operations in a window, by kind.
    sizes: [usize; WindowKind::ALL.len()],
    campaign: Option<Campaign>,
    /// By track, how far below the peak the next target is.
    strides: Vec<i64>,
    whole: Whole<'a, 'c>,
    whole_effort: u64,
    report: &'a mut dyn FnMut(Progress),
}

impl<'a, 'c> Search<'a, 'c> {
    pub fn new(
        model: &'a Model<'a>,
        costs: &'a Costs,
        steps: Vec<i64>,
        value: i64,
        options: Options,
        clock: Clock<'c>,
        report: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let usage: Vec<Vec<i64>> =
            costs.tracks.iter().map(|track| tracks::usage(model, track.counted, &steps)).collect();
        let strides = costs.tracks.iter().zip(&usage).map(|(track, usage)| (peak(usage) - track.least) / 8 + 1);
        Self {
            model,
            costs,
            clock,
            options,
            chooser: Chooser::new(model),
            random: SplitMix64::new(options.seed),
            best: steps.clone(),
            steps,
            strides: strides.collect(),
            usage,
            value,
            best_value: value,
            tried: 0,
            dry: 0,
            improved: 0,
            effort: 0,
            sizes: [options.window.max(SMALLEST); WindowKind::ALL.len()],
            campaign: None,
            whole: if options.whole { Whole::New } else { Whole::Out },
            whole_effort: 0,
            report,
        }
    }

    /// Searches until the effort or the time is over; whether the best is proved to be so.
    pub fn run(&mut self) -> bool {
        while self.effort < self.options.conflicts && !self.clock.is_over() {
            if i128::from(self.best_value) <= self.costs.least || self.chooser.movable.is_empty() {
                return true;
            }
            // Half for the whole.
            let due = self.whole_effort * 2 <= self.effort && !matches!(self.whole, Whole::Out);
            if due && self.try_whole() {
                return true;
            }
            if self.clock.is_over() {
                break;
            }
            let peaks = self.costs.tracks.iter().any(|track| track.weight > 0);
            let elsewhere = self.costs.alpha > 0 || self.costs.latency;
            if self.campaign.is_none() && (!peaks || elsewhere && self.random.index(2) == 0) {
                self.try_objective();
            } else {
                self.try_peak();
            }
            self.effort += 1;
        }
        false
    }

    fn around(&self) -> Around<'a, '_> {
        Around { model: self.model, costs: self.costs, steps: &self.steps, usage: &self.usage, value: self.value }
    }

    /// A smaller objective, somewhere.
    fn try_objective(&mut self) {
        let v = match self.costs.latency {
            // Those that finish last are what is in the way.
            true => (0..self.model.len()).max_by_key(|&v| self.steps[v] + self.model.latencies[v]).unwrap_or(0),
            false => self.chooser.movable[self.random.index(self.chooser.movable.len())],
        };
        let slot = self.model.slot(self.steps[v]);
        self.try_window(Ask::Objective, slot);
    }

    /// The total cost of communication.
    fn communication(&self) -> i64 {
        let peaks = self.costs.tracks.iter().zip(&self.usage).map(|(track, usage)| track.weight * peak(usage));
        if self.costs.alpha == 0 { 0 } else { self.value - peaks.sum::<i64>() }
    }

    fn try_window(&mut self, ask: Ask<'_>, slot: usize) -> Outcome {
        let at = self.tried as usize % WindowKind::ALL.len();
        self.tried += 1;
        self.dry += 1;
        let counted = match ask {
            Ask::Fewer { track, .. } => Some(self.costs.tracks[track].counted),
            Ask::Objective => None,
        };
        let size = self.sizes[at].min(self.chooser.movable.len());
        let window = self.chooser.around(WindowKind::ALL[at], size, &self.steps, counted, slot, &mut self.random);
        let outcome = self.solve(&window, ask);
        let size = match outcome {
            Outcome::Better => size,
            Outcome::Refuted => size + size / 4 + 1,
            Outcome::Undecided => size - size / 4,
        };
        self.sizes[at] = size.clamp(SMALLEST, self.chooser.movable.len().max(SMALLEST));
        outcome
    }

    /// Asks a window, and again for more as long as it gives.
    fn solve(&mut self, window: &Window, ask: Ask) -> Outcome {
        let above = |usage: &[Vec<i64>]| match ask {
            Ask::Fewer { track, caps, .. } => usage[track].iter().filter(|&&usage| usage > caps[track]).count() as i64,
            Ask::Objective => 0,
        };
        let mut encoding = match Encoding::new(self.around(), window, ask, self.clock) {
            Ok(encoding) => encoding,
            Err(Pointless::Refuted) => return Outcome::Refuted,
            Err(Pointless::TooLarge) => return Outcome::Undecided,
        };
        encoding.remember(&self.steps);
        let mut goal = encoding.goal();
        let (mut found, mut answer) = (None, SatResult::Unknown);
        // The longer nothing helps, the longer each window is looked at.
        let until = encoding.effort() + self.options.window_conflicts * (1 + self.dry / DRY);
        let mut now = (above(&self.usage), self.value);
        while encoding.effort() < until && !self.clock.is_over() {
            encoding.demand(goal - 1);
            answer = encoding.solve(until.saturating_sub(encoding.effort()));
            let SatResult::Sat(steps) = answer else { break };
            let usage = self.usage_of(&steps);
            let next = (above(&usage), self.value_of(&steps, &usage));
            goal -= match ask {
                Ask::Objective => now.1 - next.1,
                Ask::Fewer { .. } => now.0 - next.0,
            };
            (now, found, answer) = (next, Some((steps, usage)), SatResult::Unknown);
            if goal <= 0 && !matches!(ask, Ask::Objective) {
                break;
            }
        }
        self.effort += encoding.effort();
        let Some((steps, usage)) = found else {
            return if answer == SatResult::Unsat { Outcome::Refuted } else { Outcome::Undecided };
        };
        self.improved += 1;
        (self.steps, self.usage, self.value) = (steps, usage, now.1);
        self.keep_best();
        Outcome::Better
    }

    fn usage_of(&self, steps: &[i64]) -> Vec<Vec<i64>> {
        self.costs.tracks.iter().map(|track| tracks::usage(self.model, track.counted, steps)).collect()
    }

    /// The objective.
    fn value_of(&self, steps: &[i64], usage: &[Vec<i64>]) -> i64 {
        let peaks = self.costs.tracks.iter().zip(usage).map(|(track, usage)| track.weight * peak(usage));
        let edges = |v: usize| {
            let edges = self.model.edges()[self.model.edges_of(v)].iter();
            edges.map(move |edge| edge.communication as i64 * (steps[edge.to] + edge.shift - steps[v])).sum::<i64>()
        };
        let communication = if self.costs.alpha == 0 { 0 } else { (0..steps.len()).map(edges).sum() };
        let finishes = steps.iter().zip(&self.model.latencies).map(|(step, latency)| step + latency);
        let latency = if self.costs.latency { finishes.max().unwrap_or(0) } else { 0 };
        peaks.sum::<i64>() + self.costs.alpha * communication + latency
    }

    fn move_to(&mut self, steps: Vec<i64>) {
        self.usage = self.usage_of(&steps);
        self.value = self.value_of(&steps, &self.usage);
        self.steps = steps;
    }

    /// Keeps the schedule where it is no worse than the best, which lets windows work together.
    fn keep_best(&mut self) {
        if self.value > self.best_value {
            return;
        }
        self.best.clone_from(&self.steps);
        if self.value < self.best_value {
            self.best_value = self.value;
            self.dry = 0;
            let (elapsed, objective) = (self.clock.elapsed(), self.value.into());
            (self.report)(Progress { elapsed, windows: self.tried, objective });
        }
    }
}

fn peak(usage: &[i64]) -> i64 {
    usage.iter().copied().max().unwrap_or(0)
}
