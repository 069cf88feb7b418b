//! `twill schedule`.

use crate::Exit;
use crate::arguments::{Color, Emit, Format, PageArguments, ScheduleArguments, SearchArguments};
use crate::certificate::Folder;
use crate::error::Error;
use crate::files;
use crate::progress::{self, Ticker};
use crate::{budgets, front, pictures, pipeline, report, siblings, smtlib, top};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use twill_check::Verified;
use twill_driver::{Answer, LoopProblem, Session, schedule_file};
use twill_exact::{Budget, SearchOptions};
use twill_graph::format::{NormalisationEntry, ScheduleFile};
use twill_graph::{Cycles, Problem, Report, Schedule, Status};

pub(crate) fn run(arguments: &ScheduleArguments) -> Result<Exit, Error> {
    if arguments.is_page() {
        return report::page_of_schedule(arguments);
    }
    pictures::check(arguments)?;
    if let Some(exit) = front::dataflow(arguments)? {
        return Ok(exit);
    }
    let started = Instant::now();
    let request = arguments.search.request_with(&arguments.siblings)?;
    let problems = twill_driver::problems(&request)?;
    let reading = started.elapsed().as_secs_f64();
    if let Some(exit) = front::large(arguments, &problems.loops)? {
        return Ok(exit);
    }
    let options = options(&arguments.search);
    let each = reading / problems.loops.len().max(1) as f64;
    if arguments.swp_only {
        return pipeline::run(arguments, &request, &problems.loops, options, each);
    }
    if let Some(requested) = arguments.top.options() {
        return top::run(arguments, &request, &problems.loops, requested, options, each);
    }
    let budget = options.budget.clone();
    let mut ticker = Ticker::new(arguments.search.quiet);
    let mut session = Session { cache: arguments.search.cache(), ..Session::new(options, &mut ticker) };
    if arguments.emit == Some(Emit::Smtlib2) {
        let input = &request.input.name;
        let solve = |one: &LoopProblem| twill_driver::solve(input, one, &mut session, each).map_err(Error::from);
        return smtlib::run(arguments, &problems.loops, solve);
    }
    let answer = twill_driver::answer(&request, &problems, &mut session, reading)?;
    drop(ticker);
    let exit = match &answer {
        Answer::Together(kernel, report) => siblings::write(arguments, kernel, report, &budget)?,
        Answer::Each(reports) => write(arguments, &problems.loops, reports, &budget)?,
    };
    Ok(arguments.search.budget.explain_stop(arguments.search.quiet, exit))
}

/// Writes the schedules of loops that are scheduled each by itself.
fn write(
    arguments: &ScheduleArguments,
    problems: &[LoopProblem],
    reports: &[Report<Verified<Schedule>>],
    budget: &Budget,
) -> Result<Exit, Error> {
    if let Some(folder) = &arguments.certificate {
        let loops = problems.iter().zip(reports).map(|(p, r)| (&p.problem, r, schedule_file(p, r)));
        certify(folder, &arguments.search, loops, None, budget)?;
    }
    if let Some(text) = render(arguments, problems, reports) {
        files::write(arguments.page.output.as_deref(), &text)?;
    }
    Ok(reports.iter().map(|r| exit(r.outcome.status())).max().unwrap_or(Exit::Done))
}

/// What a status says as an exit code.
pub(crate) fn exit(status: Status) -> Exit {
    match status {
        Status::Optimal => Exit::Done,
        Status::Infeasible => Exit::Infeasible,
        Status::Feasible | Status::Unknown => Exit::Stopped,
    }
}

/// Writes what proves each report, and lets no proof out that does not survive its check.
pub(crate) fn certify<'a>(
    folder: &Path,
    arguments: &SearchArguments,
    loops: impl ExactSizeIterator<Item = (&'a Problem, &'a Report<Verified<Schedule>>, ScheduleFile)>,
    together: Option<&str>,
    budget: &Budget,
) -> Result<(), Error> {
    let input = || arguments.source.input.clone();
    let folder = Folder::create(folder)?;
    if let Some(text) = together {
        folder.add_kernel(text)?;
    }
    let several = loops.len() > 1;
    for (index, (problem, report, file)) in loops.enumerate() {
        let certificate =
            twill_exact::certify(problem, report, budget).map_err(|error| Error::Certify { input: input(), error })?;
        twill_check::verify_certificate(problem, &certificate)
            .map_err(|error| Error::DefectiveProof { input: input(), error })?;
        let name = several.then(|| format!("loop-{index}"));
        folder.add(name.as_deref(), &(file.to_json() + "\n"), problem, &certificate)?;
    }
    folder.finish()
}

/// How the arguments ask to search; Ctrl-C ends it.
pub(crate) fn options(arguments: &SearchArguments) -> SearchOptions {
    options_with(arguments, budgets::started(), progress::interrupt())
}

/// How the arguments ask to search, from `started` until `interrupt` is set.
pub(crate) fn options_with(arguments: &SearchArguments, started: Instant, interrupt: Arc<AtomicBool>) -> SearchOptions {
    SearchOptions {
        budget: arguments.budget.budget(started, interrupt),
        largest_interval: arguments.max_interval.map(Cycles),
        ..SearchOptions::default()
    }
}

/// What is written; `None` where there is nothing to draw.
fn render(
    arguments: &ScheduleArguments,
    problems: &[LoopProblem],
    reports: &[Report<Verified<Schedule>>],
) -> Option<Vec<u8>> {
    let each = problems.iter().zip(reports);
    let text = match arguments.format() {
        Format::Json => twill_driver::json(each.map(|(p, r)| schedule_file(p, r))),
        Format::Text => {
            let options = text_options(&arguments.page);
            let one = |(p, r): (&LoopProblem, _)| normalised(p, options) + &twill_report::text(&p.problem, r, options);
            each.map(one).collect::<Vec<_>>().join("\n")
        }
        Format::Pseudocode => each.map(|(p, r)| pseudocode(arguments, &p.problem, r)).collect::<Vec<_>>().join("\n"),
        picture @ (Format::Perfetto | Format::Svg | Format::GraphSvg | Format::Dot) => {
            let loops: Vec<_> = each.map(|(p, r)| (&p.problem, r)).collect();
            return pictures::render(arguments.iterations, picture, &loops);
        }
    };
    Some(text.into_bytes())
}

/// A note on normalised costs, where they are.
pub(crate) fn normalised(one: &LoopProblem, options: twill_report::TextOptions) -> String {
    one.normalisation.map_or(String::new(), |n| {
        let percent = (n.distortion - 1.0) * 100.0;
        let NormalisationEntry { limit, error, .. } = n;
        let text = format!(
            "costs normalised to a sum of at most {limit}: error F = {error} (proved least), \
             ratios within {percent:.1} %; cycles below are normalised\n\n"
        );
        twill_report::folded(&text, options.width)
    })
}

pub(crate) fn pseudocode(
    arguments: &ScheduleArguments,
    problem: &Problem,
    report: &Report<Verified<Schedule>>,
) -> String {
    match report.outcome.schedule() {
        Some(schedule) => twill_codegen::pseudocode(problem, schedule, text_options(&arguments.page).width),
        // There is no program: say why instead.
        None => {
            let width = text_options(&arguments.page).width.saturating_sub(2);
            let options = twill_report::TextOptions { width, color: false };
            let why = twill_report::text(problem, report, options);
            why.lines().map(|l| format!("# {l}").trim_end().to_owned() + "\n").collect()
        }
    }
}

/// How text is laid out.
pub(crate) fn text_options(arguments: &PageArguments) -> twill_report::TextOptions {
    let output = arguments.output.as_deref();
    twill_report::TextOptions { width: width(arguments.width, output), color: color(arguments.color, output) }
}

/// Columns of text output.
pub(crate) fn width(requested: Option<usize>, output: Option<&Path>) -> usize {
    let terminal = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    requested.or_else(|| terminal().filter(|_| output.is_none())).unwrap_or(100).max(twill_report::LEAST_WIDTH)
}

/// Whether text output is in colour.
pub(crate) fn color(requested: Color, output: Option<&Path>) -> bool {
    match requested {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
            output.is_none() && std::io::stdout().is_terminal() && !asked_not_to
        }
    }
}
