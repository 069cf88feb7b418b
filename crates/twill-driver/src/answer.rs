//! What a request is answered with: the schedules of its loops, and what else is known of them.

use crate::estimate::estimated;
use crate::solve::naive;
use crate::tune::thresholds::THRESHOLDS;
use crate::{Error, LoopProblem, Loops, Request, Session, Silent, relax, siblings, solve};
use twill_check::Verified;
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{MultiLoopProblem, MultiLoopReport, Outcome, Report, Schedule, Status};

/// Work for a schedule that is built where a search was stopped before it had one.
pub(crate) const GRACE_WORK: u64 = 1_000_000;
/// The part of a search's time that it may take, too.
const GRACE_SHARE: u32 = 20;
const LEAST_GRACE: std::time::Duration = std::time::Duration::from_secs(1);

const NOT_PIPELINED: &str = "note: stopped before a schedule was found; the one shown runs one iteration after another";

/// Whether a budget or an interrupt ended a search before it had a schedule; what is unknown for another reason stays so, as the
/// paper's liveness with more stages than are tried.
fn was_stopped<S>(outcome: &Outcome<S>) -> bool {
    matches!(outcome, Outcome::Unknown { stopped_by } if stopped_by == "interrupt" || stopped_by.ends_with("budget"))
}

/// A session for such a schedule after the time of a search, in the memory that it may use.
fn grace<'a>(search: &SearchOptions, observer: &'a mut Silent) -> Session<'a> {
    let budget = Budget {
        clock: search.budget.clock,
        work: Some(GRACE_WORK),
        time: search.budget.time.map(|time| (time / GRACE_SHARE).max(LEAST_GRACE)),
        memory: search.budget.memory,
        ..Budget::default()
    };
    Session::new(SearchOptions { budget, ..SearchOptions::default() }, observer)
}

/// One iteration after another at the least interval that is tried at which the checker accepts it: nothing is searched.
fn one_after_another(one: &LoopProblem) -> Option<Verified<Schedule>> {
    twill_exact::unpipelined(&one.problem).find_map(|claim| twill_check::verify(&one.problem, claim).ok())
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

    /// The least settled of the loops' outcomes.
    pub fn status(&self) -> Status {
        let least_settled = |status: &Status| match status {
            Status::Optimal => 0,
            Status::Feasible => 1,
            Status::Unknown => 2,
            Status::Infeasible => 3,
        };
        let together = match self {
            Answer::Each(_) => None,
            Answer::Together(_, report) => Some(report.outcome.status()),
        };
        let each = self.loops().iter().map(|report| report.outcome.status());
        each.chain(together).max_by_key(least_settled).unwrap_or(Status::Unknown)
    }

    /// The same without what was proved.
    fn without_proof(self) -> Answer {
        match self {
            Answer::Each(reports) => Answer::Each(reports.into_iter().map(relax::without_proof).collect()),
            Answer::Together(kernel, report) => {
                Answer::Together(kernel, Box::new(relax::without_proof_of_loops(*report)))
            }
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
    answered(request, problems, session, reading, Effort::Search)
}

/// The same; a kernel that has no schedule within the machine's registers is scheduled with more of them, which is noted. The problems
/// that were solved come back.
///
/// # Errors
/// As [`answer`].
pub fn answer_or_relaxed(
    request: &Request,
    problems: Loops<LoopProblem>,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<(Loops<LoopProblem>, Answer), Error> {
    let found = answer(request, &problems, session, reading)?;
    let status = found.status();
    if matches!(status, Status::Optimal | Status::Feasible) || session.is_stopped() {
        return Ok((problems, found));
    }
    let effort = if status == Status::Infeasible { Effort::Search } else { Effort::OneAfterAnother };
    let later = THRESHOLDS.later_work;
    let work = session.search.budget.work.map_or(later, |work| work.min(later));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let mut session = session.with(SearchOptions { budget, ..session.search.clone() });
    for (relaxed, what) in relax::relaxed(request) {
        if session.is_stopped() {
            break;
        }
        // A machine that does not make sense is none.
        let Ok(others) = crate::problems(&relaxed) else { continue };
        let other = answered(&relaxed, &others, &mut session, reading, effort)?;
        if matches!(other.status(), Status::Optimal | Status::Feasible) {
            session.observer.note(&format!("note: {}; this one takes {what}", relax::reason(status)));
            return Ok((others, other.without_proof()));
        }
    }
    Ok((problems, found))
}

/// How a schedule is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// By search; where a budget ends it, one iteration after another.
    Search,
    /// Without search: one iteration after another.
    OneAfterAnother,
}

fn answered(
    request: &Request,
    problems: &Loops<LoopProblem>,
    session: &mut Session<'_>,
    reading: f64,
    effort: Effort,
) -> Result<Answer, Error> {
    let input = &request.input.name;
    if let Some(kernel) = siblings::problem(request, problems)? {
        let search = session.search.clone();
        let naive = || siblings::naive(input, &kernel, Naive::NoPipelining, &mut grace(&search, &mut Silent));
        let mut report = match effort {
            Effort::Search => siblings::solve(input, &kernel, session, reading)?,
            Effort::OneAfterAnother => naive()?,
        };
        if was_stopped(&report.outcome) {
            let naive = naive()?;
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
        let search = session.search.clone();
        let naive = || naive(input, one, Naive::NoPipelining, &mut grace(&search, &mut Silent));
        let mut report = match effort {
            Effort::Search => solve(input, one, session, each)?,
            Effort::OneAfterAnother => naive()?,
        };
        if was_stopped(&report.outcome) {
            let outcome = match one_after_another(one) {
                Some(schedule) => Outcome::Feasible { schedule },
                None => naive()?.outcome,
            };
            if outcome.schedule().is_some() {
                report.outcome = outcome;
                session.observer.note(NOT_PIPELINED);
            }
        }
        reports.push(report);
    }
    Ok(Answer::Each(estimated(request, &problems.loops, reports, session)))
}
