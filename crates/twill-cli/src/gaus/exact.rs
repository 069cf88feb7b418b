//! `twill gaus --engine exact`: the least initiation interval of a loop without warps, with its proof.

use super::problem::{limited, read};
use super::search::exact_loop;
use crate::Exit;
use crate::arguments::{EngineArgument, GausArguments, GausFormat, ObjectiveArgument, StartArgument, Weights};
use crate::budgets;
use crate::error::Error;
use crate::files;
use crate::progress::{self, Ticker};
use crate::schedule::{exit, text_options};
use std::path::{Path, PathBuf};
use std::time::Instant;
use twill_graph::format::{ModuloFile, NamedText, read_graphml};
use twill_graph::{ModuloProblem, Phase};

pub(super) fn run(arguments: &GausArguments) -> Result<Exit, Error> {
    refuse(arguments)?;
    let started = Instant::now();
    let (problem, input) = pose(arguments)?;
    let reading = Phase { name: "reading".into(), seconds: started.elapsed().as_secs_f64() };
    let limits = arguments.limits();
    let budget = limits.budget(budgets::started(), progress::interrupt());
    let mut ticker = Ticker::new(arguments.quiet);
    let report = twill_exact::modulo_schedule(&problem, &budget, &mut |p| ticker.say(&p.to_string()));
    drop(ticker);
    let started = Instant::now();
    let verify = |schedule| twill_check::verify_modulo(&problem, schedule);
    let mut report = report.try_map(verify).map_err(|error| Error::Defect { input, error })?;
    report.phases.insert(0, reading);
    report.phases.push(Phase { name: "replay".into(), seconds: started.elapsed().as_secs_f64() });
    let text = match arguments.format() {
        GausFormat::Json => ModuloFile::new(&problem, &report).to_json() + "\n",
        _ => twill_report::modulo_text(&problem, &report, text_options(&arguments.page)),
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    Ok(limits.explain_stop(arguments.quiet, exit(report.outcome.status())))
}

/// The loop, and the name of the input in errors. HatScheT's files say more of their loops than a dataflow graph keeps.
fn pose(arguments: &GausArguments) -> Result<(ModuloProblem, String), Error> {
    if let Some(path) = arguments.input.as_deref().filter(|path| is_graphml(path)) {
        let model = arguments.resources.clone().unwrap_or_else(|| resource_model(path));
        let (graph_file, model_file) = (path.display().to_string(), model.display().to_string());
        let (graph, model) = (files::read(path)?, files::read(&model)?);
        let graph = NamedText { file: &graph_file, text: &graph };
        return Ok((read_graphml(graph, NamedText { file: &model_file, text: &model })?, graph_file));
    }
    let (graph, input) = read(arguments)?;
    let graph = limited(graph, &arguments.resource_cap)
        .map_err(|error| Error::Dataflow { input: input.clone(), error })?;
    match exact_loop(&graph) {
        Some(problem) => Ok((problem, input)),
        None => Err(Error::NotExact { input }),
    }
}

fn is_graphml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("graphml"))
}

/// Refuses options that the exact engine would silently leave out.
fn refuse(arguments: &GausArguments) -> Result<(), Error> {
    let GausArguments { objective, start, latency, latency_factor, ii, .. } = arguments;
    let is_graphml = arguments.input.as_deref().is_some_and(is_graphml);
    let given = [
        ("format", matches!(arguments.format(), GausFormat::Summary | GausFormat::Perfetto)),
        ("machine", arguments.machine.is_some() && is_graphml),
        ("loop", arguments.loop_index.is_some() && is_graphml),
        ("resource-cap", !arguments.resource_cap.is_empty() && is_graphml),
        ("objective", *objective != ObjectiveArgument::Resources),
        ("weights", arguments.weights != Weights::default()),
        ("latency", latency.is_some()),
        ("latency-factor", latency_factor.is_some()),
        ("ii", ii.is_some()),
        ("start", *start != StartArgument::Middle),
        ("known", !arguments.known.is_empty()),
        ("no-gradient", arguments.no_gradient),
        ("polish-sweeps", arguments.polish_sweeps.is_some()),
        ("rounds", arguments.rounds.is_some()),
        ("windows", arguments.windows.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some(("format", _)) => Err(Error::Arguments("--engine exact writes text or json (--format)".to_owned())),
        Some((option, _)) => Err(Error::Arguments(format!("--engine exact would leave --{option} out"))),
        None => Ok(()),
    }
}

/// Refuses what only the exact engine takes.
pub(super) fn refuse_elsewhere(arguments: &GausArguments) -> Result<(), Error> {
    if arguments.work_limit.is_some() && arguments.engine != EngineArgument::Exact {
        return Err(Error::Arguments("--work-limit is for --engine exact".to_owned()));
    }
    Ok(())
}

/// `graph1.graphml` → `graph1_RM.xml`, as HatScheT names them.
pub(super) fn resource_model(graph: &Path) -> PathBuf {
    let mut name = graph.file_stem().unwrap_or_default().to_owned();
    name.push("_RM.xml");
    graph.with_file_name(name)
}
