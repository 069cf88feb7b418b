//! `twill modulo`: the least initiation interval of a loop without warps.

use crate::Exit;
use crate::arguments::{ModuloArguments, ModuloFormat};
use crate::budgets;
use crate::error::Error;
use crate::files;
use crate::progress::{self, Ticker};
use crate::schedule::{exit, text_options};
use std::path::PathBuf;
use std::time::Instant;
use twill_graph::Phase;
use twill_graph::format::{ModuloFile, NamedText, read_graphml};

pub(crate) fn run(arguments: &ModuloArguments) -> Result<Exit, Error> {
    let started = Instant::now();
    let model = arguments.resources.clone().unwrap_or_else(|| beside(&arguments.graph));
    let (graph_file, model_file) = (arguments.graph.display().to_string(), model.display().to_string());
    let (graph, model) = (files::read(&arguments.graph)?, files::read(&model)?);
    let problem =
        read_graphml(NamedText { file: &graph_file, text: &graph }, NamedText { file: &model_file, text: &model })?;
    let reading = Phase { name: "reading".into(), seconds: started.elapsed().as_secs_f64() };
    let budget = arguments.budget.budget(budgets::started(), progress::interrupt());
    let mut ticker = Ticker::new(arguments.quiet);
    let report = twill_exact::modulo_schedule(&problem, &budget, &mut |p| ticker.say(&p.to_string()));
    drop(ticker);
    let started = Instant::now();
    let verify = |schedule| twill_check::verify_modulo(&problem, schedule);
    let mut report = report.try_map(verify).map_err(|error| Error::Defect { input: graph_file.clone(), error })?;
    report.phases.insert(0, reading);
    report.phases.push(Phase { name: "replay".into(), seconds: started.elapsed().as_secs_f64() });
    let text = match arguments.format() {
        ModuloFormat::Json => ModuloFile::new(&problem, &report).to_json() + "\n",
        ModuloFormat::Text => twill_report::modulo_text(&problem, &report, text_options(&arguments.page)),
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(arguments.budget.explain_stop(arguments.quiet, exit(report.outcome.status())))
}

/// `graph1.graphml` → `graph1_RM.xml`, as HatScheT names them.
pub(crate) fn beside(graph: &std::path::Path) -> PathBuf {
    let mut name = graph.file_stem().unwrap_or_default().to_owned();
    name.push("_RM.xml");
    graph.with_file_name(name)
}
