//! `twill schedule --swp-only`: software pipelining alone, without warps.

use crate::arguments::{Format, ScheduleArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::loop_text::normalised;
use crate::progress::Ticker;
use twill_check::Verified;
use twill_driver::{LoopProblem, Request, Session};
use twill_exact::SearchOptions;
use twill_graph::format::PipelineFile;
use twill_graph::{Pipeline, Report};

pub(crate) fn run(
    arguments: &ScheduleArguments,
    request: &Request,
    problems: &[LoopProblem],
    options: SearchOptions,
    reading: f64,
) -> Result<Exit, Error> {
    let mut ticker = Ticker::new(arguments.search.quiet);
    let input = &request.input.name;
    let mut session = Session::new(options, &mut ticker);
    let mut solve = |one| twill_driver::pipeline(input, one, &mut session, reading).map_err(Error::from);
    let reports: Result<Vec<_>, _> = problems.iter().map(&mut solve).collect();
    let reports = reports?;
    drop(ticker);
    let each = problems.iter().zip(&reports);
    let text = match arguments.format() {
        Format::Json => twill_driver::json(each.map(|(p, r)| file(p, r))),
        Format::Text => {
            let options = arguments.page.text_options();
            let one = |(p, r): (&LoopProblem, _)| {
                normalised(p, options) + &twill_report::pipeline_text(&p.problem, r, options)
            };
            each.map(one).collect::<Vec<_>>().join("\n")
        }
        Format::Pseudocode => return Err(Error::NoProgram { input: arguments.search.source.input.clone() }),
        Format::Perfetto | Format::Svg | Format::GraphSvg | Format::Dot => {
            let input = arguments.search.source.input.clone();
            return Err(Error::NoPicture { input, others: "text or json" });
        }
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(reports.iter().map(|r| Exit::of(r.outcome.status())).max().unwrap_or(Exit::Done))
}

fn file(one: &LoopProblem, report: &Report<Verified<Pipeline>>) -> PipelineFile {
    let mut file = PipelineFile::new(&one.problem, report);
    file.normalisation = one.normalisation;
    file
}
