//! The exact engine: the least initiation interval of a loop without warps, with its proof.

use super::GausError;
use super::exact_loop::exact_loop;
use super::problem::{in_time, limited, read};
use crate::options::{GausEngine, GausGpu, GausOptions, GausStart, Objective, Weights};
use crate::{Observer, files};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use twill_check::Verified;
use twill_graph::format::{NamedText, read_graphml};
use twill_graph::{IssueTimes, ModuloProblem, Phase, Report};
use web_time::Instant;

/// A loop, and what is proved of its interval, replayed.
#[derive(Clone, Debug)]
pub struct ExactLoop {
    /// The loop.
    pub problem: ModuloProblem,
    /// What was found.
    pub report: Report<Verified<IssueTimes>>,
}

/// Finds the least interval of a loop, or of a random one where there is no input, from `started` until `interrupt` is set.
///
/// # Errors
/// When the input does not read, is no loop that the engine takes, or an option is for other engines.
pub fn exact(
    input: Option<&Path>,
    arguments: &GausOptions,
    started: Instant,
    interrupt: Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<ExactLoop, GausError> {
    refuse(input, arguments)?;
    let begun = Instant::now();
    let (path, options) = (input.map(Path::to_owned), arguments.clone());
    let read = move || state(path.as_deref(), &options);
    let (problem, input) = in_time(input, arguments, started, &interrupt, read)?;
    let reading = Phase { name: "reading".into(), seconds: begun.elapsed().as_secs_f64() };
    let budget = arguments.limits().budget(started, interrupt);
    let report = twill_exact::modulo_schedule(&problem, &budget, &mut |p| observer.say(&p.to_string()));
    let begun = Instant::now();
    let verify = |schedule| twill_check::verify_modulo(&problem, schedule);
    let mut report = report.try_map(verify).map_err(|error| GausError::Defect { input, error })?;
    report.phases.insert(0, reading);
    report.phases.push(Phase { name: "replay".into(), seconds: begun.elapsed().as_secs_f64() });
    Ok(ExactLoop { problem, report })
}

/// The loop, and the name of the input in errors. HatScheT's files say more of their loops than a dataflow graph keeps.
fn state(input: Option<&Path>, arguments: &GausOptions) -> Result<(ModuloProblem, String), GausError> {
    if let Some(path) = input.filter(|path| is_graphml(path)) {
        let model = arguments.resources.clone().unwrap_or_else(|| resource_model(path));
        let (graph_file, model_file) = (path.display().to_string(), model.display().to_string());
        let (graph, model) = (files::read(path)?, files::read(&model)?);
        let graph = NamedText { file: &graph_file, text: &graph };
        return Ok((read_graphml(graph, NamedText { file: &model_file, text: &model })?, graph_file));
    }
    let (graph, input) = read(input, arguments)?;
    let graph =
        limited(graph, &arguments.resource_cap).map_err(|error| GausError::Dataflow { input: input.clone(), error })?;
    match exact_loop(&graph) {
        Some(problem) => Ok((problem, input)),
        None => Err(GausError::NotExact { input }),
    }
}

fn is_graphml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("graphml"))
}

/// Refuses options that the exact engine would silently leave out.
fn refuse(input: Option<&Path>, arguments: &GausOptions) -> Result<(), GausError> {
    let GausOptions { objective, start, latency, latency_factor, ii, .. } = arguments;
    let is_graphml = input.is_some_and(is_graphml);
    let given = [
        ("machine", arguments.machine.is_some() && is_graphml),
        ("loop", arguments.loop_index.is_some() && is_graphml),
        ("resource-cap", !arguments.resource_cap.is_empty() && is_graphml),
        ("objective", *objective != Objective::Resources),
        ("weights", arguments.weights != Weights::default()),
        ("latency", latency.is_some()),
        ("latency-factor", latency_factor.is_some()),
        ("ii", ii.is_some()),
        ("start", *start != GausStart::Middle),
        ("known", !arguments.known.is_empty()),
        ("no-gradient", arguments.no_gradient),
        ("gpu", arguments.gpu == GausGpu::Always),
        ("polish-sweeps", arguments.polish_sweeps.is_some()),
        ("rounds", arguments.rounds.is_some()),
        ("windows", arguments.windows.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(GausError::OnlyGaus { option }),
        None => Ok(()),
    }
}

/// Refuses what only the exact engine takes.
pub(super) fn refuse_elsewhere(arguments: &GausOptions) -> Result<(), GausError> {
    if arguments.work_limit.is_some() && arguments.engine != GausEngine::Exact {
        return Err(GausError::OnlyExact { option: "work-limit" });
    }
    Ok(())
}

/// `graph1.graphml` → `graph1_RM.xml`, as HatScheT names them.
pub(super) fn resource_model(graph: &Path) -> PathBuf {
    let mut name = graph.file_stem().unwrap_or_default().to_owned();
    name.push("_RM.xml");
    graph.with_file_name(name)
}
