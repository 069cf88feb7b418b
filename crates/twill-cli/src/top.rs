//! `twill schedule --top`: several different schedules of one loop, to be timed.

use crate::arguments::{Format, ScheduleArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Ticker;
use crate::{budgets, files, loop_text, pictures};
use twill_driver::{LoopProblem, Request, Session, Top, TopOptions, schedule_file};
use twill_exact::{End, SearchOptions};
use twill_graph::Cycles;
use twill_graph::format::ScheduleFile;

/// Searches, and writes what was found.
pub(crate) fn run(
    arguments: &ScheduleArguments,
    request: &Request,
    problems: &[LoopProblem],
    requested: TopOptions,
    options: SearchOptions,
    reading: f64,
) -> Result<Exit, Error> {
    let input = &request.input.name;
    let [one] = problems else {
        return Err(twill_driver::Error::TopOfLoops { input: input.clone(), count: problems.len() }.into());
    };
    let mut ticker = Ticker::new(arguments.search.quiet);
    let mut session = Session { cache: arguments.search.cache(), ..Session::new(options, &mut ticker) };
    let top = twill_driver::top(input, one, requested, &mut session, reading)?;
    drop(ticker);
    if let Some(text) = render(arguments, one, &top) {
        files::write(arguments.page.output.as_deref(), &text)?;
    }
    let exit = top.each.first().map_or(Exit::Done, |best| Exit::of(best.report.outcome.status()));
    Ok(budgets::explain_stop(&arguments.search.search, arguments.search.quiet, exit))
}

/// What is written; `None` where there is nothing to draw.
fn render(arguments: &ScheduleArguments, one: &LoopProblem, top: &Top) -> Option<Vec<u8>> {
    let reports = || top.each.iter().map(|one| &one.report);
    let text = match arguments.format() {
        Format::Json => {
            let all: Vec<ScheduleFile> = reports().map(|r| schedule_file(one, r)).collect();
            // Plain data always serialises.
            serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
        }
        Format::Text => {
            let options = arguments.page.text_options();
            let best = reports().take(1).map(|r| twill_report::text(&one.problem, r, options));
            let mut out = loop_text::normalised(one, options) + &best.collect::<String>();
            if reports().any(|r| r.outcome.schedule().is_some()) {
                let each: Vec<_> = top.each.iter().map(|one| (&one.report, one.differences.as_slice())).collect();
                out += &twill_report::alternatives_text(&each, &told(top), options);
            }
            out
        }
        Format::Pseudocode => {
            reports().map(|r| loop_text::pseudocode(arguments, &one.problem, r)).collect::<Vec<_>>().join("\n")
        }
        picture @ (Format::Perfetto | Format::Svg | Format::GraphSvg | Format::Dot) => {
            let all: Vec<_> = reports().map(|r| (&one.problem, r)).collect();
            return pictures::render(arguments.iterations, picture, &all);
        }
    };
    Some(text.into_bytes())
}

/// What is known of the number of schedules.
fn told(top: &Top) -> String {
    let stages = top.stages;
    let complete = match top.complete_through {
        Some(Cycles(interval)) => {
            format!(
                "Every other schedule with I <= {interval} and N <= {stages} does the same as one of these: proved."
            )
        }
        None => format!("More were not excluded, not even at the first one's interval with N <= {stages}."),
    };
    let end = match &top.end {
        End::Most => format!(" The search ended with the {} that were asked for (--top).", top.each.len()),
        End::Complete => String::new(),
        End::Unproved => " Nothing more was found with the work that one schedule is given.".to_owned(),
        End::Stopped { by } => format!(" The search was stopped by: {by}."),
    };
    complete + &end
}
