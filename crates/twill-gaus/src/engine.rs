//! The search: start, downhill, legalise, polish, and again from the best.

use crate::control::{Clock, Control};
use crate::descent::descend;
use crate::feasible::{Effort, rank};
use crate::latency::{Shrink, roomy};
use crate::legal::{Ejection, Levelling, Preference, Side, Table, eject, level, settle};
use crate::measure::keeps;
use crate::model::{GausError, Model};
use crate::options::{Options, StartFrom};
use crate::polish::{is_jumped, polish};
use crate::{Mobility, Precedence};
use std::time::Duration;
use twill_graph::SplitMix64;
use twill_graph::saturate;
use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};

/// The part of the search that found a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The legalised start.
    Start,
    /// Legalised means of a gradient descent.
    Gradient,
    /// Annealing of a legal schedule.
    Annealing,
    /// Placement with ejection, within less and less latency.
    Ejection,
}

impl Part {
    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Part::Start => "start",
            Part::Gradient => "gradient",
            Part::Annealing => "annealing",
            Part::Ejection => "ejection",
        }
    }
}

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
    /// Who found it.
    pub part: Part,
}

/// The best schedule of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct GausResult {
    /// The best schedule, legal; `None` where none was found, which does not mean that there is none.
    pub schedule: Option<StartSteps>,
    /// Its objective.
    pub objective: Option<i128>,
    /// Objective of what the first legalisation made of the start, before any gradient or polish, if it was legal.
    pub at_start: Option<i128>,
    /// Gradients taken.
    pub gradients: u64,
    /// Whether a GPU computed some of them.
    pub on_gpu: bool,
    /// The means that the first gradient descent ended at, for [`StartFrom::Near`]; empty where there was none.
    pub means: Vec<f64>,
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
    on_gpu: bool,
    means: Vec<f64>,
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
    let given = match &options.start {
        StartFrom::Given(steps) => steps.len(),
        StartFrom::Near(means) => means.len(),
        StartFrom::Middle | StartFrom::Random => operations,
    };
    if given != operations {
        return Err(GausError::Start { given, operations });
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
    let mut search = Search {
        model: &model,
        options,
        clock: *clock,
        random,
        best: None,
        gradients: 0,
        on_gpu: false,
        means: Vec::new(),
        round: 0,
        report,
    };
    let at_start = search.run();
    let Search { best, gradients, on_gpu, means, .. } = search;
    let (objective, steps) = best.unzip();
    let schedule = steps.map(|steps: Vec<i64>| start_steps(problem, &steps));
    Ok(GausResult { schedule, objective, at_start, gradients, on_gpu, means, latency })
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
        Some(first) => Some(shrink.shrink(first, Effort::All, &mut |short| {
            let objective = i128::from(short.latency);
            report(Progress { elapsed: clock.elapsed(), round: 0, gradients, objective, part: Part::Ejection });
        })?),
        None => None,
    };
    Ok(GausResult {
        objective: best.as_ref().map(|short| i128::from(short.latency)),
        schedule: best.as_ref().map(|short| start_steps(problem, &short.steps)),
        at_start,
        gradients: shrink.gradients,
        on_gpu: false,
        means: Vec::new(),
        latency: best.map_or(0, |short| short.latency),
    })
}

fn start_steps(problem: &DataflowProblem, steps: &[i64]) -> StartSteps {
    StartSteps { interval: problem.interval, steps: steps.iter().map(|&s| s as u64).collect() }
}

/// Caps that levelling begins with, in means of the usage; how early operations may come, in parts of the latency; and
/// whether the most urgent go first.
const LEVELLINGS: [(f64, f64, bool); 8] = [
    (1.0, 0.5, true),
    (1.02, 0.1, true),
    (1.0, 0.02, false),
    (1.1, 0.02, false),
    (1.3, 0.0, false),
    (1.0, 0.2, true),
    (1.05, 0.05, true),
    (1.15, 0.0, true),
];

impl Search<'_, '_> {
    fn run(&mut self) -> Option<i128> {
        let model = self.model;
        for steps in self.options.known.iter().filter(|steps| steps.len() == model.len()) {
            let steps: Vec<i64> = steps.iter().map(|&s| saturate::<i64>(s)).collect();
            self.consider(&steps);
        }
        let start = self.start();
        let legal = self.settled(&start);
        let at_start = legal.and_then(|steps| self.offer(&steps, Part::Start));
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
            let mut part = Part::Start;
            // Where jump moves follow, another gradient would only undo what they found.
            let again = round == 0 || !is_jumped(model, &self.options.polish);
            if let Some(descent) = self.options.descent.as_ref().filter(|_| again) {
                let mut descent = *descent;
                // Later rounds stay near where they begin: a narrower spread each time.
                descent.kappa *= 0.5_f64.powi(round as i32);
                let found = descend(model, mu, &descent, &clock.share(0.5));
                mu = found.means;
                self.gradients += found.gradients;
                self.on_gpu |= found.on_gpu;
                part = Part::Gradient;
                if round == 0 {
                    self.means.clone_from(&mu);
                }
            }
            if let Some(legal) = self.legalise(&mu, &clock.share(0.5)) {
                self.offer(&legal, part);
                if self.is_done() {
                    break;
                }
                let seed = self.random.next_number();
                let legal = self.better(legal);
                let (polished, _) = polish(model, legal, self.options.polish, seed, &clock);
                self.offer(&polished, Part::Annealing);
            }
        }
        at_start
    }

    /// Where to polish from: the best so far, if that is better and storage is asked for.
    fn better(&self, steps: Vec<i64>) -> Vec<i64> {
        match &self.best {
            Some((best, known)) if is_jumped(self.model, &self.options.polish) => match self.value(&steps) {
                Some(value) if value <= *best => steps,
                _ => known.clone(),
            },
            _ => steps,
        }
    }

    fn start(&mut self) -> Vec<f64> {
        let model = self.model;
        match &self.options.start {
            StartFrom::Given(steps) => steps.iter().map(|&s| s as f64).collect(),
            StartFrom::Random => (0..model.len())
                .map(|v| model.earliest[v] as f64 + self.random.unit() * model.width(v) as f64)
                .collect(),
            StartFrom::Middle => model.middle(),
            StartFrom::Near(means) => {
                let kappa = self.options.descent.map_or(1.0 / 6.0, |descent| descent.kappa);
                // The sum of twelve is as good as normal.
                let mut normal = || (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
                let near = means.iter().enumerate().map(|(v, mean)| mean + kappa * model.width(v) as f64 * normal());
                near.collect()
            }
        }
    }

    /// Returns whether the best is as good as any can be.
    fn is_done(&self) -> bool {
        self.options.target.zip(self.best.as_ref()).is_some_and(|(target, (best, _))| *best <= target)
    }

    /// The best of several legal schedules near the wishes.
    fn legalise(&mut self, wishes: &[f64], clock: &Clock<'_>) -> Option<Vec<i64>> {
        let model = self.model;
        let settled = self.settled(wishes);
        let is_levelled = matches!(model.objective(), DataflowObjective::Resources { peak: 1.., .. });
        if !is_levelled || model.interval.is_some() {
            // Who gives way is decided by what comes of it.
            let sides = [Side::Earlier, Side::Middle, Side::Later].into_iter();
            let others = sides.filter(|side| *side != self.options.side && !clock.is_over());
            let all = settled.into_iter().chain(others.map(|side| settle(model, wishes, side)));
            let best = all.filter_map(|steps| Some((self.value(&steps)?, steps)));
            return best.min_by_key(|(value, _)| *value).map(|(_, steps)| steps);
        }
        let near: Vec<i64> = wishes.iter().map(|wish| wish.round() as i64).collect();
        let ways = LEVELLINGS.into_iter().take_while(|_| !clock.is_over()).filter_map(|(cap, early, urgent)| {
            let early = (early * model.length as f64) as i64;
            level(model, &near, Levelling { cap, early, urgent }, clock)
        });
        let ways: Vec<Vec<i64>> = settled.into_iter().chain(ways).collect();
        let best = ways.into_iter().filter_map(|steps| Some((self.value(&steps)?, steps)));
        best.min_by_key(|(value, _)| *value).map(|(_, steps)| steps)
    }

    /// Near the wishes, and within the limits of resources if there are any.
    fn settled(&mut self, wishes: &[f64]) -> Option<Vec<i64>> {
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

    /// The objective of a schedule; `None` where it is not legal.
    fn value(&self, steps: &[i64]) -> Option<i128> {
        let model = self.model;
        if !(0..model.len()).all(|v| (model.earliest[v]..=model.latest[v]).contains(&steps[v])) {
            return None;
        }
        let unsigned: Vec<u64> = steps.iter().map(|&s| s as u64).collect();
        let measure = crate::Measure::with(&model.problem.graph, model.precedence, model.problem.interval, &unsigned);
        let legal = keeps(model.problem, model.precedence, &unsigned, &measure);
        legal.then(|| measure.objective(model.objective()))
    }

    /// Keeps a schedule if it is legal and the best so far; its objective if it is legal, and whether it is kept.
    fn consider(&mut self, steps: &[i64]) -> Option<(i128, bool)> {
        let objective = self.value(steps)?;
        let better = self.best.as_ref().is_none_or(|(best, _)| objective < *best);
        if better {
            self.best = Some((objective, steps.to_vec()));
        }
        Some((objective, better))
    }

    /// The same, with a message; its objective if it is legal.
    fn offer(&mut self, steps: &[i64], part: Part) -> Option<i128> {
        let considered = self.consider(steps);
        debug_assert!(considered.is_some(), "the legaliser and polish keep every rule");
        let (objective, better) = considered?;
        if better {
            let elapsed = self.clock.elapsed();
            (self.report)(Progress { elapsed, round: self.round, gradients: self.gradients, objective, part });
        }
        Some(objective)
    }
}
