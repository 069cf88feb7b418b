//! Large-neighbourhood search: windows of a legal schedule are solved anew, exactly, while all else stays.
//!
//! A window's operations may move, within reach and up to their neighbours outside. Whether that can make the objective
//! smaller is a question for a SAT solver with linear constraints ([`encoding`]): one that also refutes, so that windows
//! grow where they are decided and shrink where they are not, and the window that holds everything proves optimality.
//!
//! A peak says nothing about one window: it often takes several to lower it. So the search sets a target below a peak and
//! asks each window for fewer slots above the target, until there are none; communication may pay for that, in all less
//! than the peak saves. Where windows do not get there, the target moves closer.
//!
//! After Shaw, "Using constraint programming and local search methods to solve vehicle routing problems" (1998), for the
//! neighbourhoods, and Ohrimenko, Stuckey, Codish, "Propagation via lazy clause generation" (2009), for the encoding.

mod brake;
mod cones;
mod encoding;
mod search;
mod sums;
#[cfg(test)]
mod tests;
mod tracks;
mod windows;

use crate::control::{Clock, Control};
use crate::model::{GausError, Model};
use crate::{Measure, Precedence, is_legal, lower_bound_within};
use search::Search;
use std::time::Duration;
use thiserror::Error;
use tracks::Costs;
use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};

/// How to search. Without a limit of time, the answer depends on these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The seed of random choices. Default 1.
    pub seed: u64,
    /// Effort in all, in conflicts of the solver (its other work counts as conflicts, too). Default 20 000 000.
    pub conflicts: u64,
    /// Effort for one window; more after many that did not help. Default 2000.
    pub window_conflicts: u64,
    /// Operations in the first windows. Default 48.
    pub window: usize,
    /// True if the whole graph is tried as a window, again and again with more effort, which is what proves optimality.
    /// Default on.
    pub whole: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, conflicts: 20_000_000, window_conflicts: 2000, window: 48, whole: true }
    }
}

/// The message after every improvement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Windows tried so far.
    pub windows: u64,
    /// Objective of the best schedule.
    pub objective: i128,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Improved {
    /// The best schedule, legal, and no worse than the start.
    pub schedule: StartSteps,
    /// Its objective.
    pub objective: i128,
    /// No schedule has a smaller objective.
    pub proved: bool,
    /// No schedule has an objective below this: the bound, or the objective where it is proved.
    pub least: i128,
    /// Windows that were asked about.
    pub windows_tried: u64,
    /// Windows that were changed.
    pub windows_improved: u64,
    /// Effort, in conflicts.
    pub conflicts: u64,
}

/// Why a schedule cannot be improved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NeighbourhoodError {
    /// There is no schedule, or it is too long.
    #[error(transparent)]
    Problem(#[from] GausError),
    /// The start is no schedule of the problem.
    #[error("the schedule to start from breaks a dependence, the latency bound or a limit, or has another interval")]
    Start,
}

impl From<crate::MobilityError> for NeighbourhoodError {
    fn from(error: crate::MobilityError) -> Self {
        Self::Problem(error.into())
    }
}

/// Improves `start`, a legal schedule of `problem`. Objectives above 2^60 are left as they are.
///
/// ```
/// use twill_gaus::{Baseline, Control, neighbourhood};
/// use twill_graph::{DataflowObjective, DataflowProblem, Random};
///
/// let graph = "nodes=30,density=0.1,seed=7".parse::<Random>().unwrap().graph().unwrap();
/// let objective = DataflowObjective::Resources { peak: 1, communication: 0 };
/// let problem = DataflowProblem { graph, latency_bound: Some(12), interval: None, objective };
/// let start = Baseline::Asap.schedule(&problem).unwrap();
/// let options = neighbourhood::Options::default();
/// let improved = neighbourhood::improve(&problem, start, &options, Control::default(), &mut |_| {}).unwrap();
/// assert!(improved.proved);
/// ```
///
/// # Errors
/// When `start` is not legal, or the problem is not one for this engine.
pub fn improve(
    problem: &DataflowProblem,
    start: StartSteps,
    options: &Options,
    control: Control<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<Improved, NeighbourhoodError> {
    let clock = Clock::start(control);
    let precedence = Precedence::new(&problem.graph, problem.interval);
    if start.interval != problem.interval
        || start.steps.len() != problem.graph.operations().len()
        || !is_legal(problem, &precedence, &start.steps)
    {
        return Err(NeighbourhoodError::Start);
    }
    let measure = Measure::with(&problem.graph, &precedence, problem.interval, &start.steps);
    let objective = measure.objective(problem.objective);
    let bound = lower_bound_within(problem, clock.share(0.2).rest())?;
    let mut improved = Improved {
        schedule: start,
        objective,
        proved: objective <= bound.value,
        least: bound.value,
        windows_tried: 0,
        windows_improved: 0,
        conflicts: 0,
    };
    if improved.proved {
        return Ok(improved);
    }
    // Where latency is not bounded, that of the start is: all there is to find if latency is the objective.
    let latency = problem.latency_bound.unwrap_or(measure.latency);
    let latency = if problem.objective == DataflowObjective::Latency { measure.latency } else { latency };
    let exact = problem.latency_bound.is_some() || problem.objective == DataflowObjective::Latency;
    let model = Model::new(problem, &precedence, latency)?;
    let Some(costs) = Costs::new(&model, &bound) else { return Ok(improved) };
    let steps: Vec<i64> = improved.schedule.steps.iter().map(|&step| step as i64).collect();
    let mut search = Search::new(&model, &costs, steps, objective as i64, *options, clock, report);
    improved.proved = search.run() && exact;
    (improved.windows_tried, improved.windows_improved) = (search.tried, search.improved);
    improved.conflicts = search.effort;
    improved.objective = search.best_value.into();
    improved.schedule.steps = search.best.iter().map(|&step| step as u64).collect();
    improved.proved |= improved.objective <= improved.least;
    improved.least = if improved.proved { improved.objective } else { improved.least };
    debug_assert!(is_legal(problem, &precedence, &improved.schedule.steps), "windows keep every rule");
    Ok(improved)
}
