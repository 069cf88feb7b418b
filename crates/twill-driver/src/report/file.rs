//! Schedules in files, all of which are replayed before a page or a picture is made of them.

use super::{Schedules, with_chip};
use crate::explain::left;
use crate::replay::replay;
use crate::{Error, Observer};
use twill_check::{MeasuredSteps, Verified};
use twill_exact::ExplainOptions;
use twill_graph::format::{
    DataflowScheduleFile, DataflowSummary, FormatError, KernelScheduleFile, PipelineFile, ScheduleFile,
};
use twill_graph::{DataflowProblem, MultiLoopProblem, MultiLoopReport, Problem, Report, Schedule};
use twill_report::page::{LoopReport, Page};
use web_time::Instant;

/// What a file of Twill's says it is: a schedule, several of them, those of sibling loops, or one of a dataflow graph. It is
/// replayed, and explained as long as the budget of `explain` lasts. Bounds are those that the file claims.
///
/// # Errors
/// When the text is none of these, or the checker does not accept it.
pub fn page_of_file(
    path: &str,
    text: &str,
    explain: Option<&ExplainOptions>,
    observer: &mut dyn Observer,
) -> Result<Page, Error> {
    let begun = explain.map_or_else(Instant::now, |options| options.budget.clock.now());
    let mut describe = Describe { path, explain, observer, begun };
    match replayed(path, text)? {
        Replayed::Dataflow(problem, found, summary) => Ok(Page::of_dataflow(&problem, &found, *summary)),
        Replayed::Together(kernel, report, files) => {
            let each = kernel.loops().iter().zip(&report.loops).zip(&files);
            let loops = each.map(|((problem, own), file)| describe.described(problem, own, file));
            let loops = loops.collect::<Result<Vec<_>, Error>>()?;
            Ok(with_chip(Page::of_kernel(&kernel, &report, loops), None))
        }
        Replayed::Each(each) => {
            let loops = each.iter().map(|(problem, report, file)| {
                let own = describe.described(problem, report, file)?;
                Ok((problem, report, own))
            });
            let loops = loops.collect::<Result<Vec<_>, Error>>()?;
            let name = each.first().map_or(path, |(problem, _, _)| problem.graph().name());
            Ok(with_chip(Page::of_loops(name, loops), None))
        }
    }
}

/// What pictures are drawn of, from a file that [`page_of_file`] takes. It is replayed.
///
/// # Errors
/// When the text is none of these, or the checker does not accept it.
pub fn schedules_of_file(path: &str, text: &str) -> Result<Schedules, Error> {
    Ok(match replayed(path, text)? {
        Replayed::Dataflow(problem, found, _) => Schedules::Dataflow { problem, found },
        Replayed::Together(kernel, report, _) => {
            let together = Some(report.outcome.status());
            Schedules::Loops { loops: kernel.loops().iter().cloned().zip(report.loops).collect(), together }
        }
        Replayed::Each(each) => {
            let loops = each.into_iter().map(|(problem, report, _)| (problem, report)).collect();
            Schedules::Loops { loops, together: None }
        }
    })
}

/// What a file holds, with the parts of it that are of one loop each.
enum Replayed {
    Each(Vec<(Problem, Report<Verified<Schedule>>, ScheduleFile)>),
    Together(MultiLoopProblem, Box<MultiLoopReport<Verified<Schedule>>>, Vec<ScheduleFile>),
    Dataflow(Box<DataflowProblem>, Verified<MeasuredSteps>, Box<DataflowSummary>),
}

fn replayed(path: &str, text: &str) -> Result<Replayed, Error> {
    if DataflowScheduleFile::is_named_in(text) {
        return dataflow(path, text);
    }
    if PipelineFile::is_named_in(text) {
        return Err(Error::NoPage { path: path.to_owned() });
    }
    if KernelScheduleFile::is_one(text) {
        return kernel(path, text);
    }
    let files = match text.trim_start().starts_with('[') {
        true => several(path, text)?,
        false => vec![ScheduleFile::from_json(text, path)?],
    };
    let each = files.into_iter().map(|file| {
        let problem = file.problem()?;
        let report = verified(path, &problem, &file)?;
        Ok((problem, report, file))
    });
    Ok(Replayed::Each(each.collect::<Result<_, Error>>()?))
}

/// Files of an array.
fn several(path: &str, text: &str) -> Result<Vec<ScheduleFile>, Error> {
    let all: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|error| FormatError::Syntax {
        file: path.to_owned(),
        line: error.line(),
        column: error.column(),
        message: error.to_string(),
    })?;
    if all.is_empty() {
        return Err(FormatError::Schedule { file: path.to_owned(), why: "there is no schedule in it".into() }.into());
    }
    let each = all.iter().enumerate();
    Ok(each
        .map(|(k, one)| ScheduleFile::from_json(&one.to_string(), &format!("{path}: {k}")))
        .collect::<Result<_, _>>()?)
}

fn verified(path: &str, problem: &Problem, file: &ScheduleFile) -> Result<Report<Verified<Schedule>>, Error> {
    let verify = |schedule| twill_check::verify(problem, schedule);
    let replayed = file.report(problem)?.try_map(verify);
    replayed.map_err(|error| Error::Rejected { path: path.to_owned(), error: Box::new(error) })
}

fn kernel(path: &str, text: &str) -> Result<Replayed, Error> {
    let file = KernelScheduleFile::from_json(text, path)?;
    let kernel = file.problem()?;
    let report: MultiLoopReport = file.report(&kernel)?;
    if let Some(common) = report.outcome.schedule() {
        let schedules = report.loops.iter().filter_map(|own| own.outcome.schedule().cloned()).collect();
        twill_check::verify_multi_loop(&kernel, &common.groups, schedules)
            .map_err(|error| Error::RejectedLoops { path: path.to_owned(), error: Box::new(error) })?;
    }
    let each = kernel.loops().iter().zip(&file.loops);
    let loops = each.map(|(problem, own)| verified(path, problem, own)).collect::<Result<Vec<_>, Error>>()?;
    let report = MultiLoopReport {
        outcome: report.outcome,
        lower_bound: report.lower_bound,
        loops,
        rejections: report.rejections,
        objectives: report.objectives,
        phases: report.phases,
    };
    Ok(Replayed::Together(kernel, Box::new(report), file.loops))
}

struct Describe<'a> {
    path: &'a str,
    explain: Option<&'a ExplainOptions>,
    observer: &'a mut dyn Observer,
    begun: Instant,
}

impl Describe<'_> {
    fn described(
        &mut self,
        problem: &Problem,
        report: &Report<Verified<Schedule>>,
        file: &ScheduleFile,
    ) -> Result<LoopReport, Error> {
        let explanation = match self.explain {
            Some(options) => {
                let options = left(options, self.begun);
                let observer = &mut *self.observer;
                let mut found = twill_exact::explain(problem, report, &options, &mut |p| observer.progress(&p));
                replay(self.path, problem, &mut found)?;
                Some(found)
            }
            None => None,
        };
        Ok(LoopReport::new(problem, report, file.normalisation, explanation.as_ref()))
    }
}

fn dataflow(path: &str, text: &str) -> Result<Replayed, Error> {
    let file = DataflowScheduleFile::from_json(text, path)?;
    let problem = file.problem()?;
    let found = twill_check::verify_dataflow(&problem, file.start_steps())
        .map_err(|error| Error::Rejected { path: path.to_owned(), error: Box::new(error) })?;
    let claimed = &file.summary.objective;
    if claimed.value != Some(found.objective) || claimed.lower_bound > found.objective {
        let path = path.to_owned();
        return Err(Error::OtherObjective { path, found: found.objective });
    }
    Ok(Replayed::Dataflow(Box::new(problem), found, Box::new(file.summary)))
}
