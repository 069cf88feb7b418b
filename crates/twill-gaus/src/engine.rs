//! The search: start, downhill, legalise, polish, and again from the best.

use crate::control::{Clock, Control};
use crate::descent::descend;
use crate::feasible::{Effort, rank};
use crate::latency::{Shrink, roomy};
use crate::legal::{Ejection, Preference, Table, eject, settle};
use crate::measure::is_legal;
use crate::model::{GausError, Model};
use crate::options::{Options, StartFrom};
use crate::polish::polish;
use crate::{Mobility, Precedence};
use std::time::Duration;
use twill_graph::SplitMix64;
use twill_graph::saturate;
use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};

/// The message after every improvement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Round of the search, from 0.
    pub round: u32,
    /// Gradients taken so far.
    pub gradients: u64,
    /// Objective of the best schedule.
    pub objective: i128,
}

/// The best schedule of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GausResult {
    /// The best schedule, legal; `None` where none was found, which does not mean that there is none.
    pub schedule: Option<StartSteps>,
    /// Its objective.
    pub objective: Option<i128>,
    /// Objective of what the first legalisation made of the start, before any gradient or polish, if it was legal.
    pub at_start: Option<i128>,
    /// Gradients taken.
    pub gradients: u64,
    /// Latency that windows were counted back from: the bound of the problem, or the one chosen where it has none.
    pub latency: u64,
}

struct Search<'s, 'c> {
    model: &'s Model<'s>,
    options: &'s Options,
    clock: Clock<'c>,
    random: SplitMix64,
    best: Option<(i128, Vec<i64>)>,
    gradients: u64,
    round: u32,
    report: &'s mut dyn FnMut(Progress),
}

/// Searches for a good schedule of `problem`.
///
/// # Errors
/// When dependences alone rule out every schedule, schedules are too long for the engine, or the start is none of this
/// graph's.
pub fn schedule(
    problem: &DataflowProblem,
    options: &Options,
    control: Control<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<GausResult, GausError> {
    search(problem, options, &Clock::start(control), report)
}

/// [`schedule`], on a clock that is running already.
pub(crate) fn search(
    problem: &DataflowProblem,
    options: &Options,
    clock: &Clock<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<GausResult, GausError> {
    let operations = problem.graph.operations().len();
    if let StartFrom::Given(steps) = &options.start
        && steps.len() != operations
    {
        return Err(GausError::Start { given: steps.len(), operations });
    }
    let precedence = Precedence::new(&problem.graph, problem.interval);
    if problem.objective == DataflowObjective::Latency {
        return shortest(problem, &precedence, options, clock, report);
    }
    let latency = match problem.latency_bound {
        Some(bound) => bound,
        None => roomy(problem, Mobility::within(&problem.graph, &precedence, None, problem.interval)?.latency),
    };
    let model = Model::new(problem, &precedence, latency)?;
    let random = SplitMix64::new(options.seed);
    let mut search =
        Search { model: &model, options, clock: *clock, random, best: None, gradients: 0, round: 0, report };
    let at_start = search.run();
    let Search { best, gradients, .. } = search;
    let (objective, steps) = best.unzip();
    let schedule = steps.map(|steps: Vec<i64>| start_steps(problem, &steps));
    Ok(GausResult { schedule, objective, at_start, gradients, latency })
}

/// The objective is latency: nothing to follow downhill but what is feasible within less and less.
fn shortest(
    problem: &DataflowProblem,
    precedence: &Precedence,
    options: &Options,
    clock: &Clock<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<GausResult, GausError> {
    let mut shrink = Shrink::new(problem, precedence, options, *clock, options.seed);
    let first = shrink.first(Effort::All)?;
    let at_start = first.as_ref().map(|short| i128::from(short.latency));
    let gradients = shrink.gradients;
    let best = match first {
        Some(first) => Some(shrink.shrink(first, &mut |short| {
            let objective = i128::from(short.latency);
            report(Progress { elapsed: clock.elapsed(), round: 0, gradients, objective });
        })?),
        None => None,
    };
    Ok(GausResult {
        objective: best.as_ref().map(|short| i128::from(short.latency)),
        schedule: best.as_ref().map(|short| start_steps(problem, &short.steps)),
        at_start,
        gradients: shrink.gradients,
        latency: best.map_or(0, |short| short.latency),
    })
}

fn start_steps(problem: &DataflowProblem, steps: &[i64]) -> StartSteps {
    StartSteps { interval: problem.interval, steps: steps.iter().map(|&s| s as u64).collect() }
}

impl Search<'_, '_> {
    fn run(&mut self) -> Option<i128> {
        let model = self.model;
        let start: Vec<f64> = match &self.options.start {
            StartFrom::Given(steps) => steps.iter().map(|&s| s as f64).collect(),
            StartFrom::Random => (0..model.len())
                .map(|v| model.earliest[v] as f64 + self.random.unit() * model.width(v) as f64)
                .collect(),
            StartFrom::Middle => model.middle(),
        };
        let legal = self.legalise(&start);
        let at_start = legal.as_ref().and_then(|steps| self.offer(steps));
        for steps in self.options.known.iter().filter(|steps| steps.len() == model.len()) {
            let steps: Vec<i64> = steps.iter().map(|&s| saturate::<i64>(s)).collect();
            if self.is_legal(&steps) {
                self.offer(&steps);
            }
        }
        for round in 0..self.options.rounds.max(1) {
            self.round = round;
            if self.clock.is_over() || self.is_done() {
                break;
            }
            // The rest of the time is for the rounds left, in equal parts; the gradient has half of each.
            let clock = self.clock.share(1.0 / f64::from(self.options.rounds.max(1) - round));
            let mut mu = match (&self.best, round) {
                (Some((_, best)), 1..) => best.iter().map(|&s| s as f64).collect(),
                _ => start.clone(),
            };
            if let Some(descent) = &self.options.descent {
                let mut descent = *descent;
                // Later rounds stay near where they begin: a narrower spread each time.
                descent.kappa *= 0.5_f64.powi(round as i32);
                let (found, gradients) = descend(model, mu, &descent, &clock.share(0.5));
                mu = found;
                self.gradients += gradients;
            }
            if let Some(legal) = self.legalise(&mu) {
                self.offer(&legal);
                if self.is_done() {
                    break;
                }
                let seed = self.random.next_number();
                let (polished, _) = polish(model, legal, self.options.polish, seed, &clock);
                self.offer(&polished);
            }
        }
        at_start
    }

    /// Returns whether the best is as good as any can be.
    fn is_done(&self) -> bool {
        self.options.target.zip(self.best.as_ref()).is_some_and(|(target, (best, _))| *best <= target)
    }

    /// Near the wishes, and within the limits of resources if there are any.
    fn legalise(&mut self, wishes: &[f64]) -> Option<Vec<i64>> {
        let model = self.model;
        let settled = settle(model, wishes, self.options.side);
        let peaks = Table::of(model, &settled).peaks();
        let within = |(peak, limit): (&i64, &Option<i64>)| limit.is_none_or(|limit| *peak <= limit);
        if peaks.iter().zip(&model.limits).all(within) {
            return Some(settled);
        }
        let rank = rank(model, |v| settled[v] as f64);
        [Preference::Nearest, Preference::Earliest].into_iter().find_map(|preference| {
            let how = Ejection { preference, budget: self.options.ejections, seed: self.random.next_number() };
            eject(model, &settled, &rank, &model.limits, how, &self.clock)
        })
    }

    fn is_legal(&self, steps: &[i64]) -> bool {
        let model = self.model;
        let unsigned: Vec<u64> = steps.iter().map(|&s| s as u64).collect();
        (0..model.len()).all(|v| (model.earliest[v]..=model.latest[v]).contains(&steps[v]))
            && is_legal(model.problem, model.precedence, &unsigned)
    }

    /// Keeps a schedule if it is the best so far and legal; its objective if it is legal.
    fn offer(&mut self, steps: &[i64]) -> Option<i128> {
        let model = self.model;
        if !self.is_legal(steps) {
            debug_assert!(false, "the legaliser and polish keep every rule");
            return None;
        }
        let unsigned: Vec<u64> = steps.iter().map(|&s| s as u64).collect();
        let measure = crate::Measure::with(&model.problem.graph, model.precedence, model.problem.interval, &unsigned);
        let objective = measure.objective(model.objective());
        if self.best.as_ref().is_none_or(|(best, _)| objective < *best) {
            self.best = Some((objective, steps.to_vec()));
            let elapsed = self.clock.elapsed();
            (self.report)(Progress { elapsed, round: self.round, gradients: self.gradients, objective });
        }
        Some(objective)
    }
}
