//! `twill report`: schedules on a page, as a picture, or in the browser.

mod open;
mod server;

use crate::arguments::{Format, ReportArguments, ReportFormat, ScheduleArguments, SubjectArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::gaus::TRACED_ITERATIONS;
use crate::progress::Ticker;
use crate::{budgets, files, front, pictures};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use twill_driver::options::{SearchLimits, given};
use twill_driver::report::Schedules;
use twill_driver::{Request, STANDARD_INPUT, Session, report};
use twill_exact::{Budget, ExplainOptions, SearchOptions};
use twill_report::page::{Page, html};

/// Seconds that explanations of one page may take, unless it is said.
const EXPLAIN_LIMIT: f64 = 10.0;

/// Formats of schedules; those of pipelines are refused with a word.
const FORMATS: [&str; 4] = ["twill-schedule", "twill-kernel-schedule", "twill-dataflow-schedule", "twill-pipeline"];

/// The files of a kernel's folder.
const SCHEDULE: &str = "schedule.json";
const KERNEL: &str = "kernel.json";
const TRACE: &str = "trace.json";
const CODE: [&str; 2] = ["kernel.py", "kernel.cu"];

pub(crate) fn run(arguments: &ReportArguments) -> Result<Exit, Error> {
    if arguments.open {
        return open::run(arguments);
    }
    let output = arguments.output.as_deref();
    if let Some(format) = arguments.format().picture() {
        return picture(&arguments.subject, format, output);
    }
    let (page, exit) = draw(&arguments.subject)?;
    let text = if arguments.format() == ReportFormat::Json { page.to_json() + "\n" } else { html(&page) };
    files::write(output, &text)?;
    Ok(exit)
}

/// The page of what `twill schedule` is asked for.
pub(crate) fn page_of_schedule(arguments: &ScheduleArguments) -> Result<Exit, Error> {
    let given = [
        ("--emit", arguments.emit.is_some()),
        ("--certificate", arguments.certificate.is_some()),
        ("--swp-only", arguments.swp_only),
        ("--top", arguments.top.top.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(Error::Arguments(format!("there is no page for {option}; leave it out, or name another --format")));
    }
    let subject = SubjectArguments {
        search: arguments.search.clone(),
        siblings: arguments.siblings.clone(),
        no_explain: false,
        explain_limit: None,
    };
    let (page, exit) = draw(&subject)?;
    files::write(arguments.page.output.as_deref(), &html(&page))?;
    Ok(exit)
}

/// The page, and what the exit code says of its schedule.
fn draw(subject: &SubjectArguments) -> Result<(Page, Exit), Error> {
    let page = match written(subject)? {
        Some((path, text)) => {
            let explain = explain(subject, &subject.search.search());
            let mut ticker = Ticker::new(subject.search.quiet);
            report::page_of_file(&path.display().to_string(), &text, explain.as_ref(), &mut ticker)?
        }
        None => {
            let page = searched(subject, |request, session| {
                let explain = explain(subject, &session.search);
                report::page(request, explain.as_ref(), session)
            })?;
            let exit = page.status().map_or(Exit::Done, Exit::of);
            return Ok((page, budgets::explain_stop(&subject.search.search, subject.search.quiet, exit)));
        }
    };
    let path = Path::new(&subject.search.source.input);
    let page = if path.is_dir() { with_code(page, path)? } else { page };
    Ok((page, Exit::Done))
}

/// A picture of the same, which needs no explanation, and what the exit code says.
fn picture(subject: &SubjectArguments, format: Format, output: Option<&Path>) -> Result<Exit, Error> {
    if subject.explain_limit.is_some() {
        return Err(Error::Arguments("--explain-limit is for --format html and --format json".to_owned()));
    }
    pictures::check_output(format == Format::Perfetto, output)?;
    let written = written(subject)?;
    let schedules = match &written {
        Some((path, text)) => report::schedules_of_file(&path.display().to_string(), text)?,
        None => searched(subject, report::schedules)?,
    };
    match schedules {
        Schedules::Loops { loops, together } => {
            let each = loops.iter().map(|(_, report)| Exit::of(report.outcome.status())).max();
            let exit = together.map(Exit::of).or(each).unwrap_or(Exit::Done);
            let all: Vec<pictures::ReportedLoop<'_>> =
                loops.iter().map(|(problem, report)| (problem, report)).collect();
            let Some(bytes) = pictures::render(None, format, &all) else { return Ok(exit) };
            files::write(output, &bytes)?;
            Ok(if written.is_some() { Exit::Done } else { exit })
        }
        Schedules::Dataflow { problem, found } if format == Format::Perfetto => {
            let trace = twill_report::dataflow_perfetto(&problem.graph, &found.steps, TRACED_ITERATIONS);
            files::write(output, &trace)?;
            Ok(Exit::Done)
        }
        Schedules::Dataflow { .. } => Err(Error::OnlyTrace { input: subject.search.source.input.clone() }),
    }
}

/// A schedule that was written before, in a file or in the folder of a kernel; `None` where one is to be searched for.
fn written(subject: &SubjectArguments) -> Result<Option<(PathBuf, String)>, Error> {
    let path = Path::new(&subject.search.source.input);
    let file = if path.is_dir() { path.join(SCHEDULE) } else { path.to_owned() };
    if !file.is_file() && file != Path::new(STANDARD_INPUT) {
        return if path.is_dir() { Err(Error::NoSchedule { path: path.to_owned() }) } else { Ok(None) };
    }
    let text = files::read(&file)?;
    if !path.is_dir() && !is_schedule(&text) {
        return Ok(None);
    }
    refuse(subject)?;
    Ok(Some((file, text)))
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

/// What is made of a search.
fn searched<T>(
    subject: &SubjectArguments,
    make: impl FnOnce(&Request, &mut Session<'_>) -> Result<T, twill_driver::Error>,
) -> Result<T, Error> {
    let search = &subject.search;
    front::refuse_in_reports(search)?;
    let request = search.request(&subject.siblings)?;
    front::refuse_large(&request)?;
    let mut ticker = Ticker::new(search.quiet);
    let mut session = Session { cache: search.cache(), ..Session::new(search.search(), &mut ticker) };
    Ok(make(&request, &mut session)?)
}

/// How hard to explain, if at all.
fn explain(subject: &SubjectArguments, search: &SearchOptions) -> Option<ExplainOptions> {
    let most = subject.search.search.time_limit.map_or(EXPLAIN_LIMIT, |limit| limit.min(EXPLAIN_LIMIT));
    let seconds = subject.explain_limit.unwrap_or(most);
    // It has time of its own.
    let time = Some(Duration::from_secs_f64(seconds));
    let budget = Budget { work: None, time, until: None, ..search.budget.clone() };
    let largest_interval = search.largest_interval;
    (!subject.no_explain).then(|| ExplainOptions { budget, largest_interval, ..ExplainOptions::default() })
}

/// Options of a search mean nothing to a schedule that is there.
fn refuse(subject: &SubjectArguments) -> Result<(), Error> {
    match search_option(subject) {
        Some(option) => Err(Error::AlreadyScheduled { input: subject.search.source.input.clone(), option }),
        None => Ok(()),
    }
}

/// A page that is there is neither searched for nor explained.
fn refuse_on_page(subject: &SubjectArguments) -> Result<(), Error> {
    let explains = [("no-explain", subject.no_explain), ("explain-limit", subject.explain_limit.is_some())];
    let explains = || explains.into_iter().find(|(_, given)| *given).map(|(option, _)| option.to_owned());
    match search_option(subject).or_else(explains) {
        Some(option) => Err(Error::AlreadyDrawn { input: subject.search.source.input.clone(), option }),
        None => Ok(()),
    }
}

/// An option of a search that was given; whether the cache may be used matters to none.
fn search_option(subject: &SubjectArguments) -> Option<String> {
    let options = subject.search.options(&subject.siblings);
    let search = SearchLimits { no_cache: false, ..options.search };
    let groups = [
        given(&options.lowering),
        given(&options.limits),
        given(&options.model),
        given(&search),
        given(&options.loops),
    ];
    groups.into_iter().flatten().next()
}

/// The page of a generated kernel, with its code, what is known of that, and what was measured.
fn with_code(mut page: Page, folder: &Path) -> Result<Page, Error> {
    let (kernel, trace) = (folder.join(KERNEL), folder.join(TRACE));
    if let Some(name) = CODE.into_iter().find(|name| folder.join(name).is_file()).filter(|_| kernel.is_file()) {
        let (json, text) = (files::read(&kernel)?, files::read(&folder.join(name))?);
        let path = kernel.display().to_string();
        report::compiled(&mut page, &path, &json)?;
        page.code = Some(report::code(&page, &path, &json, name, &text)?);
    }
    if trace.is_file() {
        page.trace = Some(report::trace(&page, &trace.display().to_string(), &files::read(&trace)?)?);
    }
    Ok(page)
}
