//! Pages of schedules in files, all of which are replayed first.

use crate::explain::left;
use crate::replay::replay;
use crate::{Error, Observer};
use std::time::Instant;
use twill_check::Verified;
use twill_exact::ExplainOptions;
use twill_graph::format::{DataflowScheduleFile, FormatError, KernelScheduleFile, PipelineFile, ScheduleFile};
use twill_graph::{KernelReport, Problem, Report, Schedule};
use twill_report::page::{Loop, Page};

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
    if DataflowScheduleFile::is_named_in(text) {
        return dataflow(path, text);
    }
    if PipelineFile::is_named_in(text) {
        return Err(Error::NoPage { path: path.to_owned() });
    }
    let mut describe = Describe { path, explain, observer, begun: Instant::now() };
    if KernelScheduleFile::is_one(text) {
        return describe.kernel(text);
    }
    let files = match text.trim_start().starts_with('[') {
        true => several(path, text)?,
        false => vec![ScheduleFile::from_json(text, path)?],
    };
    let posed = files.iter().map(ScheduleFile::problem).collect::<Result<Vec<_>, FormatError>>()?;
    let mut loops = Vec::new();
    for (file, problem) in files.iter().zip(&posed) {
        let report = describe.replayed(problem, file)?;
        let own = describe.described(problem, &report, file)?;
        loops.push((problem, report, own));
    }
    let name = posed.first().map_or(path, |problem| problem.graph().name());
    Ok(Page::of_loops(name, loops.iter().map(|(problem, report, own)| (*problem, report, own.clone())).collect()))
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

struct Describe<'a> {
    path: &'a str,
    explain: Option<&'a ExplainOptions>,
    observer: &'a mut dyn Observer,
    begun: Instant,
}

impl Describe<'_> {
    fn replayed(&self, problem: &Problem, file: &ScheduleFile) -> Result<Report<Verified<Schedule>>, Error> {
        let verify = |schedule| twill_check::verify(problem, schedule);
        let replayed = file.report(problem)?.try_map(verify);
        replayed.map_err(|error| Error::Rejected { path: self.path.to_owned(), error: Box::new(error) })
    }

    fn described(
        &mut self,
        problem: &Problem,
        report: &Report<Verified<Schedule>>,
        file: &ScheduleFile,
    ) -> Result<Loop, Error> {
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
        Ok(Loop::new(problem, report, file.normalisation, explanation.as_ref()))
    }

    fn kernel(&mut self, text: &str) -> Result<Page, Error> {
        let file = KernelScheduleFile::from_json(text, self.path)?;
        let kernel = file.problem()?;
        let report: KernelReport = file.report(&kernel)?;
        if let Some(common) = report.outcome.schedule() {
            let schedules = report.loops.iter().filter_map(|own| own.outcome.schedule().cloned()).collect();
            twill_check::verify_kernel(&kernel, &common.groups, schedules)
                .map_err(|error| Error::RejectedKernel { path: self.path.to_owned(), error: Box::new(error) })?;
        }
        let each = kernel.loops().iter().zip(&file.loops);
        let reports = each.map(|(problem, own)| self.replayed(problem, own)).collect::<Result<Vec<_>, Error>>()?;
        let mut loops = Vec::new();
        for ((problem, own), report) in kernel.loops().iter().zip(&file.loops).zip(&reports) {
            loops.push(self.described(problem, report, own)?);
        }
        let report = KernelReport {
            outcome: report.outcome,
            lower_bound: report.lower_bound,
            loops: reports,
            rejections: report.rejections,
            objectives: report.objectives,
            phases: report.phases,
        };
        Ok(Page::of_kernel(&kernel, &report, loops))
    }
}

fn dataflow(path: &str, text: &str) -> Result<Page, Error> {
    let file = DataflowScheduleFile::from_json(text, path)?;
    let problem = file.problem()?;
    let found = twill_check::verify_dataflow(&problem, file.start_steps())
        .map_err(|error| Error::Rejected { path: path.to_owned(), error: Box::new(error) })?;
    let claimed = &file.summary.objective;
    if claimed.value != Some(found.objective) || claimed.lower_bound > found.objective {
        let path = path.to_owned();
        return Err(Error::OtherObjective { path, found: found.objective });
    }
    Ok(Page::of_dataflow(&problem, &found, file.summary))
}
