//! What is known in addition to a proof: the bound of the wider space of schedules, and what the generated kernel takes by simulation.

use crate::input::generated_source;
use crate::tune;
use crate::{LoopProblem, Request, Session};
use twill_check::Verified;
use twill_exact::{Budget, SearchOptions};
use twill_graph::{Cycles, ModelOptions, Outcome, Report, Schedule, WarpAssignment};

/// Work for the search that raises the bound of the wider space: a few tenths of a second.
const WIDER_WORK: u64 = 300_000;

/// Adds to the reports of a request's loops what is known in addition to the proof.
pub(crate) fn estimated(
    request: &Request,
    problems: &[LoopProblem],
    reports: Vec<Report<Verified<Schedule>>>,
    session: &mut Session<'_>,
) -> Vec<Report<Verified<Schedule>>> {
    let mut simulated = simulated(request, problems, &reports);
    let sass = tune::sass_estimate(request, session).filter(|sass| sass.len() == simulated.len());
    for ((one, report), (interval, cycles)) in simulated.iter_mut().zip(&reports).zip(sass.into_iter().flatten()) {
        // Of another interval it would be another kernel's.
        let is_same = report.outcome.schedule().is_some_and(|schedule| schedule.as_ref().interval == Cycles(interval));
        one.sass = is_same.then_some(Cycles(i64::from(cycles)));
    }
    let mut simulated = simulated.into_iter();
    let each = problems.iter().zip(reports);
    each.map(|(one, report)| Report {
        wider_bound: wider_bound(one, report.outcome.schedule().map(|s| s.as_ref().interval), session),
        simulated: simulated.next(),
        ..report
    })
    .collect()
}

/// The least interval that is proved for any assignment of operations to warp groups; `None` where all assignments were searched.
/// `interval` is what a schedule was found at: nothing above it is requested.
pub fn wider_bound(one: &LoopProblem, interval: Option<Cycles>, session: &mut Session<'_>) -> Option<Cycles> {
    let problem = &one.problem;
    if problem.options().warp_assignment == WarpAssignment::Free {
        return None;
    }
    let problem = problem.with_options(ModelOptions { warp_assignment: WarpAssignment::Free, ..*problem.options() });
    let bound = twill_exact::lower_bound(&problem).interval;
    if interval.is_some_and(|interval| interval <= bound) || session.is_stopped() {
        return Some(bound.min(interval.unwrap_or(bound)));
    }
    let work = session.search.budget.work.map_or(WIDER_WORK, |work| work.min(WIDER_WORK));
    let options = SearchOptions {
        budget: Budget { work: Some(work), ..session.search.budget.clone() },
        largest_interval: interval.map(|interval| interval - Cycles(1)),
        objective_work: Some(0),
        ..SearchOptions::default()
    };
    let report = twill_exact::schedule(&problem, &options, &mut |progress| session.observer.progress(&progress));
    Some(match (&report.outcome, interval) {
        // No assignment has a smaller one.
        (Outcome::Infeasible { .. }, Some(interval)) => interval,
        _ => report.lower_bound.interval,
    })
}

/// By loop, what an iteration takes by simulation of the warp programs that these schedules become; empty where no such kernel is
/// generated or simulated.
fn simulated(
    request: &Request,
    problems: &[LoopProblem],
    reports: &[Report<Verified<Schedule>>],
) -> Vec<twill_graph::SimulatedCycles> {
    let schedules: Option<Vec<&Verified<Schedule>>> = reports.iter().map(|report| report.outcome.schedule()).collect();
    let Some(schedules) = schedules.filter(|_| request.limits.normalise == 0) else { return Vec::new() };
    let Ok(source) = generated_source(request) else { return Vec::new() };
    tune::of_schedules(&source, problems, &schedules)
}
