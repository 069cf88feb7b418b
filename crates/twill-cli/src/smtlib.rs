//! `twill schedule --emit smtlib2`: a question about the answer, for another solver.

use crate::arguments::ScheduleArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use twill_check::Verified;
use twill_driver::LoopProblem;
use twill_graph::{Cycles, Liveness, Outcome, Problem, Report, Schedule, StageWindow};
use twill_smtlib::{ExpectedStatus, Question};

type ScheduleReport = Report<Verified<Schedule>>;

/// Writes whether there is a schedule at the interval asked for, or at one cycle less than the least
/// that `search` finds. Searches only for what was not given.
pub(crate) fn run(
    arguments: &ScheduleArguments,
    problems: &[LoopProblem],
    search: impl FnOnce(&LoopProblem) -> Result<ScheduleReport, Error>,
) -> Result<Exit, Error> {
    let input = || arguments.search.source.input.clone();
    let [one] = problems else { return Err(Error::OneLoop { input: input(), count: problems.len() }) };
    let (mut question, exit) = match (arguments.interval, arguments.stages) {
        (Some(interval), Some(stages)) => (Question::new(Cycles(interval), stages), Exit::Done),
        (interval, stages) => {
            let report = search(one)?;
            (about(&one.problem, &report, interval, stages, input)?, Exit::of(report.outcome.status()))
        }
    };
    if let Some(n) = one.normalisation {
        question
            .notes
            .push(format!("costs: normalised to a sum of at most {}; all cycles are normalised ones", n.limit));
    }
    let text = twill_smtlib::formulation(&one.problem, &question)
        .map_err(|error| Error::Formulation { input: input(), error })?;
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(exit)
}

/// The question that a search's report leads to, with the answer as far as the report has it.
fn about(
    problem: &Problem,
    report: &ScheduleReport,
    interval: Option<i64>,
    stages: Option<u32>,
    input: impl Fn() -> String,
) -> Result<Question, Error> {
    let nothing = |why| Err(Error::NothingToAsk { input: input(), why });
    let schedule = match &report.outcome {
        Outcome::Optimal { schedule } | Outcome::Feasible { schedule } => schedule,
        Outcome::Infeasible { .. } => return nothing("it is infeasible, proved"),
        Outcome::Unknown { .. } => return nothing("the search was stopped"),
    };
    let interval = Cycles(interval.unwrap_or(schedule.interval.0 - 1));
    if interval < Cycles(1) {
        return Err(Error::NothingBelow { input: input() });
    }
    // Where the search looked at some numbers of stages only, its claim is about these.
    let excluded = report.rejections.iter().find(|r| r.interval == interval);
    let up_to = excluded.and_then(|r| r.stages);
    // At another interval a schedule may well take a stage more.
    let usual = schedule.stages().saturating_add(u32::from(interval != schedule.interval));
    let stages = stages.or(up_to).unwrap_or(usual);
    let mut question = Question::new(interval, stages);
    let options = problem.options();
    let any_stages = options.liveness == Liveness::Folded && options.stage_window == StageWindow::Complete;
    question.expected_status = if interval == schedule.interval && stages == schedule.stages() {
        Some(ExpectedStatus::Sat)
    } else if (any_stages && interval < report.lower_bound.interval) || (excluded.is_some() && up_to == Some(stages)) {
        Some(ExpectedStatus::Unsat)
    } else {
        None
    };
    Ok(question)
}
