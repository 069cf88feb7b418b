//! Who answers: a baseline; or GauS, again while there is time, and exact windows; for the least interval the exact engine
//! as well.

use super::{SearchError, kind};
use crate::Observer;
use crate::options::{GausEngine, GausOptions, GausStart};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use twill_exact::Budget;
use twill_gaus::neighbourhood;
use twill_gaus::{
    Baseline, BaselineError, Control, GausError, Measure, Options, Precedence, Progress, StartFrom, UnknownBaseline,
};
use twill_graph::saturate;
use twill_graph::{
    Cycles, Dataflow, DataflowObjective, DataflowProblem, IssueTimes, ModuloDependence, ModuloOperation, ModuloProblem,
    ModuloResource, Outcome, StartSteps, UnitId,
};

/// Intervals that a baseline may try from the least on.
const TRIES: u64 = 10_000;
/// Graphs of up to this many operations are searched by exact windows, too, and with how much effort.
const SMALL: (usize, u64) = (1000, 1_000_000);
/// Effort of the exact engine for a loop: some seconds.
const LOOP_WORK: u64 = 20_000_000;

/// What a search gave.
#[derive(Default)]
pub(super) struct SearchResult {
    pub schedule: Option<StartSteps>,
    pub at_start: Option<i128>,
    pub gradients: u64,
    pub trace: Vec<(f64, i128)>,
    /// What exact search proved of the objective.
    pub least: Option<i128>,
    /// What exact search proved of the interval.
    pub least_interval: Option<u64>,
}

/// Searches; there is no schedule with an objective below `bound`. The time is counted from `begun`.
pub(super) fn search(
    arguments: &GausOptions,
    problem: &DataflowProblem,
    bound: Option<i128>,
    begun: Instant,
    interrupt: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<SearchResult, SearchError> {
    observer.say(match arguments.engine {
        GausEngine::Baseline(_) => "scheduling",
        GausEngine::Gaus | GausEngine::Exact => "scheduling by baselines",
    });
    let baseline = match arguments.engine {
        GausEngine::Baseline(baseline) => baseline,
        GausEngine::Gaus | GausEngine::Exact => {
            return Search::new(arguments, problem, bound, begun, interrupt, observer)?.run();
        }
    };
    let found = if arguments.smallest_ii {
        baseline.smallest_interval(&problem.graph, problem.latency_bound, TRIES)
    } else {
        baseline.schedule(problem)
    };
    match found {
        Ok(schedule) => Ok(SearchResult { schedule: Some(schedule), ..SearchResult::default() }),
        Err(BaselineError::NotFound { .. }) => Ok(SearchResult::default()),
        Err(error) => Err(error.into()),
    }
}

struct Search<'a> {
    arguments: &'a GausOptions,
    problem: &'a DataflowProblem,
    bound: Option<i128>,
    options: Options,
    begun: Instant,
    limit: Option<Duration>,
    interrupt: Arc<AtomicBool>,
    observer: &'a mut dyn Observer,
    result: SearchResult,
    /// The best that GauS has is a baseline's schedule.
    is_stuck: bool,
}

impl<'a> Search<'a> {
    fn new(
        arguments: &'a GausOptions,
        problem: &'a DataflowProblem,
        bound: Option<i128>,
        begun: Instant,
        interrupt: Arc<AtomicBool>,
        observer: &'a mut dyn Observer,
    ) -> Result<Search<'a>, SearchError> {
        let mut options = Options {
            seed: arguments.seed,
            known: known(arguments, problem, begun, &interrupt)?,
            target: bound,
            ..Options::default()
        };
        options.start = match arguments.start {
            GausStart::Middle => StartFrom::Middle,
            GausStart::Random => StartFrom::Random,
            GausStart::List => {
                let baseline = if problem.interval.is_some() { Baseline::IterativeModulo } else { Baseline::List };
                StartFrom::Given(baseline.schedule(problem)?.steps)
            }
        };
        if arguments.no_gradient {
            options.descent = None;
        }
        if let Some(sweeps) = arguments.polish_sweeps {
            options.polish.sweeps = sweeps;
        }
        options.rounds = arguments.rounds.unwrap_or(options.rounds);
        Ok(Search {
            arguments,
            problem,
            bound,
            options,
            begun,
            // The bound at the interval that is found takes the rest.
            limit: arguments
                .seconds()
                .map(|seconds| Duration::from_secs_f64(if arguments.smallest_ii { 0.9 * seconds } else { seconds })),
            interrupt,
            observer,
            result: SearchResult::default(),
            is_stuck: false,
        })
    }

    fn run(mut self) -> Result<SearchResult, SearchError> {
        if self.arguments.smallest_ii {
            self.interval()?;
        } else {
            self.gradient()?;
            self.windows()?;
        }
        Ok(self.result)
    }

    /// What is left of a part of the time.
    fn left(&self, part: f64) -> Option<Duration> {
        self.limit.map(|limit| limit.mul_f64(part).saturating_sub(self.begun.elapsed()))
    }

    /// GauS on a problem; `None` where it finds nothing.
    fn schedule(
        &mut self,
        problem: &DataflowProblem,
        options: &Options,
        part: f64,
    ) -> Result<Option<(i128, StartSteps)>, SearchError> {
        let (before, time) = (self.begun.elapsed(), self.left(part));
        let (trace, observer) = (&mut self.result.trace, &mut *self.observer);
        let mut best = trace.last().map(|(_, objective)| *objective);
        let mut tell = |progress: Progress| {
            if problem.objective == self.problem.objective && best.is_none_or(|best| progress.objective < best) {
                best = Some(progress.objective);
                trace.push(((before + progress.elapsed).as_secs_f64(), progress.objective));
            }
            observer.say(&format!("{}: {}", kind(problem.objective), progress.objective));
        };
        let control = Control { time, interrupt: Some(&self.interrupt), memory: self.arguments.memory() };
        let found = twill_gaus::schedule(problem, options, control, &mut tell)?;
        self.result.gradients += found.gradients;
        self.result.at_start = self.result.at_start.or(found.at_start);
        Ok(found.objective.zip(found.schedule))
    }

    /// GauS; with a limit of time again with other seeds, each time from what is known.
    fn gradient(&mut self) -> Result<(), SearchError> {
        let (problem, part) = (self.problem, if self.conflicts() > 0 { 0.5 } else { 1.0 });
        let mut options = self.options.clone();
        let precedence = Precedence::new(&problem.graph, problem.interval);
        let objective = |steps: &Vec<u64>| {
            Measure::with(&problem.graph, &precedence, problem.interval, steps).objective(problem.objective)
        };
        let known = options.known.iter().map(objective).min();
        let mut best = self.schedule(problem, &options, part)?;
        // Other seeds would not get further; windows may.
        self.is_stuck = known.is_some() && best.as_ref().map(|(objective, _)| *objective) == known;
        while let (Some((objective, steps)), None, false) = (&best, self.arguments.rounds, self.is_stuck) {
            // The last bit is not enough for another search.
            let over = self.left(part * 0.9).is_none_or(|left| left.is_zero());
            if over || self.interrupt.load(Ordering::Relaxed) || self.bound.is_some_and(|bound| *objective <= bound) {
                break;
            }
            options.seed = options.seed.wrapping_add(1);
            options.known = vec![steps.steps.clone()];
            let again = self.schedule(problem, &options, part)?;
            best = again.into_iter().chain(best).min_by_key(|(objective, _)| *objective);
        }
        self.result.schedule = best.map(|(_, steps)| steps);
        Ok(())
    }

    fn conflicts(&self) -> u64 {
        let (most, usual) = SMALL;
        let small = self.problem.graph.operations().len() <= most;
        self.arguments.windows.unwrap_or(if small || self.is_stuck { usual } else { 0 })
    }

    /// Exact windows of what was found.
    fn windows(&mut self) -> Result<(), SearchError> {
        let conflicts = self.conflicts();
        let Some(start) = self.result.schedule.clone().filter(|_| conflicts > 0) else { return Ok(()) };
        let precedence = Precedence::new(&self.problem.graph, self.problem.interval);
        let measure = Measure::with(&self.problem.graph, &precedence, self.problem.interval, &start.steps);
        if self.bound.is_some_and(|bound| measure.objective(self.problem.objective) <= bound) {
            return Ok(());
        }
        let options = neighbourhood::Options { seed: self.arguments.seed, conflicts, ..Default::default() };
        let control =
            Control { time: self.left(1.0), interrupt: Some(&self.interrupt), memory: self.arguments.memory() };
        let before = self.begun.elapsed();
        let (trace, observer) = (&mut self.result.trace, &mut *self.observer);
        let what = kind(self.problem.objective);
        let mut tell = |progress: neighbourhood::Progress| {
            trace.push(((before + progress.elapsed).as_secs_f64(), progress.objective));
            observer.say(&format!("{what}: {} (window {})", progress.objective, progress.windows));
        };
        let improved = neighbourhood::improve(self.problem, start, &options, control, &mut tell)?;
        self.result.least = Some(improved.least);
        self.result.schedule = Some(improved.schedule);
        Ok(())
    }

    /// The least interval, by GauS; where that is not proved, by the exact engine, and again by GauS at its interval.
    fn interval(&mut self) -> Result<(), SearchError> {
        let graph = &self.problem.graph;
        let control =
            Control { time: self.left(0.5), interrupt: Some(&self.interrupt), memory: self.arguments.memory() };
        let (trace, observer) = (&mut self.result.trace, &mut *self.observer);
        let mut tell = |progress: Progress| {
            trace.push((progress.elapsed.as_secs_f64(), progress.objective));
            observer.say(&format!("latency: {}", progress.objective));
        };
        let bound = self.problem.latency_bound;
        let found = twill_gaus::smallest_interval(graph, bound, &self.options, control, &mut tell)?;
        self.result.gradients += found.gradients;
        let reached = found.schedule.as_ref().and_then(|schedule| schedule.interval);
        self.result.schedule = found.schedule;
        let Some(exact) = exact_loop(graph).filter(|_| reached != Some(found.least_interval)) else { return Ok(()) };
        let interrupt = Some(Arc::clone(&self.interrupt));
        let budget = Budget {
            time: self.left(0.8),
            work: Some(LOOP_WORK),
            until: None,
            memory: self.arguments.memory(),
            interrupt,
        };
        let report = twill_exact::modulo_schedule(&exact, &budget, &mut |_| ());
        if let Outcome::Optimal { schedule, .. } = &report.outcome {
            self.result.least_interval = u64::try_from(schedule.interval.0).ok();
        }
        match report.outcome.schedule() {
            Some(times) if reached.is_none_or(|reached| i128::from(times.interval.0) < i128::from(reached)) => {
                self.at_interval(times)
            }
            _ => Ok(()),
        }
    }

    /// The least latency that GauS finds at the interval of an exact schedule, or its own; then the least storage.
    fn at_interval(&mut self, times: &IssueTimes) -> Result<(), SearchError> {
        // The checker refuses schedules that begin before 0.
        let steps = |time: &Cycles| time.0.max(0).unsigned_abs();
        let exact: Vec<u64> = times.times.iter().map(steps).collect();
        let mut problem = DataflowProblem { interval: Some(steps(&times.interval)), ..self.problem.clone() };
        let options = self.options.clone();
        let precedence = Precedence::new(&problem.graph, problem.interval);
        let latency = |steps: &[u64]| Measure::with(&problem.graph, &precedence, problem.interval, steps).latency;
        let bound = problem.latency_bound.unwrap_or(u64::MAX);
        let shorter = match self.schedule(&problem, &options, 0.9) {
            // The exact engine does not know the bound on latency, which may rule its interval out.
            Err(SearchError::Gaus(GausError::Mobility(_))) => return Ok(()),
            found => found?.map(|(_, steps)| steps.steps),
        };
        let candidates = shorter.into_iter().chain([exact]).filter(|steps| latency(steps) <= bound);
        let Some(best) = candidates.min_by_key(|steps| latency(steps)) else { return Ok(()) };
        let latency = latency(&best);
        problem.objective = DataflowObjective::Storage;
        problem.latency_bound = Some(latency);
        let options = Options { known: vec![best.clone()], ..options };
        let stored = self.schedule(&problem, &options, 1.0)?.map(|(_, steps)| steps);
        self.result.schedule = Some(stored.unwrap_or(StartSteps { interval: problem.interval, steps: best }));
        Ok(())
    }
}

/// Schedules of baselines that the search shall not fall behind, as many as there are in half of the time.
fn known(
    arguments: &GausOptions,
    problem: &DataflowProblem,
    begun: Instant,
    interrupt: &AtomicBool,
) -> Result<Vec<Vec<u64>>, SearchError> {
    let names: Vec<&str> = arguments.known.iter().map(String::as_str).collect();
    let baselines = match names.as_slice() {
        ["none"] => return Ok(Vec::new()),
        [] if problem.interval.is_some() || arguments.smallest_ii => return Ok(Vec::new()),
        [] => vec![Baseline::List, Baseline::LeastSpans, Baseline::ForceDirected],
        named => named.iter().map(|name| name.parse()).collect::<Result<_, UnknownBaseline>>()?,
    };
    // A baseline without a schedule has none to offer.
    let half = arguments.seconds().map(|seconds| Duration::from_secs_f64(seconds / 2.0));
    let left = || half.map(|half| half.saturating_sub(begun.elapsed()));
    let in_time = |_: &Baseline| left().is_none_or(|left| !left.is_zero());
    let within = || Control { time: left(), interrupt: Some(interrupt), memory: arguments.memory() };
    let baselines = baselines.into_iter().take_while(in_time);
    Ok(baselines.filter_map(|baseline| Some(baseline.schedule_within(problem, within()).ok()?.steps)).collect())
}

/// A loop as the exact engine knows them: an operation takes one unit of one resource, from its start, for as long as all
/// others of that resource.
pub(super) fn exact_loop(graph: &Dataflow) -> Option<ModuloProblem> {
    let mut blocking = vec![None; graph.resources().len()];
    let free = UnitId::new(graph.resources().len());
    let mut operations = Vec::new();
    for op in graph.operations() {
        let resource = match op.uses.as_slice() {
            [] => free,
            [used] if used.offset == 0 && used.amount == 1 => {
                let steps = blocking[used.resource.index()].get_or_insert(used.steps);
                if *steps != used.steps {
                    return None;
                }
                used.resource
            }
            _ => return None,
        };
        operations.push(ModuloOperation { name: op.name.clone(), resource });
    }
    let limit = |limit: Option<u64>| limit.map(saturate);
    let resource = |(r, steps): (&twill_graph::DataflowResource, &Option<u32>)| ModuloResource {
        name: r.name.clone(),
        limit: limit(r.limit),
        blocking: steps.unwrap_or(1),
    };
    let mut resources: Vec<ModuloResource> = graph.resources().iter().zip(&blocking).map(resource).collect();
    let unnamed = (0..).map(|k| format!("free{k}")).find(|name| resources.iter().all(|r| r.name != *name));
    resources.push(ModuloResource { name: unnamed?, limit: None, blocking: 1 });
    let dependence = |d: &twill_graph::DataflowDependence| ModuloDependence {
        from: d.from,
        to: d.to,
        delay: Cycles(d.delay),
        distance: d.distance,
    };
    let dependences = graph.dependences().iter().map(dependence).collect();
    ModuloProblem::new(graph.name(), operations, dependences, resources).ok()
}
