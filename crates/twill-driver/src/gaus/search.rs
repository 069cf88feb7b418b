//! Who answers: a baseline; or GauS, again while there is time, and exact windows; for the least interval the exact engine
//! as well.
//!
//! With a limit of time a list schedule comes first. Then, side by side, GauS searches from it on one thread, and other
//! baselines and the bound, whose flow is the baseline `spans`, are found on another.

use super::beside::accompany;
use super::board::Board;
use super::exact_loop::{exact_loop, exact_tiles};
use super::warm_start::pipeline;
use super::{SearchError, kind};
use crate::Observer;
use crate::options::{GausEngine, GausGpu, GausOptions, GausStart};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use twill_exact::{Budget, Clock, SearchOptions};
use twill_gaus::neighbourhood;
use twill_gaus::{
    Baseline, BaselineError, Control, GausError, GausResult, LowerBound, Measure, Options, Precedence, Progress,
    StartFrom, UnknownBaseline,
};
use twill_graph::{Cycles, DataflowObjective, DataflowProblem, IssueTimes, MemoryBudget, Outcome, StartSteps};
use web_time::Instant;

/// Intervals that a baseline may try from the least on.
const TRIES: u64 = 10_000;
/// Graphs of up to this many operations are searched by exact windows, too, and with how much effort.
const SMALL: (usize, u64) = (1000, 1_000_000);
/// Part of the effort that storage of a loop is worth where nobody said how much time there is.
const LAST: u64 = 20;
/// Effort of the exact engine for a loop: some seconds, 20 at most.
const LOOP_WORK: u64 = 20_000_000;
/// And for the length at its interval: a second or two.
const LENGTH_WORK: u64 = 2_000_000;

/// Most steps in a round of a gradient that begins again.
const MOST_STEPS: u32 = 320;

/// Operations from which on, and seconds for which, a GPU is worth its beginning, which takes some tenths of one.
const WORTH_A_GPU: (usize, f64) = (4096, 5.0);

/// What a search gave.
#[derive(Default)]
pub(super) struct SearchResult {
    pub schedule: Option<StartSteps>,
    pub at_start: Option<i128>,
    pub gradients: u64,
    /// The GPU that computed them.
    pub gpu: Option<String>,
    pub trace: Vec<(f64, i128, String)>,
    /// The bound on the objective, where the search came by it.
    pub bound: Option<LowerBound>,
    /// What exact search proved of the objective.
    pub least: Option<i128>,
    /// What exact search proved of the interval.
    pub least_interval: Option<u64>,
}

/// How long a search may take, and who ends it.
#[derive(Clone)]
pub(super) struct Limits {
    /// When the command began.
    pub begun: Instant,
    /// Seconds from then, without those that a replay takes.
    pub seconds: Option<f64>,
    pub interrupt: Arc<AtomicBool>,
    pub memory: Option<MemoryBudget>,
}

impl Limits {
    /// What is left of a part of the time.
    pub fn left(&self, part: f64) -> Option<Duration> {
        let limit = self.seconds.map(|seconds| Duration::from_secs_f64((part * seconds).max(0.0)));
        limit.map(|limit| limit.saturating_sub(self.begun.elapsed()))
    }

    /// The same, as a control.
    pub fn control(&self, part: f64) -> Control<'_> {
        Control { time: self.left(part), interrupt: Some(&self.interrupt), enough: None, memory: self.memory }
    }

    pub fn is_over(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.left(1.0).is_some_and(|left| left.is_zero())
    }
}

/// Searches; there is no schedule with an objective below `bound`, if that is known.
pub(super) fn search(
    arguments: &GausOptions,
    problem: &DataflowProblem,
    bound: Option<i128>,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<SearchResult, SearchError> {
    observer.say(match arguments.engine {
        GausEngine::Baseline(_) => "scheduling",
        GausEngine::Gaus | GausEngine::Exact => "scheduling by baselines",
    });
    let baseline = match arguments.engine {
        GausEngine::Baseline(baseline) => baseline,
        GausEngine::Gaus | GausEngine::Exact => {
            return Search::new(arguments, problem, bound, limits, observer)?.run();
        }
    };
    let found = if arguments.smallest_ii {
        baseline.smallest_interval(&problem.graph, problem.latency_bound, TRIES, limits.control(1.0))
    } else {
        baseline.schedule_within(problem, limits.control(1.0))
    };
    match found {
        Ok(schedule) => {
            let objective =
                Measure::new(&problem.graph, schedule.interval, &schedule.steps).objective(problem.objective);
            let trace = vec![(limits.begun.elapsed().as_secs_f64(), objective, baseline.name().to_owned())];
            Ok(SearchResult { schedule: Some(schedule), trace, ..SearchResult::default() })
        }
        Err(BaselineError::NotFound { .. }) => Ok(SearchResult::default()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a GPU is to compute gradients. It begins beside what comes before them.
fn on_gpu(arguments: &GausOptions, problem: &DataflowProblem) -> Result<(bool, Beginning), SearchError> {
    let has_gradient = !arguments.smallest_ii && problem.objective != DataflowObjective::Latency;
    match arguments.gpu {
        GausGpu::Never => Ok((false, Beginning(None))),
        GausGpu::Always if !has_gradient => {
            Err(SearchError::Gpu("the least interval and the least latency are no questions for one".into()))
        }
        GausGpu::Always => twill_gaus::gpu().map(|_| (true, Beginning(None))).map_err(SearchError::Gpu),
        GausGpu::Auto => {
            let (operations, seconds) = WORTH_A_GPU;
            let is_large = problem.graph.operations().len() >= operations && has_gradient;
            let is_worth_it = is_large && arguments.seconds().is_some_and(|given| given >= seconds);
            let begin = || drop(twill_gaus::gpu());
            // Without a thread it begins when it is needed.
            let thread = is_worth_it.then(|| std::thread::Builder::new().name("gpu".into()).spawn(begin));
            Ok((is_worth_it, Beginning(thread.and_then(Result::ok))))
        }
    }
}

struct Search<'a> {
    arguments: &'a GausOptions,
    problem: &'a DataflowProblem,
    bound: Option<i128>,
    options: Options,
    limits: Limits,
    observer: &'a mut dyn Observer,
    result: SearchResult,
    /// The best that GauS has is a baseline's schedule.
    is_stuck: bool,
    _beginning: Beginning,
}

/// A GPU that begins. A process that ended meanwhile would crash, so the search does not end before.
struct Beginning(Option<JoinHandle<()>>);

impl Drop for Beginning {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            drop(thread.join());
        }
    }
}

impl<'a> Search<'a> {
    fn new(
        arguments: &'a GausOptions,
        problem: &'a DataflowProblem,
        bound: Option<i128>,
        limits: &Limits,
        observer: &'a mut dyn Observer,
    ) -> Result<Search<'a>, SearchError> {
        let mut options = Options { seed: arguments.seed, target: bound, ..Options::default() };
        options.start = match arguments.start {
            GausStart::Middle => StartFrom::Middle,
            GausStart::Random => StartFrom::Random,
            GausStart::List => {
                let baseline = if problem.interval.is_some() { Baseline::IterativeModulo } else { Baseline::List };
                StartFrom::Given(baseline.schedule_within(problem, limits.control(1.0))?.steps)
            }
        };
        if arguments.no_gradient {
            options.descent = None;
        }
        if let Some(sweeps) = arguments.polish_sweeps {
            options.polish.sweeps = sweeps;
        }
        options.rounds = arguments.rounds.unwrap_or(options.rounds);
        let mut beginning = Beginning(None);
        if let Some(descent) = &mut options.descent {
            (descent.on_gpu, beginning) = on_gpu(arguments, problem)?;
        }
        Ok(Search {
            arguments,
            problem,
            bound,
            options,
            // The bound at the interval that is found takes the rest.
            limits: Limits {
                seconds: limits.seconds.map(|seconds| if arguments.smallest_ii { 0.9 * seconds } else { seconds }),
                ..limits.clone()
            },
            observer,
            result: SearchResult::default(),
            is_stuck: false,
            _beginning: beginning,
        })
    }

    fn run(mut self) -> Result<SearchResult, SearchError> {
        if self.arguments.smallest_ii {
            self.interval()?;
            self.stored()?;
        } else {
            self.gradient()?;
            self.windows()?;
        }
        Ok(self.result)
    }

    /// GauS on a problem, with messages to the board if there is one.
    fn schedule(
        &mut self,
        problem: &DataflowProblem,
        options: &Options,
        part: f64,
        board: Option<&Board<'_>>,
    ) -> Result<GausResult, SearchError> {
        let (begun, observer) = (self.limits.begun, &mut *self.observer);
        let trace = &mut self.result.trace;
        let mut tell = |progress: Progress| {
            let (objective, by) = (progress.objective, progress.part.name());
            match board {
                Some(board) => board.tell(objective, by),
                None if problem.objective == self.problem.objective => {
                    trace.push((begun.elapsed().as_secs_f64(), objective, by.to_owned()));
                }
                None => {}
            }
            observer.say(&format!("{}: {objective}", kind(problem.objective)));
        };
        let control = Control { enough: board.map(|board| &board.enough), ..self.limits.control(part) };
        let found = twill_gaus::schedule(problem, options, control, &mut tell)?;
        self.result.gradients += found.gradients;
        if found.on_gpu {
            self.result.gpu = twill_gaus::gpu().ok().map(str::to_owned);
        }
        self.result.at_start = self.result.at_start.or(found.at_start);
        Ok(found)
    }

    /// Baselines, GauS, and with a limit of time GauS again with other seeds, each time from what is known.
    fn gradient(&mut self) -> Result<(), SearchError> {
        let baselines = baselines(self.arguments, self.problem)?;
        let board = Board::new(self.problem, self.limits.begun);
        if let Some(bound) = self.bound {
            board.prove(LowerBound::known(bound));
        }
        if self.limits.seconds.is_none() {
            // One after another: the same answer every time.
            baselines.iter().for_each(|baseline| self.offer(&board, *baseline));
            self.rounds(&board, 1.0)?;
        } else {
            let (first, beside): (Vec<_>, Vec<_>) = baselines.into_iter().partition(|b| *b == Baseline::List);
            if !first.is_empty() {
                // Legal where nothing is limited, and there as soon as windows are.
                self.offer(&board, Baseline::Asap);
            }
            first.iter().for_each(|baseline| self.offer(&board, *baseline));
            let (arguments, problem, limits) = (self.arguments, self.problem, self.limits.clone());
            let part = if self.conflicts() > 0 { 0.5 } else { 1.0 };
            if board.known().best.is_some() && self.limits.is_over() {
                self.result.schedule = self.best_of(board);
                return Ok(());
            }
            std::thread::scope(|scope| {
                let helper = || accompany(&board, &beside, arguments, problem, &limits);
                let started = std::thread::Builder::new().name("bounds".into()).spawn_scoped(scope, helper);
                let found = self.rounds(&board, part);
                if found.is_err() || board.bound().is_some() {
                    board.enough.store(true, Ordering::Relaxed);
                }
                // Without a thread nothing is proved, and the search is as good.
                drop(started);
                found
            })?;
        }
        self.result.schedule = self.best_of(board);
        Ok(())
    }

    /// Takes over what a board knows; its schedule.
    fn best_of(&mut self, board: Board<'_>) -> Option<StartSteps> {
        let known = board.into_known();
        self.result.trace = known.trace;
        if self.bound.is_none() {
            self.bound = known.bound.as_ref().map(|bound| bound.value);
            self.result.bound = known.bound;
        }
        known.best.map(|(_, steps)| StartSteps { interval: self.problem.interval, steps })
    }

    fn offer(&self, board: &Board<'_>, baseline: Baseline) {
        // A baseline without a schedule has none to offer.
        if let Ok(found) = baseline.schedule_within(self.problem, self.limits.control(1.0)) {
            board.offer(baseline.name(), &found.steps);
        }
    }

    /// GauS, again and again while there is time.
    fn rounds(&mut self, board: &Board<'_>, part: f64) -> Result<(), SearchError> {
        if self.limits.is_over() && board.known().best.is_some() {
            return Ok(());
        }
        let mut options = self.options.clone();
        let mut means: Vec<f64> = Vec::new();
        for run in 0.. {
            let known = board.known().best.clone();
            options.known = known.iter().map(|(_, steps)| steps.clone()).collect();
            options.target = board.bound();
            let before = known.map(|(objective, _)| objective);
            let found = self.schedule(self.problem, &options, part, Some(board))?;
            if let (Some(schedule), Some(objective)) = (&found.schedule, found.objective) {
                board.offer("annealing", &schedule.steps);
                // Other seeds would not get further; windows may.
                self.is_stuck = before == Some(objective);
            }
            if run == 0 {
                means = found.means;
            }
            // The last bit is not enough for another search.
            let over = self.limits.left(part * 0.95).is_none_or(|left| left.is_zero());
            if over || self.arguments.rounds.is_some() || board.enough.load(Ordering::Relaxed) || self.limits.is_over()
            {
                break;
            }
            options.seed = options.seed.wrapping_add(1);
            if !means.is_empty() {
                options.start = StartFrom::Near(means.clone());
            }
            // What has not been found quickly may be found slowly.
            if let Some(descent) = &mut options.descent {
                descent.steps = (descent.steps * 2).min(MOST_STEPS);
            }
        }
        Ok(())
    }

    fn conflicts(&self) -> u64 {
        let (most, usual) = SMALL;
        let small = self.problem.graph.operations().len() <= most;
        // With a limit of time, what is left is better spent on another start.
        let is_stuck = self.is_stuck && self.limits.seconds.is_none();
        self.arguments.windows.unwrap_or(if small || is_stuck { usual } else { 0 })
    }

    /// Exact windows of what was found.
    fn windows(&mut self) -> Result<(), SearchError> {
        let conflicts = if self.limits.is_over() { 0 } else { self.conflicts() };
        let Some(start) = self.result.schedule.clone().filter(|_| conflicts > 0) else { return Ok(()) };
        let precedence = Precedence::new(&self.problem.graph, self.problem.interval);
        let measure = Measure::with(&self.problem.graph, &precedence, self.problem.interval, &start.steps);
        if self.bound.is_some_and(|bound| measure.objective(self.problem.objective) <= bound) {
            return Ok(());
        }
        let improved = self.improved(self.problem, start, conflicts)?;
        self.result.least = Some(improved.least);
        self.result.schedule = Some(improved.schedule);
        Ok(())
    }

    /// Exact windows of a loop's schedule: less storage, at the interval and the latency that it has.
    fn stored(&mut self) -> Result<(), SearchError> {
        let conflicts = if self.limits.is_over() { 0 } else { self.conflicts() };
        // What comes last is not what most time is for.
        let conflicts = if self.limits.seconds.is_some() { conflicts } else { conflicts / LAST };
        let Some(start) = self.result.schedule.clone().filter(|_| conflicts > 0) else { return Ok(()) };
        let graph = &self.problem.graph;
        let precedence = Precedence::new(graph, start.interval);
        let measure = Measure::with(graph, &precedence, start.interval, &start.steps);
        if measure.storage == 0 {
            return Ok(());
        }
        let problem = DataflowProblem {
            interval: start.interval,
            latency_bound: Some(measure.latency),
            objective: DataflowObjective::Storage,
            ..self.problem.clone()
        };
        let improved = self.improved(&problem, start, conflicts)?;
        self.result.schedule = Some(improved.schedule);
        Ok(())
    }

    /// What exact windows make of a schedule.
    fn improved(
        &mut self,
        problem: &DataflowProblem,
        start: StartSteps,
        conflicts: u64,
    ) -> Result<neighbourhood::Improved, SearchError> {
        let options = neighbourhood::Options { seed: self.arguments.seed, conflicts, ..Default::default() };
        let (begun, control) = (self.limits.begun, self.limits.control(1.0));
        let (trace, observer) = (&mut self.result.trace, &mut *self.observer);
        let (what, is_own) = (kind(problem.objective), problem.objective == self.problem.objective);
        let mut tell = |progress: neighbourhood::Progress| {
            if is_own {
                trace.push((begun.elapsed().as_secs_f64(), progress.objective, "windows".to_owned()));
            }
            observer.say(&format!("{what}: {} (window {})", progress.objective, progress.windows));
        };
        Ok(neighbourhood::improve(problem, start, &options, control, &mut tell)?)
    }

    /// The least interval, by GauS; where that is not proved, by the exact engine, and again by GauS at its interval.
    fn interval(&mut self) -> Result<(), SearchError> {
        let graph = &self.problem.graph;
        let (begun, control) = (self.limits.begun, self.limits.control(0.5));
        let (trace, observer) = (&mut self.result.trace, &mut *self.observer);
        let mut tell = |progress: Progress| {
            trace.push((begun.elapsed().as_secs_f64(), progress.objective, progress.part.name().to_owned()));
            observer.say(&format!("latency: {}", progress.objective));
        };
        let bound = self.problem.latency_bound;
        let found = twill_gaus::smallest_interval(graph, bound, &self.options, control, &mut tell)?;
        self.result.gradients += found.gradients;
        let reached = found.schedule.as_ref().and_then(|schedule| schedule.interval);
        self.result.schedule = found.schedule;
        let is_least = reached == Some(found.least_interval);
        let Some(exact) = self.exact(is_least) else { return Ok(()) };
        if let Outcome::Optimal { schedule, .. } = &exact {
            self.result.least_interval = u64::try_from(schedule.interval.0).ok();
        }
        match exact.schedule() {
            Some(times) if reached.is_none_or(|reached| i128::from(times.interval.0) <= i128::from(reached)) => {
                self.at_interval(times)
            }
            _ => Ok(()),
        }
    }

    /// What the exact engine finds, from GauS's schedule on; `None` where it does not take the loop, or could not better it.
    fn exact(&self, is_least: bool) -> Option<Outcome<IssueTimes>> {
        let graph = &self.problem.graph;
        let budget = Budget {
            clock: Clock::default(),
            time: self.limits.left(0.8),
            work: Some(LOOP_WORK),
            until: None,
            memory: self.arguments.memory(),
            interrupt: Some(Arc::clone(&self.limits.interrupt)),
        };
        if let Some(exact) = exact_loop(graph) {
            // It knows no latency.
            return (!is_least).then(|| twill_exact::modulo_schedule(&exact, &budget, &mut |_| ()).outcome);
        }
        let problem = exact_tiles(graph)?;
        let pipeline = self.result.schedule.as_ref().and_then(|schedule| pipeline(&problem, schedule));
        let options = SearchOptions { budget, pipeline, objective_work: Some(LENGTH_WORK), ..SearchOptions::default() };
        let outcome = twill_exact::pipeline(&problem, &options, &mut |_| ()).outcome;
        outcome.try_map(|found| Ok::<_, ()>(IssueTimes { interval: found.interval, times: found.cycles })).ok()
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
        let known = self.result.schedule.as_ref().filter(|known| known.interval == problem.interval);
        let shorter = match known {
            Some(known) if latency(&known.steps) <= latency(&exact) => return Ok(()),
            Some(known) => Some(known.steps.clone()),
            None => match self.schedule(&problem, &options, 0.9, None) {
                // The exact engine does not know the bound on latency, which may rule its interval out.
                Err(SearchError::Gaus(GausError::Mobility(_))) => return Ok(()),
                found => found?.schedule.map(|steps| steps.steps),
            },
        };
        let candidates = shorter.into_iter().chain([exact]).filter(|steps| latency(steps) <= bound);
        let Some(best) = candidates.min_by_key(|steps| latency(steps)) else { return Ok(()) };
        let latency = latency(&best);
        self.result.trace.push((self.limits.begun.elapsed().as_secs_f64(), latency.into(), "exact".to_owned()));
        problem.objective = DataflowObjective::Storage;
        problem.latency_bound = Some(latency);
        let options = Options { known: vec![best.clone()], ..options };
        let stored = self.schedule(&problem, &options, 1.0, None)?.schedule;
        self.result.schedule = Some(stored.unwrap_or(StartSteps { interval: problem.interval, steps: best }));
        Ok(())
    }
}

/// Baselines that the search shall not fall behind.
fn baselines(arguments: &GausOptions, problem: &DataflowProblem) -> Result<Vec<Baseline>, UnknownBaseline> {
    let names: Vec<&str> = arguments.known.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["none"] => Ok(Vec::new()),
        [] if problem.interval.is_some() => Ok(Vec::new()),
        [] => Ok(vec![Baseline::List, Baseline::LeastSpans, Baseline::ForceDirected]),
        named => named.iter().map(|name| name.parse()).collect(),
    }
}
