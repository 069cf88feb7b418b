//! `twill explain`.

use crate::Exit;
use crate::arguments::{ExplainArguments, ExplainFormat, WhatIfs};
use crate::error::Error;
use crate::progress::Ticker;
use crate::{budgets, files, schedule};
use twill_driver::{Explained, Session};
use twill_exact::ExplainOptions;
use twill_graph::format::ExplanationFile;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Error> {
    let search = &arguments.search;
    let request = search.request()?;
    let mut options = schedule::options(search);
    let explain = ExplainOptions {
        budget: budgets::for_explanation(&mut options),
        question_work: arguments.effort,
        what_if_work: arguments.effort.saturating_mul(4),
        what_ifs: arguments.what_if == WhatIfs::All,
        largest_interval: options.largest_interval,
    };
    let mut ticker = Ticker::new(search.quiet);
    let mut session = Session { cache: search.cache(), ..Session::new(options, &mut ticker) };
    let all = twill_driver::explanations(&request, &explain, &mut session)?;
    drop(ticker);
    files::write(arguments.page.output.as_deref(), &render(arguments, &all))?;
    let exit = all.iter().map(|e| schedule::exit(e.status)).max().unwrap_or(Exit::Done);
    Ok(search.budget.explain_stop(search.quiet, exit))
}

fn render(arguments: &ExplainArguments, all: &[Explained]) -> String {
    match arguments.format() {
        ExplainFormat::Json => {
            twill_driver::json(all.iter().map(|e| ExplanationFile::new(&e.of.problem, &e.explanation)))
        }
        ExplainFormat::Text => {
            let options = schedule::text_options(&arguments.page);
            let one = |e: &Explained| {
                schedule::normalised(&e.of, options)
                    + &twill_report::explanation(&e.of.problem, &e.explanation, options)
            };
            all.iter().map(one).collect::<Vec<_>>().join("\n")
        }
    }
}
