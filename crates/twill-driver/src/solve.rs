//! Searching, and letting nothing out that does not survive its replay.

use crate::cache::{EntryKind, Key};
use crate::gaus::warm_start;
use crate::{Error, LoopProblem, Session};
use serde::Serialize;
use twill_check::Verified;
use twill_exact::{Naive, SearchOptions};
use twill_graph::format::{ProblemEntry, ScheduleFile};
use twill_graph::{Phase, Pipeline, Problem, Report, Schedule, Status};
use web_time::Instant;

/// The schedule of a loop; `reading` is the seconds that reading and lowering it took, for the report.
///
/// # Errors
/// [`Error::Defect`] when the checker does not accept what was found.
pub fn solve(
    input: &str,
    one: &LoopProblem,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<Report<Verified<Schedule>>, Error> {
    let started = Instant::now();
    let key =
        Key::new(EntryKind::Schedule, &(ProblemEntry::new(&one.problem), one.rolled.is_some(), session.depends()));
    let cache = session.cache.clone();
    let mut report = match cache.as_ref().and_then(|cache| cache.find(&key, |text| remembered(&one.problem, text))) {
        Some(report) => {
            let seconds = started.elapsed().as_secs_f64();
            Report { phases: vec![Phase { name: "cache".into(), seconds }], ..report }
        }
        None => {
            let report = search(input, one, session)?;
            if let Some(cache) = cache.filter(|_| is_proved(report.outcome.status())) {
                cache.write(&key, &ScheduleFile::new(&one.problem, &report).to_json());
            }
            report
        }
    };
    report.phases.insert(0, Phase { name: "reading".into(), seconds: reading });
    Ok(report)
}

fn search(input: &str, one: &LoopProblem, session: &mut Session<'_>) -> Result<Report<Verified<Schedule>>, Error> {
    let mut tell = |p| session.observer.progress(&p);
    let mut options = session.search.clone();
    if let Some((rolled, times)) = &one.rolled {
        // Each of the two searches has half of the budget.
        options.budget.time = options.budget.time.map(|time| time / 2);
        options.budget.work = options.budget.work.map(|work| work / 2);
        let report = twill_exact::schedule(rolled, &options, &mut tell);
        options.seed = report.outcome.schedule().map(|s| s.unrolled(*times));
    }
    let started = Instant::now();
    options.pipeline = warm_start(&one.problem, &options);
    let warm = options.pipeline.as_ref().map(|_| phase("warm start", started));
    let mut report = twill_exact::schedule(&one.problem, &options, &mut tell);
    report.phases.splice(0..0, warm);
    let started = Instant::now();
    let mut verified = verified(input, one, report)?;
    verified.phases.push(phase("replay", started));
    Ok(verified)
}

fn phase(name: &str, started: Instant) -> Phase {
    Phase { name: name.into(), seconds: started.elapsed().as_secs_f64() }
}

/// Whether a result is worth keeping: no effort would find another.
pub(crate) fn is_proved(status: Status) -> bool {
    matches!(status, Status::Optimal | Status::Infeasible)
}

/// What was proved of this problem before; `None` where it does not survive its replay.
fn remembered(problem: &Problem, text: &str) -> Option<Report<Verified<Schedule>>> {
    let report = ScheduleFile::from_json(text, "cache").ok()?.report(problem).ok()?;
    let report = report.try_map(|schedule| twill_check::verify(problem, schedule)).ok()?;
    let at_bound = report.outcome.schedule().is_none_or(|s| s.interval == report.lower_bound.interval);
    (is_proved(report.outcome.status()) && at_bound).then_some(report)
}

/// The naive schedule of a loop.
///
/// # Errors
/// [`Error::Defect`] when the checker does not accept it.
pub(crate) fn naive(
    input: &str,
    one: &LoopProblem,
    how: Naive,
    session: &mut Session<'_>,
) -> Result<Report<Verified<Schedule>>, Error> {
    let Session { search, observer, .. } = session;
    verified(input, one, twill_exact::naive(&one.problem, how, search, &mut |p| observer.progress(&p)))
}

/// Lets no schedule out that does not survive its replay.
pub(crate) fn verified(input: &str, one: &LoopProblem, report: Report) -> Result<Report<Verified<Schedule>>, Error> {
    let verify = |schedule| twill_check::verify(&one.problem, schedule);
    report.try_map(verify).map_err(|error| Error::Defect { input: input.to_owned(), error: Box::new(error) })
}

/// The modulo schedule of a loop by dependences and functional units, without warps.
///
/// # Errors
/// [`Error::Defect`] when the checker does not accept what was found.
pub fn pipeline(
    input: &str,
    one: &LoopProblem,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<Report<Verified<Pipeline>>, Error> {
    let Session { search, observer, .. } = session;
    let started = Instant::now();
    let search = SearchOptions { pipeline: warm_start(&one.problem, search), ..search.clone() };
    let warm = search.pipeline.as_ref().map(|_| phase("warm start", started));
    let mut report = twill_exact::pipeline(&one.problem, &search, &mut |p| observer.progress(&p));
    report.phases.splice(0..0, warm);
    let started = Instant::now();
    let verify = |pipeline| twill_check::verify_pipeline(&one.problem, pipeline);
    let mut verified =
        report.try_map(verify).map_err(|error| Error::Defect { input: input.to_owned(), error: Box::new(error) })?;
    verified.phases.insert(0, Phase { name: "reading".into(), seconds: reading });
    verified.phases.push(phase("replay", started));
    Ok(verified)
}

/// The file of a schedule.
pub fn schedule_file(one: &LoopProblem, report: &Report<Verified<Schedule>>) -> ScheduleFile {
    let mut file = ScheduleFile::new(&one.problem, report);
    file.normalisation = one.normalisation;
    file
}

/// JSON of what each loop of a kernel has: of a single one itself, of several an array.
pub fn json<T: Serialize>(each: impl IntoIterator<Item = T>) -> String {
    let all: Vec<T> = each.into_iter().collect();
    let text = match all.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    // Plain data always serialises.
    text.unwrap_or_default() + "\n"
}
