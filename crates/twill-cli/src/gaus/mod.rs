//! `twill gaus`: large graphs, without warps, by gradient or by a baseline; every answer replayed and bounded.

mod arguments;
mod problem;

pub(crate) use arguments::GausArguments;

use crate::Exit;
use crate::error::Error;
use crate::files;
use crate::progress::{self, Ticker};
use crate::schedule::text_options;
use arguments::{EngineArgument, GausFormat, StartArgument};
use std::time::{Duration, Instant};
use thiserror::Error as ThisError;
use twill_gaus::neighbourhood::{self, NeighbourhoodError};
use twill_gaus::{
    Baseline, BaselineError, Control, GausError, MobilityError, Options, Progress, StartFrom, UnknownBaseline,
};
use twill_graph::format::{DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowValue};
use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};

/// Intervals that a baseline may try from the least on.
const TRIES: u64 = 10_000;

/// Graphs of up to so many operations are searched by exact windows, too, and with how much effort.
const SMALL: (usize, u64) = (1000, 1_000_000);

/// What a search gave.
#[derive(Default)]
struct Answer {
    schedule: Option<StartSteps>,
    at_start: Option<i128>,
    gradients: u64,
    trace: Vec<(f64, i128)>,
    /// What exact search proved of the objective.
    least: Option<i128>,
}

/// Why there was no search.
#[derive(Debug, ThisError)]
pub(crate) enum SearchError {
    #[error(transparent)]
    Gaus(#[from] GausError),
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    #[error("--known: {0}")]
    Known(#[from] UnknownBaseline),
    #[error(transparent)]
    Windows(#[from] NeighbourhoodError),
}

impl From<MobilityError> for SearchError {
    fn from(error: MobilityError) -> SearchError {
        SearchError::Gaus(error.into())
    }
}

impl SearchError {
    /// Dependences alone rule out every schedule.
    fn proves_infeasible(&self) -> bool {
        matches!(self, SearchError::Gaus(GausError::Mobility(_)) | SearchError::Baseline(BaselineError::Mobility(_)))
    }
}

pub(crate) fn run(arguments: &GausArguments) -> Result<Exit, Error> {
    match solve(arguments) {
        Err(Error::Search { input, error }) if error.proves_infeasible() => {
            eprintln!("{input}: {error}");
            Ok(Exit::Infeasible)
        }
        other => other,
    }
}

fn solve(arguments: &GausArguments) -> Result<Exit, Error> {
    let (mut seconds, started) = (DataflowSeconds::default(), Instant::now());
    let (mut problem, input) = problem::pose(arguments)?;
    seconds.reading = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let refused = |error: SearchError| Error::Search { input: input.clone(), error };
    let answer = search(arguments, &problem).map_err(refused)?;
    seconds.search = started.elapsed().as_secs_f64();
    if let Some(schedule) = &answer.schedule {
        problem.interval = schedule.interval;
    }

    let started = Instant::now();
    let bound = twill_gaus::lower_bound(&problem).map_err(|error| refused(error.into()))?;
    let least_interval = problem.interval.map(|_| twill_gaus::least_interval(&problem.graph).least());
    seconds.bound = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let verify = |steps| twill_check::verify_dataflow(&problem, steps);
    let replayed = answer.schedule.map(verify).transpose();
    let replayed = replayed.map_err(|error| Error::Defect { input: input.clone(), error })?;
    seconds.replay = started.elapsed().as_secs_f64();

    let names = problem.graph.resources().iter().map(|r| r.name.clone());
    let peaks = replayed.iter().flat_map(|r| &r.peaks).copied();
    let summary = DataflowSummary {
        graph: problem.graph.name().into(),
        operations: problem.graph.operations().len(),
        dependences: problem.graph.dependences().len(),
        engine: arguments.engine.name().into(),
        seed: arguments.seed,
        objective: DataflowValue {
            kind: kind(problem.objective).into(),
            value: replayed.as_ref().map(|r| r.objective),
            lower_bound: answer.least.unwrap_or(bound.value).max(bound.value),
        },
        latency: replayed.as_ref().map(|r| r.latency),
        latency_bound: problem.latency_bound,
        interval: problem.interval,
        least_interval,
        peaks: names.zip(peaks).collect(),
        communication: replayed.as_ref().map(|r| r.communication),
        storage: replayed.as_ref().map(|r| r.storage),
        at_start: answer.at_start,
        gradients: answer.gradients,
        seconds,
        trace: answer.trace,
    };
    let text = match (arguments.format, &replayed) {
        (GausFormat::Json, Some(found)) => DataflowScheduleFile::new(&problem, &found.steps, summary).to_json() + "\n",
        (GausFormat::Text, _) => twill_report::dataflow_text(&summary, text_options(&arguments.page)),
        _ => serde_json::to_string(&summary).unwrap_or_default() + "\n",
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(if replayed.is_some() { Exit::Done } else { Exit::Stopped })
}

fn search(arguments: &GausArguments, problem: &DataflowProblem) -> Result<Answer, SearchError> {
    let interrupt = progress::interrupt();
    let control = Control { time: arguments.time_limit.map(Duration::from_secs_f64), interrupt: Some(&interrupt) };
    let baseline = match arguments.engine {
        EngineArgument::Baseline(baseline) => baseline,
        EngineArgument::Gaus => return gaus(arguments, problem, control),
    };
    let found = if arguments.smallest_ii {
        baseline.smallest_interval(&problem.graph, problem.latency_bound, TRIES)
    } else {
        baseline.schedule(problem)
    };
    match found {
        Ok(schedule) => Ok(Answer { schedule: Some(schedule), ..Answer::default() }),
        Err(BaselineError::NotFound { .. }) => Ok(Answer::default()),
        Err(error) => Err(error.into()),
    }
}

fn gaus(arguments: &GausArguments, problem: &DataflowProblem, control: Control<'_>) -> Result<Answer, SearchError> {
    let mut options = Options { seed: arguments.seed, ..Options::default() };
    options.start = match arguments.start {
        StartArgument::Middle => StartFrom::Middle,
        StartArgument::Random => StartFrom::Random,
        StartArgument::List => {
            let baseline = if problem.interval.is_some() { Baseline::IterativeModulo } else { Baseline::List };
            StartFrom::Given(baseline.schedule(problem)?.steps)
        }
    };
    let begun = Instant::now();
    options.known = known(arguments, problem)?;
    // Time for baselines is time for the search.
    let left = |time: Duration| time.saturating_sub(begun.elapsed());
    let control = Control { time: control.time.map(left), ..control };
    if arguments.no_gradient {
        options.descent = None;
    }
    if let Some(sweeps) = arguments.polish_sweeps {
        options.polish.sweeps = sweeps;
    }
    options.rounds = arguments.rounds.unwrap_or(options.rounds);
    let mut ticker = Ticker::new(arguments.quiet);
    let mut trace = Vec::new();
    let mut tell = |progress: Progress| {
        trace.push((progress.elapsed.as_secs_f64(), progress.objective));
        ticker.say(&format!("{}: {}", kind(problem.objective), progress.objective));
    };
    if arguments.smallest_ii {
        let found = twill_gaus::smallest_interval(&problem.graph, problem.latency_bound, &options, control, &mut tell)?;
        return Ok(Answer { schedule: found.schedule, gradients: found.gradients, trace, ..Answer::default() });
    }
    let (most, usual) = SMALL;
    let small = problem.graph.operations().len() <= most;
    let conflicts = arguments.windows.unwrap_or(if small { usual } else { 0 });
    let part = |time: Duration| if conflicts > 0 { time / 2 } else { time };
    let started = Instant::now();
    let first = Control { time: control.time.map(part), ..control };
    let found = twill_gaus::schedule(problem, &options, first, &mut tell)?;
    let mut answer = Answer { at_start: found.at_start, gradients: found.gradients, ..Answer::default() };
    answer.schedule = found.schedule;
    if let Some(start) = answer.schedule.clone().filter(|_| conflicts > 0) {
        let options = neighbourhood::Options { seed: arguments.seed, conflicts, ..Default::default() };
        let (before, left) = (started.elapsed(), |time: Duration| time.saturating_sub(started.elapsed()));
        let control = Control { time: control.time.map(left), ..control };
        let mut tell = |progress: neighbourhood::Progress| {
            let elapsed = before + progress.elapsed;
            trace.push((elapsed.as_secs_f64(), progress.objective));
            ticker.say(&format!("{}: {} (window {})", kind(problem.objective), progress.objective, progress.windows));
        };
        let improved = neighbourhood::improve(problem, start, &options, control, &mut tell)?;
        answer.least = Some(improved.least);
        answer.schedule = Some(improved.schedule);
    }
    answer.trace = trace;
    Ok(answer)
}

/// Schedules of baselines that the search shall not fall behind.
fn known(arguments: &GausArguments, problem: &DataflowProblem) -> Result<Vec<Vec<u64>>, SearchError> {
    let names: Vec<&str> = arguments.known.iter().map(String::as_str).collect();
    let baselines = match names.as_slice() {
        ["none"] => return Ok(Vec::new()),
        [] if problem.interval.is_some() || arguments.smallest_ii => return Ok(Vec::new()),
        [] => vec![Baseline::List, Baseline::LeastSpans],
        named => named.iter().map(|name| name.parse()).collect::<Result<_, UnknownBaseline>>()?,
    };
    // A baseline without a schedule has none to offer.
    Ok(baselines.into_iter().filter_map(|baseline| Some(baseline.schedule(problem).ok()?.steps)).collect())
}

fn kind(objective: DataflowObjective) -> &'static str {
    match objective {
        DataflowObjective::Resources { .. } => "resources",
        DataflowObjective::Storage => "storage",
        DataflowObjective::Latency => "latency",
    }
}
