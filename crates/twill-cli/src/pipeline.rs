//! `twill schedule --swp-only`: software pipelining alone, without warps.

use crate::Exit;
use crate::arguments::{Format, ScheduleArguments};
use crate::error::Error;
use crate::files;
use crate::input::Posed;
use crate::progress::Ticker;
use crate::schedule::{exit, normalised, text_options};
use std::time::Instant;
use twill_check::Verified;
use twill_exact::SearchOptions;
use twill_graph::format::PipelineFile;
use twill_graph::{Phase, Pipeline, Report};

pub(crate) fn run(
    arguments: &ScheduleArguments,
    posed: &[Posed],
    options: &SearchOptions,
    reading: f64,
) -> Result<Exit, Error> {
    let reports: Result<Vec<_>, Error> = posed.iter().map(|one| solve(arguments, one, options, reading)).collect();
    let reports = reports?;
    let each = posed.iter().zip(&reports);
    let text = match arguments.format {
        Format::Json => files::json(each.map(|(p, r)| file(p, r))),
        Format::Text => {
            let options = text_options(&arguments.page);
            let one = |(p, r): (&Posed, _)| normalised(p) + &twill_report::pipeline_text(&p.problem, r, options);
            each.map(one).collect::<Vec<_>>().join("\n")
        }
        Format::Pseudocode => return Err(Error::NoProgram { input: arguments.search.source.input.clone() }),
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(reports.iter().map(|r| exit(r.outcome.status())).max().unwrap_or(Exit::Done))
}

/// Searches, and lets nothing out that does not survive its replay.
fn solve(
    arguments: &ScheduleArguments,
    posed: &Posed,
    options: &SearchOptions,
    reading: f64,
) -> Result<Report<Verified<Pipeline>>, Error> {
    let mut ticker = Ticker::new(arguments.search.quiet);
    let report = twill_exact::pipeline(&posed.problem, options, &mut |p| ticker.tell(&p));
    drop(ticker);
    let started = Instant::now();
    let verify = |pipeline| twill_check::verify_pipeline(&posed.problem, pipeline);
    let mut verified = report
        .try_map(verify)
        .map_err(|error| Error::Defect { input: arguments.search.source.input.clone(), error })?;
    verified.phases.insert(0, Phase { name: "reading".into(), seconds: reading });
    verified.phases.push(Phase { name: "replay".into(), seconds: started.elapsed().as_secs_f64() });
    Ok(verified)
}

fn file(posed: &Posed, report: &Report<Verified<Pipeline>>) -> PipelineFile {
    let mut file = PipelineFile::new(&posed.problem, report);
    file.normalisation = posed.normalisation;
    file
}
