//! `twill explain`.

use crate::Exit;
use crate::arguments::{ExplainArguments, ExplainFormat, SearchArguments, SourceArguments, WhatIfs};
use crate::error::Error;
use crate::input::{self, Posed};
use crate::progress::Ticker;
use crate::{files, replay, schedule};
use twill_check::Verified;
use twill_exact::ExplainOptions;
use twill_graph::format::ExplanationFile;
use twill_graph::{Change, Explanation, Report, Schedule, WhatIf};

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Error> {
    let search = &arguments.search;
    let posed = input::problems(search)?.loops;
    let options = schedule::options(search);
    let explain = ExplainOptions {
        // The work budget is the search's; the time budget is granted once more.
        budget: twill_exact::Budget { work: None, ..options.budget.clone() },
        question_work: arguments.effort,
        what_if_work: arguments.effort.saturating_mul(4),
        what_ifs: arguments.what_if == WhatIfs::All,
        largest_interval: options.largest_interval,
    };
    let (mut explanations, mut exit) = (Vec::new(), Exit::Done);
    for (index, one) in posed.iter().enumerate() {
        let report = schedule::solve(search, one, &options, 0.0)?;
        let mut ticker = Ticker::new(search.quiet);
        let mut explanation = twill_exact::explain(&one.problem, &report, &explain, &mut |p| ticker.tell(&p));
        replay::replay(&search.source.input, &one.problem, &mut explanation)?;
        if explain.what_ifs {
            explanation.what_ifs.extend(sub_tiles(search, index, one, &report, &explain));
        }
        explanations.push(explanation);
        exit = exit.max(schedule::exit(report.outcome.status()));
    }
    files::write(arguments.page.output.as_deref(), &render(arguments, &posed, &explanations))?;
    Ok(exit)
}

fn render(arguments: &ExplainArguments, posed: &[Posed], explanations: &[Explanation]) -> String {
    let each = posed.iter().zip(explanations);
    match arguments.format {
        ExplainFormat::Json => files::json(each.map(|(p, e)| ExplanationFile::new(&p.problem, e))),
        ExplainFormat::Text => {
            let options = schedule::text_options(&arguments.page);
            let one =
                |(p, e): (&Posed, _)| schedule::normalised(p) + &twill_report::explanation(&p.problem, e, options);
            each.map(one).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The same kernel cut into the next fewer and the next more sub-tiles that its tiles allow.
fn sub_tiles(
    search: &SearchArguments,
    index: usize,
    posed: &Posed,
    report: &Report<Verified<Schedule>>,
    options: &ExplainOptions,
) -> Vec<WhatIf> {
    // Normalised costs of different graphs cannot be compared.
    let Some(now) = posed.sub_tiles.filter(|_| search.normalise == 0) else { return Vec::new() };
    let cut = |count: u32| {
        let source = SourceArguments { sub_tiles: Some(count), ..search.source.clone() };
        let mut others = input::problems(&SearchArguments { source, ..search.clone() }).ok()?.loops;
        let other = (index < others.len()).then(|| others.swap_remove(index))?;
        (other.sub_tiles == Some(count)).then_some((count, other))
    };
    let fewer = (1..now).rev().find_map(cut);
    let more = (now + 1..=now.saturating_mul(2)).find_map(cut);
    let solve = |(sub_tiles, other): (u32, Posed)| {
        twill_exact::what_if(report, Change::SubTiles { sub_tiles }, &other.problem, options)
    };
    fewer.into_iter().chain(more).map(solve).collect()
}
