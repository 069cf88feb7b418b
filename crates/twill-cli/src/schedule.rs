//! `twill schedule`.

use crate::arguments::{Emit, Format, ScheduleArguments};
use crate::certificate::certify;
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::loop_text::{normalised, pseudocode};
use crate::progress::Ticker;
use crate::{budgets, front, pictures, pipeline, report, siblings, smtlib, top};
use std::time::Instant;
use twill_check::Verified;
use twill_driver::{Answer, LoopProblem, Session, schedule_file};
use twill_exact::Budget;
use twill_graph::{Report, Schedule};

pub(crate) fn run(arguments: &ScheduleArguments) -> Result<Exit, Error> {
    if arguments.is_page() {
        return report::page_of_schedule(arguments);
    }
    pictures::check(arguments)?;
    if let Some(exit) = front::dataflow(arguments)? {
        return Ok(exit);
    }
    let started = Instant::now();
    let request = arguments.search.request(&arguments.siblings)?;
    let problems = twill_driver::problems(&request)?;
    let reading = started.elapsed().as_secs_f64();
    if let Some(exit) = front::large(arguments, &problems.loops)? {
        return Ok(exit);
    }
    let options = arguments.search.search();
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
    let machine =
        |problems: &twill_driver::Loops<LoopProblem>| problems.loops.first().map(|one| one.problem.resources().clone());
    let requested = machine(&problems);
    let (problems, answer) = twill_driver::answer_or_relaxed(&request, problems, &mut session, reading)?;
    drop(ticker);
    let exit = match &answer {
        Answer::Together(kernel, report) => siblings::write(arguments, kernel, report, &budget)?,
        Answer::Each(reports) => write(arguments, &problems.loops, reports, &budget)?,
    };
    if machine(&problems) != requested {
        // A note has said that it is a schedule for more registers, of which nothing is proved.
        return Ok(exit);
    }
    Ok(budgets::explain_stop(&arguments.search.search, arguments.search.quiet, exit))
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
    Ok(reports.iter().map(|r| Exit::of(r.outcome.status())).max().unwrap_or(Exit::Done))
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
            let options = arguments.page.text_options();
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
