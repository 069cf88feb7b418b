//! `twill explain`.

use crate::arguments::{ExplainArguments, ExplainFormat, WhatIfs};
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Ticker;
use crate::{budgets, files, loop_text};
use twill_driver::options::explain_options;
use twill_driver::{Explained, Session, SiblingOptions};
use twill_graph::format::ExplanationFile;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Error> {
    let search = &arguments.search;
    let request = search.request(&SiblingOptions::default())?;
    let mut options = search.search();
    let explain = explain_options(&mut options, arguments.effort, arguments.what_if == WhatIfs::All);
    let mut ticker = Ticker::new(search.quiet);
    let mut session = Session { cache: search.cache(), ..Session::new(options, &mut ticker) };
    let all = twill_driver::explanations(&request, &explain, &mut session)?;
    drop(ticker);
    files::write(arguments.page.output.as_deref(), &render(arguments, &all))?;
    let exit = all.iter().map(|e| Exit::of(e.status)).max().unwrap_or(Exit::Done);
    Ok(budgets::explain_stop(&search.search, search.quiet, exit))
}

fn render(arguments: &ExplainArguments, all: &[Explained]) -> String {
    match arguments.format() {
        ExplainFormat::Json => {
            twill_driver::json(all.iter().map(|e| ExplanationFile::new(&e.of.problem, &e.explanation)))
        }
        ExplainFormat::Text => {
            let options = arguments.page.text_options();
            let one = |e: &Explained| {
                loop_text::normalised(&e.of, options)
                    + &twill_report::explanation(&e.of.problem, &e.explanation, options)
            };
            all.iter().map(one).collect::<Vec<_>>().join("\n")
        }
    }
}
