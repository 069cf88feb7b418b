//! `twill gaus`: large graphs, without warps, by gradient or by a baseline; every answer replayed and bounded.

mod arguments;
mod problem;
mod search;

pub(crate) use arguments::GausArguments;

use crate::Exit;
use crate::error::Error;
use crate::files;
use crate::schedule::text_options;
use arguments::GausFormat;
use std::time::Instant;
use thiserror::Error as ThisError;
use twill_gaus::neighbourhood::NeighbourhoodError;
use twill_gaus::{BaselineError, GausError, MobilityError, UnknownBaseline};
use twill_graph::DataflowObjective;
use twill_graph::format::{DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowValue};

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

    let refused = |error: SearchError| Error::Search { input: input.clone(), error };
    let started = Instant::now();
    let mut bound = twill_gaus::lower_bound(&problem).map_err(|error| refused(error.into()))?;
    let least_interval = problem.interval.map(|_| twill_gaus::least_interval(&problem.graph).least());
    seconds.bound = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let known = (!arguments.smallest_ii).then_some(bound.value);
    let answer = search::search(arguments, &problem, known).map_err(refused)?;
    seconds.search = started.elapsed().as_secs_f64();
    if let Some(schedule) = answer.schedule.as_ref().filter(|schedule| schedule.interval != problem.interval) {
        problem.interval = schedule.interval;
        bound = twill_gaus::lower_bound(&problem).map_err(|error| refused(error.into()))?;
    }

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
        least_interval: answer.least_interval.max(least_interval),
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

fn kind(objective: DataflowObjective) -> &'static str {
    match objective {
        DataflowObjective::Resources { .. } => "resources",
        DataflowObjective::Storage => "storage",
        DataflowObjective::Latency => "latency",
    }
}
