//! From options and the text of a graph to the problem.

use super::GausError;
use crate::files;
use crate::kind::InputKind;
use crate::options::{Cap, GausOptions, LoweringOptions, Objective};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use twill_gaus::{Control, Mobility, least_interval_within};
use twill_graph::format::{DataflowOptions, GraphFile, NamedText, loop_dataflow, read_dataflow};
use twill_graph::{Dataflow, DataflowError, DataflowObjective, DataflowProblem, DataflowResource};
use web_time::Instant;

/// Of the longest path, for objectives that grow without bound as schedules get shorter.
const FACTOR: f64 = 1.5;

/// The problem of an input, and what errors call the input.
pub(super) fn state(
    input: Option<&Path>,
    arguments: &GausOptions,
    begun: Instant,
    interrupt: &AtomicBool,
) -> Result<(DataflowProblem, String), GausError> {
    let shares_steps = arguments.chaining.unwrap_or_else(|| input.is_some_and(is_gml));
    let (graph, input) = read_in_time(input, arguments, begun, interrupt)?;
    let wrong = |error| GausError::Dataflow { input: input.clone(), error };
    let graph = limited(graph, &arguments.resource_cap).map_err(wrong)?;
    let objective = match arguments.objective {
        _ if arguments.smallest_ii => DataflowObjective::Latency,
        Objective::Resources => DataflowObjective::Resources {
            peak: arguments.weights.peak,
            communication: arguments.weights.communication,
        },
        Objective::Storage => DataflowObjective::Storage,
        Objective::Latency => DataflowObjective::Latency,
    };
    let interval = match arguments.smallest_ii {
        true => Some(least_interval(arguments, &graph, interrupt)),
        false => arguments.ii,
    };
    let mut problem = DataflowProblem { graph, latency_bound: arguments.latency, interval, objective };
    let unbounded = interval.is_some() || objective == DataflowObjective::Latency;
    let factor = arguments.latency_factor.or((!unbounded && arguments.latency.is_none()).then_some(FACTOR));
    if let Some(factor) = factor {
        let least =
            Mobility::new(&problem).map_err(|error| GausError::Search { input: input.clone(), error: error.into() })?;
        // Where consumers may share their producers' steps, paths are still counted in the latencies of operations, as
        // GS-Schedule's depth is: else all would fit into one step, and there would be nothing to schedule.
        let path = if shares_steps { longest_path(&problem.graph).max(least.latency) } else { least.latency };
        problem.latency_bound = Some((path as f64 * factor).floor() as u64);
    }
    Ok((problem, input))
}

fn is_gml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gml"))
}

/// The most that latencies add up to along dependences within an iteration.
fn longest_path(graph: &Dataflow) -> u64 {
    let latency = |v: usize| u64::from(graph.operations()[v].latency);
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); graph.operations().len()];
    for d in graph.dependences().iter().filter(|d| d.distance == 0) {
        readers[d.from.index()].push(d.to.index() as u32);
    }
    let mut ends: Vec<u64> = (0..readers.len()).map(latency).collect();
    // A graph has an order: it was checked when it was built.
    for op in graph.order().unwrap_or_default() {
        for &reader in &readers[op.index()] {
            let reader = reader as usize;
            ends[reader] = ends[reader].max(ends[op.index()] + latency(reader));
        }
    }
    ends.into_iter().max().unwrap_or(0)
}

/// How often it is looked whether a graph has been read.
const LOOK: Duration = Duration::from_millis(10);

/// [`read`], as long as there is time.
fn read_in_time(
    input: Option<&Path>,
    arguments: &GausOptions,
    begun: Instant,
    interrupt: &AtomicBool,
) -> Result<(Dataflow, String), GausError> {
    let (path, options) = (input.map(Path::to_owned), arguments.clone());
    in_time(input, arguments, begun, interrupt, move || read(path.as_deref(), &options))
}

/// The result of `work`, given up when the time is over: it knows no clock, and goes on by itself until it is done.
pub(super) fn in_time<T: Send + 'static>(
    input: Option<&Path>,
    arguments: &GausOptions,
    begun: Instant,
    interrupt: &AtomicBool,
    work: impl Fn() -> Result<T, GausError> + Clone + Send + 'static,
) -> Result<T, GausError> {
    let (sender, receiver) = mpsc::channel();
    let copy = work.clone();
    let send = move || {
        // Who has stopped waiting does not want it.
        let _ = sender.send(copy());
    };
    if std::thread::Builder::new().name("reading".into()).spawn(send).is_err() {
        return work();
    }
    let until = arguments.seconds().map(Duration::from_secs_f64);
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(found) => return found,
            Err(RecvTimeoutError::Disconnected) => return work(),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.load(Ordering::Relaxed) || until.is_some_and(|until| begun.elapsed() >= until) {
            let input = input.map_or_else(|| "--random".to_owned(), |path| path.display().to_string());
            return Err(GausError::Stopped { input });
        }
    }
}

/// A bound on the interval, which may take a tenth of the time.
pub(super) fn least_interval(arguments: &GausOptions, graph: &Dataflow, interrupt: &AtomicBool) -> u64 {
    let time = arguments.seconds().map(|seconds| Duration::from_secs_f64(seconds / 10.0));
    let control = Control { time, interrupt: Some(interrupt), enough: None, memory: arguments.memory() };
    least_interval_within(graph, control).least()
}

/// Whether a dataflow graph in a file has dependences between iterations.
///
/// # Errors
/// When it does not read.
pub fn is_loop(path: &Path) -> Result<bool, GausError> {
    let (name, text) = (path.display().to_string(), files::read(path)?);
    let graph = read_dataflow(NamedText { file: &name, text: &text }, &DataflowOptions::default())?;
    Ok(graph.dependences().iter().any(|d| d.distance > 0))
}

/// The graph of an input, or a random one, and what errors call it.
pub(super) fn read(input: Option<&Path>, arguments: &GausOptions) -> Result<(Dataflow, String), GausError> {
    let Some(path) = input else {
        let random = arguments.random.unwrap_or_default();
        let graph = random.graph().map_err(GausError::Random)?;
        return Ok((graph, "--random".into()));
    };
    let name = path.display().to_string();
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let text = if files::exists(path) { Some(files::read(path)?) } else { None };
    let is_loop = text.as_deref().is_none_or(|text| match InputKind::of(path, text) {
        InputKind::LoopGraph => GraphFile::is_named_in(text),
        // Without an ending of another format.
        InputKind::Kernel => ending == "ttir" || text.contains("tt.func"),
        InputKind::Hatschet | InputKind::Dataflow => false,
    });
    if is_loop {
        return from_loop(arguments, &name).map(|graph| (graph, name));
    }
    let model = match ending {
        // Where there is none, the reader says what it needs.
        "graphml" => {
            arguments.resources.clone().or_else(|| Some(super::exact::resource_model(path)).filter(|p| p.exists()))
        }
        _ => arguments.resources.clone(),
    };
    let model = model.map(|path| files::read(&path).map(|text| (path.display().to_string(), text))).transpose()?;
    let options = DataflowOptions {
        model: model.as_ref().map(|(file, text)| NamedText { file, text }),
        machine: None,
        chaining: arguments.chaining,
    };
    let graph = read_dataflow(NamedText { file: &name, text: text.as_deref().unwrap_or_default() }, &options)?;
    Ok((graph, name))
}

/// A loop of a kernel, or a loop graph: its units are the resources; warps are left out.
fn from_loop(arguments: &GausOptions, name: &str) -> Result<Dataflow, GausError> {
    let lowering = LoweringOptions {
        machine: arguments.machine.clone(),
        loop_index: arguments.loop_index,
        ..LoweringOptions::default()
    };
    let loops = crate::lowered(&files::named(name)?, &lowering.lowering()?)?.loops;
    match loops.as_slice() {
        [one] => loop_dataflow(&one.graph, &one.resources.units)
            .map_err(|error| GausError::Dataflow { input: name.to_owned(), error }),
        several => Err(GausError::SeveralLoops { input: name.to_owned(), count: several.len() }),
    }
}

pub(super) fn limited(graph: Dataflow, caps: &[Cap]) -> Result<Dataflow, DataflowError> {
    if caps.is_empty() {
        return Ok(graph);
    }
    let mut resources: Vec<DataflowResource> = graph.resources().to_vec();
    for cap in caps {
        let mut named = false;
        for resource in resources.iter_mut().filter(|r| cap.name.as_ref().is_none_or(|name| *name == r.name)) {
            (resource.limit, named) = (Some(cap.units), true);
        }
        if let (Some(name), false) = (&cap.name, named) {
            let known = graph.resources().iter().map(|r| r.name.clone()).collect();
            return Err(DataflowError::NoResource { name: name.clone(), known });
        }
    }
    Dataflow::new(graph.name(), graph.operations().to_vec(), graph.dependences().to_vec(), resources)
}
