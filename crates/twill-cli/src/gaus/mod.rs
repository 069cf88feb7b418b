//! `twill gaus`: large graphs, without warps, by gradient or by a baseline; every answer replayed and bounded.

mod exact;
mod problem;
mod search;

pub(crate) use problem::is_loop;

use crate::Exit;
use crate::arguments::{EngineArgument, GausArguments, GausFormat};
use crate::error::Error;
use crate::progress::Ticker;
use crate::schedule::text_options;
use crate::{files, pictures, progress};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use thiserror::Error as ThisError;
use twill_check::{MeasuredSteps, Verified};
use twill_driver::Observer;
use twill_gaus::neighbourhood::NeighbourhoodError;
use twill_gaus::{BaselineError, Control, GausError, MobilityError, UnknownBaseline};
use twill_graph::format::{DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowValue};
use twill_graph::{DataflowObjective, DataflowProblem};

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
    #[error("no schedule has interval {requested}: resources and recurrences need {least}")]
    Interval { requested: u64, least: u64 },
}

impl From<MobilityError> for SearchError {
    fn from(error: MobilityError) -> SearchError {
        SearchError::Gaus(error.into())
    }
}

impl SearchError {
    /// Dependences alone rule out every schedule.
    pub(crate) fn proves_infeasible(&self) -> bool {
        matches!(
            self,
            SearchError::Gaus(GausError::Mobility(_))
                | SearchError::Baseline(BaselineError::Mobility(_))
                | SearchError::Interval { .. }
        )
    }
}

pub(crate) fn run(arguments: &GausArguments) -> Result<Exit, Error> {
    exact::refuse_elsewhere(arguments)?;
    if arguments.engine == EngineArgument::Exact {
        return exact::run(arguments);
    }
    answer(arguments).map(|(exit, _)| exit)
}

/// As `twill schedule` exits: what is not proved optimal is the best known.
pub(crate) fn run_for_proof(arguments: &GausArguments) -> Result<Exit, Error> {
    answer(arguments).map(|(exit, proved)| if exit == Exit::Done && !proved { Exit::Stopped } else { exit })
}

/// The exit code, and whether the answer is proved optimal.
fn answer(arguments: &GausArguments) -> Result<(Exit, bool), Error> {
    match solve(arguments) {
        Err(Error::Search { input, error }) if error.proves_infeasible() => {
            eprintln!("{input}: {error}");
            Ok((Exit::Infeasible, true))
        }
        other => other,
    }
}

/// Iterations of a loop in a trace.
pub(crate) const TRACED_ITERATIONS: u32 = 3;

/// What was found, replayed.
pub(crate) struct Found {
    problem: DataflowProblem,
    /// None where nothing was found in time.
    pub(crate) schedule: Option<Verified<MeasuredSteps>>,
    pub(crate) summary: DataflowSummary,
    proved: bool,
}

impl Found {
    /// The schedule with its graph; the figures alone where there is none.
    pub(crate) fn to_json(&self) -> String {
        match &self.schedule {
            Some(found) => DataflowScheduleFile::new(&self.problem, &found.steps, self.summary.clone()).to_json(),
            None => self.figures(),
        }
    }

    fn figures(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string(&self.summary).unwrap_or_default()
    }
}

fn solve(arguments: &GausArguments) -> Result<(Exit, bool), Error> {
    let output = arguments.page.output.as_deref();
    pictures::check_output(arguments.format() == GausFormat::Perfetto, output)?;
    let found = find(arguments, progress::interrupt())?;
    let text = || twill_report::dataflow_text(&found.summary, text_options(&arguments.page));
    match (arguments.format(), &found.schedule) {
        (GausFormat::Json, _) => files::write(output, &(found.to_json() + "\n"))?,
        (GausFormat::Text, _) => files::write(output, &text())?,
        (GausFormat::Summary, _) => files::write(output, &(found.figures() + "\n"))?,
        (GausFormat::Perfetto, Some(schedule)) => {
            let trace = twill_report::dataflow_perfetto(&found.problem.graph, &schedule.steps, TRACED_ITERATIONS);
            files::write(output, &trace)?;
        }
        (GausFormat::Perfetto, None) => eprint!("{}", text()),
    }
    Ok((if found.schedule.is_some() { Exit::Done } else { Exit::Stopped }, found.proved))
}

/// Searches as the arguments ask, and replays what was found.
pub(crate) fn find(arguments: &GausArguments, interrupt: Arc<AtomicBool>) -> Result<Found, Error> {
    let (mut seconds, started) = (DataflowSeconds::default(), Instant::now());
    let begun = started;
    let mut ticker = Ticker::new(arguments.quiet);
    ticker.say("reading the graph");
    let (mut problem, input) = problem::pose(arguments, &interrupt)?;
    seconds.reading = started.elapsed().as_secs_f64();

    let between = problem.graph.dependences().iter().filter(|d| d.distance > 0).count();
    if problem.interval.is_none() && between > 0 && !arguments.quiet {
        ticker.note(&format!(
            "note: {between} dependences between iterations do not count without --ii or --smallest-ii"
        ));
    }
    let refused = |error: SearchError| Error::Search { input: input.clone(), error };
    let started = Instant::now();
    // Before a search it may take a fifth of the time, and behind it what is left.
    let bounded = |problem: &DataflowProblem, time: Option<Duration>| {
        let control = Control { time, interrupt: Some(&interrupt), memory: arguments.memory() };
        twill_gaus::lower_bound_within(problem, control).map_err(|error| refused(error.into()))
    };
    let limit = arguments.seconds().map(Duration::from_secs_f64);
    ticker.say("proving a lower bound");
    let mut bound = if arguments.smallest_ii { None } else { Some(bounded(&problem, limit.map(|limit| limit / 5))?) };
    let least_interval = match arguments.smallest_ii {
        true => problem.interval,
        false => problem.interval.map(|_| problem::least_interval(arguments, &problem.graph, &interrupt)),
    };
    seconds.bound = started.elapsed().as_secs_f64();
    if let (Some(requested), Some(least)) = (arguments.ii, least_interval)
        && requested < least
    {
        return Err(refused(SearchError::Interval { requested, least }));
    }

    let started = Instant::now();
    let known = bound.as_ref().map(|bound| bound.value);
    let answer = search::search(arguments, &problem, known, begun, Arc::clone(&interrupt), ticker).map_err(refused)?;
    seconds.search = started.elapsed().as_secs_f64();
    if let Some(schedule) = &answer.schedule {
        problem.interval = schedule.interval;
    } else if arguments.smallest_ii {
        // No interval is known, and the bound on latency may ask for a longer one than the least.
        problem.latency_bound = None;
    }
    let bound = match bound.take() {
        Some(bound) => bound,
        None => bounded(&problem, limit.map(|limit| limit.saturating_sub(begun.elapsed())))?,
    };

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
        interval: problem.interval.filter(|_| replayed.is_some() || !arguments.smallest_ii),
        least_interval: answer.least_interval.max(least_interval),
        peaks: names.zip(peaks).collect(),
        communication: replayed.as_ref().map(|r| r.communication),
        storage: replayed.as_ref().map(|r| r.storage),
        at_start: answer.at_start,
        gradients: answer.gradients,
        seconds,
        trace: answer.trace,
    };
    let proved = summary.objective.value == Some(summary.objective.lower_bound)
        && (!arguments.smallest_ii || summary.interval == summary.least_interval);
    Ok(Found { problem, schedule: replayed, summary, proved })
}

/// What an objective is called.
pub(crate) fn kind(objective: DataflowObjective) -> &'static str {
    match objective {
        DataflowObjective::Resources { .. } => "resources",
        DataflowObjective::Storage => "storage",
        DataflowObjective::Latency => "latency",
    }
}
