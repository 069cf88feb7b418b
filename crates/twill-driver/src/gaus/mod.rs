//! Large graphs, without warps: by gradient, by a baseline, or by the exact engine; every answer replayed and bounded.

mod beside;
mod board;
mod exact;
mod exact_loop;
mod problem;
mod search;
mod warm_start;

pub use exact::{ExactLoop, exact};
pub use problem::is_loop;
pub(crate) use warm_start::warm_start;

use crate::files::FileError;
use crate::options::Choice as _;
use crate::options::GausOptions;
use crate::{Error, Observer};
use search::Limits;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thiserror::Error as ThisError;
use twill_check::{MeasuredSteps, Verified};
use twill_gaus::neighbourhood::NeighbourhoodError;
use twill_gaus::{BaselineError, Measure, MobilityError, UnknownBaseline};
use twill_graph::format::{
    DataflowFound, DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowValue, FormatError,
};
use twill_graph::{DataflowObjective, DataflowProblem};
use web_time::Instant;

/// Why there was no search.
#[derive(Debug, ThisError)]
pub enum SearchError {
    /// GauS does not take the problem.
    #[error(transparent)]
    Gaus(#[from] twill_gaus::GausError),
    /// A baseline does not take the problem.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// There is no such baseline.
    #[error("--known: {0}")]
    Known(#[from] UnknownBaseline),
    /// Windows do not take the problem.
    #[error(transparent)]
    Windows(#[from] NeighbourhoodError),
    /// There is no GPU.
    #[error("--gpu always: {0}; leave it out, and processors compute gradients")]
    Gpu(String),
    /// The interval is too short.
    #[error("no schedule has interval {requested}: resources and recurrences need {least}")]
    Interval {
        /// What was asked for, in steps.
        requested: u64,
        /// What is needed, in steps.
        least: u64,
    },
}

impl From<MobilityError> for SearchError {
    fn from(error: MobilityError) -> SearchError {
        SearchError::Gaus(error.into())
    }
}

impl SearchError {
    /// Dependences alone rule out every schedule.
    pub fn proves_infeasible(&self) -> bool {
        matches!(
            self,
            SearchError::Gaus(twill_gaus::GausError::Mobility(_))
                | SearchError::Baseline(BaselineError::Mobility(_))
                | SearchError::Interval { .. }
        )
    }
}

/// Why there is no answer.
#[derive(Debug, ThisError)]
pub enum GausError {
    /// The input does not read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no loop that can be lowered.
    #[error(transparent)]
    Driver(#[from] Box<Error>),
    /// The machine does not read.
    #[error(transparent)]
    Machine(#[from] Box<twill_machine::MachineError>),
    /// It is no graph.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It is a graph that means nothing.
    #[error("{input}: {error}")]
    Dataflow {
        /// The input.
        input: String,
        /// Why.
        error: twill_graph::DataflowError,
    },
    /// The random graph cannot be drawn.
    #[error("--random: {0}")]
    Random(twill_graph::RandomError),
    /// The time was over, or somebody interrupted it, before there was a graph.
    #[error("{input}: stopped before the graph was read; give it more time (--time-limit)")]
    Stopped {
        /// The input.
        input: String,
    },
    /// There was no search.
    #[error("{input}: {error}")]
    Search {
        /// The input.
        input: String,
        /// Why.
        error: SearchError,
    },
    /// A kernel has several loops.
    #[error("{input}: the kernel has {count} loops, and GauS schedules one at a time; choose one with --loop")]
    SeveralLoops {
        /// The input.
        input: String,
        /// Its loops.
        count: usize,
    },
    /// The exact engine does not take the graph.
    #[error(
        "{input}: --engine exact takes loops whose operations each use one unit of one resource, from their start, all of that resource for as long; leave --engine out for GauS"
    )]
    NotExact {
        /// The input.
        input: String,
    },
    /// The exact engine would leave an option out.
    #[error("--engine exact would leave --{option} out")]
    OnlyGaus {
        /// The option.
        option: &'static str,
    },
    /// The other engines would leave an option out.
    #[error("--{option} is for --engine exact")]
    OnlyExact {
        /// The option.
        option: &'static str,
    },
    /// The checker does not accept what was found.
    #[error(
        "the schedule found for {input} does not survive its replay; this is a defect of Twill, please report it:\n{error}"
    )]
    Defect {
        /// The input.
        input: String,
        /// What is wrong.
        error: twill_check::Rejected,
    },
}

impl GausError {
    /// Dependences alone rule out every schedule.
    pub fn proves_infeasible(&self) -> bool {
        matches!(self, GausError::Search { error, .. } if error.proves_infeasible())
    }

    /// A limit of time or somebody ended it before there was anything to know.
    pub fn is_stopped(&self) -> bool {
        matches!(self, GausError::Stopped { .. })
    }
}

impl From<Error> for GausError {
    fn from(error: Error) -> GausError {
        GausError::Driver(Box::new(error))
    }
}

impl From<twill_machine::MachineError> for GausError {
    fn from(error: twill_machine::MachineError) -> GausError {
        GausError::Machine(Box::new(error))
    }
}

/// What was found, replayed.
#[derive(Clone, Debug)]
pub struct GausReport {
    /// The problem, at the interval that was found.
    pub problem: DataflowProblem,
    /// None where nothing was found in time.
    pub schedule: Option<Verified<MeasuredSteps>>,
    /// Figures.
    pub summary: DataflowSummary,
    /// Whether it is proved optimal.
    pub proved: bool,
}

impl GausReport {
    /// The schedule with its graph; the figures alone where there is none.
    pub fn to_json(&self) -> String {
        match &self.schedule {
            Some(found) => DataflowScheduleFile::new(&self.problem, &found.steps, self.summary.clone()).to_json(),
            None => self.figures(),
        }
    }

    /// The figures, as JSON on one line.
    pub fn figures(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string(&self.summary).unwrap_or_default()
    }
}

/// Schedules a graph, or a random one where there is no input, until `interrupt` is set; what was found is replayed.
///
/// # Errors
/// When the input does not read, or dependences rule out every schedule ([`SearchError::proves_infeasible`]).
pub fn find(
    input: Option<&Path>,
    arguments: &GausOptions,
    interrupt: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<GausReport, GausError> {
    exact::refuse_elsewhere(arguments)?;
    let (mut seconds, started) = (DataflowSeconds::default(), Instant::now());
    let begun = started;
    observer.say("reading the graph");
    let (mut problem, input) = problem::state(input, arguments, begun, &interrupt)?;
    seconds.reading = started.elapsed().as_secs_f64();

    let between = problem.graph.dependences().iter().filter(|d| d.distance > 0).count();
    if problem.interval.is_none() && between > 0 {
        observer.note(&format!(
            "note: {between} dependences between iterations do not count without --ii or --smallest-ii"
        ));
    }
    let refused = |error: SearchError| GausError::Search { input: input.clone(), error };
    let limits = Limits {
        begun,
        seconds: arguments.seconds().map(|seconds| seconds - replaying(&problem)),
        interrupt: Arc::clone(&interrupt),
        memory: arguments.memory(),
    };
    let bounded = |problem: &DataflowProblem| {
        let bound = twill_gaus::lower_bound_within(problem, limits.control(1.0));
        let mut bound = bound.map_err(|error| refused(error.into()))?;
        let stronger = beside::strengthened(problem, &bound, limits.control(1.0));
        bound.value = stronger.map_or(bound.value, |stronger| stronger.max(bound.value));
        Ok::<_, GausError>(bound)
    };
    let started = Instant::now();
    // With a limit of time the bound comes beside the search, or after it; for the least interval always after it.
    let beside = arguments.smallest_ii || limits.seconds.is_some();
    observer.say("proving a lower bound");
    let mut bound = if beside { None } else { Some(bounded(&problem)?) };
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
    let answer = search::search(arguments, &problem, known, &limits, observer).map_err(refused)?;
    seconds.search = started.elapsed().as_secs_f64();
    if let Some(schedule) = &answer.schedule {
        problem.interval = schedule.interval;
    } else if arguments.smallest_ii {
        // No interval is known, and the bound on latency may ask for a longer one than the least.
        problem.latency_bound = None;
    }
    let started = Instant::now();
    let bound = match bound.take().or(answer.bound) {
        Some(bound) => bound,
        None => bounded(&problem)?,
    };
    seconds.bound += started.elapsed().as_secs_f64();

    let started = Instant::now();
    let verify = |steps| twill_check::verify_dataflow(&problem, steps);
    let replayed = answer.schedule.map(verify).transpose();
    let replayed = replayed.map_err(|error| GausError::Defect { input: input.clone(), error })?;
    seconds.replay = started.elapsed().as_secs_f64();
    let by = answer.trace.iter().min_by_key(|(_, objective, _)| *objective).filter(|_| replayed.is_some());
    let found = by.map(|(seconds, _, by)| DataflowFound { by: by.clone(), seconds: *seconds });

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
        gpu: answer.gpu,
        seconds,
        found,
        trace: answer.trace.iter().map(|(seconds, objective, _)| (*seconds, *objective)).collect(),
        trace_by: answer.trace.into_iter().map(|(_, _, by)| by).collect(),
    };
    let proved = summary.objective.value == Some(summary.objective.lower_bound)
        && (!arguments.smallest_ii || summary.interval == summary.least_interval);
    Ok(GausReport { problem, schedule: replayed, summary, proved })
}

/// Seconds that a replay and the rest will take, by what measuring a schedule does.
fn replaying(problem: &DataflowProblem) -> f64 {
    let started = Instant::now();
    let steps = vec![0; problem.graph.operations().len()];
    Measure::new(&problem.graph, problem.interval, &steps);
    REPLAY * started.elapsed().as_secs_f64()
}

/// Time of a replay and of the last steps of the search, in times of a measure.
const REPLAY: f64 = 6.0;

/// What an objective is called.
pub fn kind(objective: DataflowObjective) -> &'static str {
    match objective {
        DataflowObjective::Resources { .. } => "resources",
        DataflowObjective::Storage => "storage",
        DataflowObjective::Latency => "latency",
    }
}
