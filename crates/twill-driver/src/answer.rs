//! What a request is answered with: the schedules of its loops, and what else is known of them.

use crate::estimate::estimated;
use crate::solve::naive;
use crate::{Error, LoopProblem, Loops, Request, Session, Silent, siblings, solve};
use twill_check::Verified;
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{MultiLoopProblem, MultiLoopReport, Outcome, Report, Schedule};

/// Work for a schedule that is built where a search was stopped before it had one.
const GRACE_WORK: u64 = 1_000_000;

const NOT_PIPELINED: &str = "note: stopped before a schedule was found; the one shown runs one iteration after another";

/// Whether a budget or an interrupt ended a search before it had a schedule; what is unknown for another reason stays so, as the
/// paper's liveness with more stages than are tried.
fn was_stopped<S>(outcome: &Outcome<S>) -> bool {
    matches!(outcome, Outcome::Unknown { stopped_by } if stopped_by == "interrupt" || stopped_by.ends_with("budget"))
}

/// A session for such a schedule, whatever the budget says.
fn grace(observer: &mut Silent) -> Session<'_> {
    let budget = Budget { work: Some(GRACE_WORK), ..Budget::default() };
    Session::new(SearchOptions { budget, ..SearchOptions::default() }, observer)
}

/// What was found for the loops of a kernel.
pub enum Answer {
    /// Each loop by itself.
    Each(Vec<Report<Verified<Schedule>>>),
    /// Loops with common warp groups.
    Together(MultiLoopProblem, Box<MultiLoopReport<Verified<Schedule>>>),
}

impl Answer {
    /// The loops' own reports.
    pub fn loops(&self) -> &[Report<Verified<Schedule>>] {
        match self {
            Answer::Each(reports) => reports,
            Answer::Together(_, report) => &report.loops,
        }
    }
}

/// Schedules the loops of a request; `reading` is the seconds that reading and lowering them took, for the reports.
///
/// # Errors
/// When the loops do not go together, or the checker does not accept a schedule.
pub fn answer(
    request: &Request,
    problems: &Loops<LoopProblem>,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<Answer, Error> {
    let input = &request.input.name;
    if let Some(kernel) = siblings::problem(request, problems)? {
        let mut report = siblings::solve(input, &kernel, session, reading)?;
        if was_stopped(&report.outcome) {
            let naive = siblings::naive(input, &kernel, Naive::NoPipelining, &mut grace(&mut Silent))?;
            if naive.outcome.schedule().is_some() {
                report.outcome = naive.outcome;
                let own = report.loops.into_iter().zip(naive.loops);
                report.loops = own.map(|(own, naive)| Report { outcome: naive.outcome, ..own }).collect();
                session.observer.note(NOT_PIPELINED);
            }
        }
        report.loops = estimated(request, &problems.loops, report.loops, session);
        return Ok(Answer::Together(kernel, Box::new(report)));
    }
    let each = reading / problems.loops.len().max(1) as f64;
    let mut reports = Vec::new();
    for one in &problems.loops {
        let mut report = solve(input, one, session, each)?;
        if was_stopped(&report.outcome) {
            let naive = naive(input, one, Naive::NoPipelining, &mut grace(&mut Silent))?;
            if naive.outcome.schedule().is_some() {
                report.outcome = naive.outcome;
                session.observer.note(NOT_PIPELINED);
            }
        }
        reports.push(report);
    }
    Ok(Answer::Each(estimated(request, &problems.loops, reports, session)))
}
