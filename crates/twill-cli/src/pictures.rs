//! `--format perfetto`, `svg`, `graph-svg` and `dot` of `twill schedule` and `twill report`: pictures of what was found.

use crate::arguments::{Format, ScheduleArguments};
use crate::error::Error;
use std::io::IsTerminal;
use std::path::Path;
use twill_check::Verified;
use twill_graph::{Problem, Report, Schedule};

/// A loop with what was found for it.
pub(crate) type ReportedLoop<'a> = (&'a Problem, &'a Report<Verified<Schedule>>);

/// Refuses to write bytes to a terminal, before anything is searched.
pub(crate) fn check_output(binary: bool, output: Option<&Path>) -> Result<(), Error> {
    let to_standard_output = output.is_none_or(|path| path == Path::new("-"));
    if binary && to_standard_output && std::io::stdout().is_terminal() {
        return Err(Error::BinaryToTerminal);
    }
    Ok(())
}

/// Refuses what could not be written, before anything is searched.
pub(crate) fn check(arguments: &ScheduleArguments) -> Result<(), Error> {
    if arguments.iterations.is_some() && !matches!(arguments.format(), Format::Perfetto | Format::Svg) {
        return Err(Error::Arguments("--iterations is for --format perfetto and --format svg".to_owned()));
    }
    check_output(arguments.format() == Format::Perfetto, arguments.page.output.as_deref())
}

/// The picture that was asked for, of all loops; `None`, and on standard error why, where there is no schedule to draw.
pub(crate) fn render(iterations: Option<u32>, format: Format, loops: &[ReportedLoop<'_>]) -> Option<Vec<u8>> {
    let schedule = |report: &Report<Verified<Schedule>>| report.outcome.schedule().map(|s| (**s).clone());
    let placed: Vec<(&Problem, Option<Schedule>)> = loops.iter().map(|(p, r)| (*p, schedule(r))).collect();
    let graphs: Vec<(&Problem, Option<&Schedule>)> = placed.iter().map(|(p, s)| (*p, s.as_ref())).collect();
    match format {
        Format::GraphSvg => return Some(twill_report::graphs_svg(&graphs, Default::default()).into_bytes()),
        Format::Dot => {
            let each = graphs.iter().map(|(problem, schedule)| twill_report::graph_dot(problem, *schedule));
            return Some(each.collect::<String>().into_bytes());
        }
        _ => {}
    }
    let scheduled: Option<Vec<(&Problem, &Schedule)>> = graphs.iter().map(|(p, s)| s.map(|s| (*p, s))).collect();
    let Some(scheduled) = scheduled else {
        for (problem, report) in loops.iter().filter(|(_, report)| report.outcome.schedule().is_none()) {
            eprint!("{}", twill_report::text(problem, report, Default::default()));
        }
        eprintln!("no schedule, so nothing is drawn");
        return None;
    };
    if format == Format::Perfetto {
        let most = scheduled.iter().map(|(_, schedule)| twill_report::trace_iterations(schedule)).max();
        return Some(twill_report::perfetto(&scheduled, iterations.or(most).unwrap_or(1)));
    }
    let options = twill_report::TimelineOptions { iterations, ..Default::default() };
    Some(twill_report::timelines_svg(&scheduled, options).into_bytes())
}
