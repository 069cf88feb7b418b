//! `twill report`: schedules on a page.

use crate::Exit;
use crate::arguments::{ReportArguments, ReportFormat, SubjectArguments};
use crate::error::Error;
use crate::progress::Ticker;
use crate::{files, front, schedule};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use twill_driver::{Session, report};
use twill_exact::{Budget, ExplainOptions, SearchOptions};
use twill_report::page::{Page, html};

/// Seconds that explanations of one page may take, unless it is said.
const EXPLAIN_LIMIT: f64 = 30.0;

/// Formats of schedules; those of pipelines are refused with a word.
const FORMATS: [&str; 4] = ["twill-schedule", "twill-kernel-schedule", "twill-dataflow-schedule", "twill-pipeline"];

/// The files of a kernel's folder.
const SCHEDULE: &str = "schedule.json";
const KERNEL: &str = "kernel.json";
const TRACE: &str = "trace.json";
const CODE: [&str; 2] = ["kernel.py", "kernel.cu"];

pub(crate) fn run(arguments: &ReportArguments) -> Result<Exit, Error> {
    let (page, exit) = draw(&arguments.subject)?;
    let text = match arguments.format {
        ReportFormat::Html => html(&page),
        ReportFormat::Json => page.to_json() + "\n",
    };
    files::write(arguments.output.as_deref(), &text)?;
    Ok(exit)
}

/// The page, and what the exit code says of its schedule.
pub(crate) fn draw(subject: &SubjectArguments) -> Result<(Page, Exit), Error> {
    let path = Path::new(&subject.search.source.input);
    if path.is_dir() {
        let page = folder(subject, path)?;
        return Ok((page, Exit::Done));
    }
    if path.is_file() {
        let text = files::read(path)?;
        if is_schedule(&text) {
            return Ok((replayed(subject, path, &text)?, Exit::Done));
        }
    }
    searched(subject)
}

/// Whether a text is a schedule of any of the formats, or an array of them.
fn is_schedule(text: &str) -> bool {
    let is_one = |file: &Value| file["format"].as_str().is_some_and(|format| FORMATS.contains(&format));
    match serde_json::from_str(text) {
        Ok(Value::Array(all)) => all.iter().any(is_one),
        Ok(file) => is_one(&file),
        Err(_) => false,
    }
}

fn searched(subject: &SubjectArguments) -> Result<(Page, Exit), Error> {
    let search = &subject.search;
    front::refuse_in_reports(search)?;
    let request = search.request_with(&subject.siblings)?;
    front::refuse_large(&request)?;
    let options = schedule::options(search);
    let explain = explain(subject, &options);
    let mut ticker = Ticker::new(search.quiet);
    let mut session = Session { cache: search.cache(), ..Session::new(options, &mut ticker) };
    let page = report::page(&request, explain.as_ref(), &mut session)?;
    let exit = page.status().map_or(Exit::Done, schedule::exit);
    Ok((page, exit))
}

/// How hard to explain, if at all.
fn explain(subject: &SubjectArguments, search: &SearchOptions) -> Option<ExplainOptions> {
    let most = subject.search.time_limit.map_or(EXPLAIN_LIMIT, |limit| limit.min(EXPLAIN_LIMIT));
    let seconds = subject.explain_limit.unwrap_or(most);
    let budget = Budget { work: None, time: Some(Duration::from_secs_f64(seconds)), ..search.budget.clone() };
    let largest_interval = search.largest_interval;
    (!subject.no_explain).then(|| ExplainOptions { budget, largest_interval, ..ExplainOptions::default() })
}

/// A page of a schedule that was written before.
fn replayed(subject: &SubjectArguments, path: &Path, text: &str) -> Result<Page, Error> {
    refuse(subject)?;
    let options = schedule::options(&subject.search);
    let explain = explain(subject, &options);
    let mut ticker = Ticker::new(subject.search.quiet);
    Ok(report::page_of_file(&path.display().to_string(), text, explain.as_ref(), &mut ticker)?)
}

/// Options of a search mean nothing to a schedule that is there.
fn refuse(subject: &SubjectArguments) -> Result<(), Error> {
    let (search, lowering) = (&subject.search, &subject.search.source.lowering);
    let limits = &search.limits;
    let given = [
        ("machine", lowering.machine.is_some()),
        ("kernel", lowering.kernel.is_some()),
        ("loop", lowering.loop_index.is_some()),
        ("sub-tiles", lowering.sub_tiles.is_some()),
        ("programs-per-cta", lowering.programs_per_cta.is_some()),
        ("no-contract", lowering.no_contract),
        ("compute-groups", limits.compute_groups.is_some()),
        ("registers-per-thread", limits.registers_per_thread.is_some()),
        ("unroll", limits.unroll > 1),
        ("normalise", limits.normalise > 0),
        ("warp-assignment", limits.model.warp_assignment.is_some()),
        ("max-interval", search.max_interval.is_some()),
        ("time-limit", search.time_limit.is_some()),
        ("work-limit", search.work_limit.is_some()),
        ("trip-counts", !subject.siblings.trip_counts.is_empty()),
        ("no-siblings", subject.siblings.no_siblings),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::AlreadyScheduled { input: search.source.input.clone(), option }),
        None => Ok(()),
    }
}

/// A page of a generated kernel, with its code and what was measured.
fn folder(subject: &SubjectArguments, folder: &Path) -> Result<Page, Error> {
    let path = folder.join(SCHEDULE);
    if !path.is_file() {
        return Err(Error::NoSchedule { path: folder.to_owned() });
    }
    let mut page = replayed(subject, &path, &files::read(&path)?)?;
    let (kernel, trace) = (folder.join(KERNEL), folder.join(TRACE));
    if let Some(name) = CODE.into_iter().find(|name| folder.join(name).is_file()).filter(|_| kernel.is_file()) {
        let (json, text) = (files::read(&kernel)?, files::read(&folder.join(name))?);
        page.code = Some(report::code(&page, &kernel.display().to_string(), &json, name, &text)?);
    }
    if trace.is_file() {
        page.trace = Some(report::trace(&page, &trace.display().to_string(), &files::read(&trace)?)?);
    }
    Ok(page)
}
