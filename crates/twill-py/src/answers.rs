//! What is answered.

use crate::errors::{infeasible, of_driver, stopped, wrong};
use crate::question::{Keywords, Question};
use crate::task;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use twill_check::Verified;
use twill_driver::gaus::GausError;
use twill_driver::options::{GausEngine, GausOptions, OptionError, Task, explain_options, keywords};
use twill_driver::tune::{Assembler, Compiled};
use twill_driver::{Answer, Cache, Options, Session, TopOptions};
use twill_exact::{Budget, ExplainOptions};
use twill_graph::format::{ExplanationFile, GraphFile, KernelScheduleFile, MachineReference, ModuloFile, ScheduleFile};
use twill_graph::{Problem, Report, Schedule, Status};
use twill_report::TextOptions;

/// Schedules all loops: their schedule files, and of several loops the kernel's file.
#[pyfunction]
#[pyo3(signature = (question, progress=None))]
pub(crate) fn schedule(
    py: Python<'_>,
    question: Question,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<String>, Option<String>)> {
    let (request, requested) = question.read(py)?;
    let cache = requested.cache();
    let found = task::run(py, progress.as_ref(), move |interrupt, reporter| {
        let mut session = Session { cache, ..Session::new(requested.search(interrupt), reporter) };
        let problems = twill_driver::problems(&request)?;
        let answer = twill_driver::answer(&request, &problems, &mut session, 0.0)?;
        let (loops, kernel): (Vec<String>, _) = match answer {
            Answer::Together(kernel, report) => {
                let file = KernelScheduleFile::new(&kernel, &report);
                (file.loops.iter().map(ScheduleFile::to_json).collect(), Some(file.to_json()))
            }
            Answer::Each(reports) => {
                let each = problems.loops.iter().zip(&reports);
                (each.map(|(one, report)| twill_driver::schedule_file(one, report).to_json()).collect(), None)
            }
        };
        Ok((loops, kernel))
    })?;
    found.map_err(|error| of_driver(py, &error))
}

/// A schedule's file, and in what it differs from the first.
type Different = (String, Vec<String>);

/// Up to `most` different schedules of the only loop, the best first, with intervals up to `within` longer (0.05 is 5 %); and
/// whether it is proved that there are no others at the least interval, with at most that many stages.
#[pyfunction]
#[pyo3(signature = (question, most, within, progress=None))]
pub(crate) fn top(
    py: Python<'_>,
    question: Question,
    most: usize,
    within: f64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<Different>, bool, u32)> {
    let (request, requested) = question.read(py)?;
    let cache = requested.cache();
    let found = task::run(py, progress.as_ref(), move |interrupt, reporter| {
        let mut session = Session { cache, ..Session::new(requested.search(interrupt), reporter) };
        let problems = twill_driver::problems(&request)?;
        let input = &request.input.name;
        let [one] = problems.loops.as_slice() else {
            return Err(twill_driver::Error::TopOfLoops { input: input.clone(), count: problems.loops.len() });
        };
        let top = twill_driver::top(input, one, TopOptions { most, within }, &mut session, 0.0)?;
        let least = top.each.first().and_then(|t| t.report.outcome.schedule()).map(|s| s.interval);
        let is_complete = least.is_some() && top.complete_through >= least;
        let each = top.each.iter();
        let each = each.map(|t| (twill_driver::schedule_file(one, &t.report).to_json(), t.differences.clone()));
        Ok((each.collect(), is_complete, top.stages))
    })?;
    found.map_err(|error| of_driver(py, &error))
}

/// Explains why each loop is no faster: its explanation file, and the same as text of `width` columns.
#[pyfunction]
#[pyo3(signature = (question, width, what_if, effort, progress=None))]
pub(crate) fn explain(
    py: Python<'_>,
    question: Question,
    width: usize,
    what_if: bool,
    effort: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<(String, String)>> {
    let (request, requested) = question.read(py)?;
    let cache = requested.cache();
    let found = task::run(py, progress.as_ref(), move |interrupt, reporter| {
        let mut search = requested.search(interrupt);
        let explain = explain_options(&mut search, effort, what_if);
        let mut session = Session { cache, ..Session::new(search, reporter) };
        twill_driver::explanations(&request, &explain, &mut session)
    })?;
    let options = TextOptions { width, color: false };
    let told = |e: &twill_driver::Explained| {
        let (problem, explanation) = (&e.of.problem, &e.explanation);
        // Plain data always serialises.
        let json = serde_json::to_string_pretty(&ExplanationFile::new(problem, explanation)).unwrap_or_default();
        (json, twill_report::explanation(problem, explanation, options))
    };
    Ok(found.map_err(|error| of_driver(py, &error))?.iter().map(told).collect())
}

/// Generates the kernel, assembled by the Python at `python` if there is one: what is known of it and its files, as JSON.
/// `command` is what generates it again, `toolchain` what machine code depends on in addition to the kernel.
#[pyfunction]
#[pyo3(signature = (question, python, command, toolchain, progress=None))]
pub(crate) fn compile(
    py: Python<'_>,
    question: Question,
    python: Option<PathBuf>,
    command: &str,
    toolchain: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (request, requested) = question.read(py)?;
    let (cache, options) = (requested.cache(), requested.code(command));
    let name = request.input.name.clone();
    let found = task::run(py, progress.as_ref(), move |interrupt, reporter| {
        let mut session = Session { cache, ..Session::new(requested.search_for_code(interrupt), reporter) };
        let folder = tempfile::tempdir().map_err(|error| twill_driver::Error::Scratch {
            path: std::env::temp_dir().display().to_string(),
            error,
        })?;
        let assembler = python.map(|python| Assembler::new(Some(python), folder.path().to_owned()).of(toolchain));
        twill_driver::tune::compile(&request, &options, assembler.as_ref(), &mut session)
    })?;
    match found.map_err(|error| of_driver(py, &error))? {
        Compiled::Kernel(kernel) => Ok(kernel.to_json()),
        Compiled::NoSchedule(Status::Infeasible) => Err(infeasible(
            py,
            format!("{name}: no schedule exists (proved); twill_gpu.schedule(…).explain() says why"),
        )),
        Compiled::NoSchedule(_) | Compiled::Stopped => {
            Err(stopped(py, format!("{name}: no schedule was found in time; a longer time_limit may find one")))
        }
    }
}

/// The kernel that [`compile`] kept for the same question, as JSON; None where it has to be generated.
#[pyfunction]
pub(crate) fn cached(
    py: Python<'_>,
    question: Question,
    python: Option<PathBuf>,
    command: &str,
    toolchain: String,
) -> PyResult<Option<String>> {
    let (request, requested) = question.read(py)?;
    let (cache, options) = (requested.cache(), requested.code(command));
    // It reads and hashes the whole kernel, for the application's other threads to go on meanwhile.
    task::run(py, None, move |interrupt, reporter| {
        let session = Session { cache, ..Session::new(requested.search_for_code(interrupt), reporter) };
        // It is not called: nothing is generated.
        let assembler = python.map(|python| Assembler::new(Some(python), PathBuf::new()).of(toolchain));
        twill_driver::tune::cached(&request, &options, assembler.as_ref(), &session).map(|kernel| kernel.to_json())
    })
}

/// Whether a kernel fits, before anything is searched, as JSON; and how much an iteration of each of its loops counts.
#[pyfunction]
pub(crate) fn fit(py: Python<'_>, question: Question) -> PyResult<(String, Vec<u64>)> {
    let (request, requested) = question.read(py)?;
    let find = |_, _: &mut task::ProgressReporter| -> Result<_, Box<twill_driver::Error>> {
        let fit = twill_driver::fit(&request, &requested.code(""))?;
        if fit.loops.len() < 2 {
            return Ok((fit, vec![1]));
        }
        let problems = twill_driver::problems(&request)?;
        let kernel = twill_driver::siblings::problem(&request, &problems)?;
        let weights = kernel.map_or_else(|| vec![1; fit.loops.len()], |kernel| kernel.weights().to_vec());
        Ok((fit, weights))
    };
    let (fit, weights) = task::run(py, None, find)?.map_err(|error| of_driver(py, &error))?;
    // Plain data always serialises.
    Ok((serde_json::to_string(&fit).unwrap_or_default(), weights))
}

/// What the loops of a kernel become before they are scheduled: each as a graph file with its machine, and as tile operations.
#[pyfunction]
pub(crate) fn lower(py: Python<'_>, question: Question) -> PyResult<Vec<(String, Option<String>)>> {
    let (request, _) = question.read(py)?;
    let lowered = task::run(py, None, |_, _| twill_driver::lowered(&request.input, &request.lowering))?;
    let one = |lowered: &twill_driver::Lowered| {
        let mut file = GraphFile::from_graph(&lowered.graph);
        file.machine = Some(MachineReference::Resources(Box::new(lowered.resources.clone())));
        (file.to_json(), lowered.tiles.as_ref().map(ToString::to_string))
    };
    Ok(lowered.map_err(|error| of_driver(py, &error))?.loops.iter().map(one).collect())
}

/// What is wrong with options of `compile` or `gaus`: the option whose value it is, if it is one's, and what is allowed; nothing
/// where all is well. `has_input`: of `gaus`, whether a graph is given.
#[pyfunction]
#[pyo3(signature = (task, options, has_input=true))]
pub(crate) fn wrong_option(task: &str, options: Keywords, has_input: bool) -> Option<(Option<String>, String)> {
    let read = match task {
        "gaus" => GausOptions::from_keywords(&options.0, has_input).map(|_| ()),
        _ => Options::from_keywords(&options.0).map(|_| ()),
    };
    read.err().map(|error| match error {
        OptionError::Value { keyword, why, .. } => (Some(keyword), why),
        OptionError::Other(why) => (None, why),
    })
}

/// Keywords of the options of `compile` or `gaus`.
#[pyfunction]
pub(crate) fn option_names(task: &str) -> Vec<&'static str> {
    keywords(if task == "gaus" { Task::Gaus } else { Task::Compile })
}

/// A schedule's file, replayed.
fn replayed(py: Python<'_>, text: &str) -> PyResult<(Problem, Report<Verified<Schedule>>)> {
    let read = |_, _: &mut task::ProgressReporter| {
        let file = ScheduleFile::from_json(text, "schedule").map_err(|error| error.to_string())?;
        let problem = file.problem().map_err(|error| error.to_string())?;
        let report = file.report(&problem).map_err(|error| error.to_string())?;
        let report = report.try_map(|s| twill_check::verify(&problem, s)).map_err(|error| error.to_string())?;
        Ok((problem, report))
    };
    task::run(py, None, read)?.map_err(|why: String| wrong(py, why))
}

/// Replays the schedule of a file without the solver; raises where it breaks a constraint.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, text: &str) -> PyResult<()> {
    replayed(py, text).map(|_| ())
}

/// The report on a schedule's file as text of `width` columns, with ANSI colours if asked for.
#[pyfunction]
pub(crate) fn timeline(py: Python<'_>, text: &str, width: usize, color: bool) -> PyResult<String> {
    let (problem, report) = replayed(py, text)?;
    Ok(twill_report::text(&problem, &report, TextOptions { width, color }))
}

/// The program of each warp group, with prologue, steady state and epilogue; nothing where there is no schedule.
#[pyfunction]
pub(crate) fn pseudocode(py: Python<'_>, text: &str) -> PyResult<Option<String>> {
    let (problem, report) = replayed(py, text)?;
    Ok(report
        .outcome
        .schedule()
        .map(|schedule| twill_codegen::pseudocode(&problem, schedule, TextOptions::default().width)))
}

/// The timelines of loops as one picture in SVG; nothing where one has no schedule.
#[pyfunction]
pub(crate) fn timeline_svg(py: Python<'_>, texts: Vec<String>) -> PyResult<Option<String>> {
    let loops = texts.iter().map(|text| replayed(py, text)).collect::<PyResult<Vec<_>>>()?;
    let found: Option<Vec<(&Problem, &Schedule)>> = loops
        .iter()
        .map(|(problem, report)| report.outcome.schedule().map(|schedule| (problem, &**schedule)))
        .collect();
    Ok(found.map(|found| twill_report::timelines_svg(&found, twill_report::TimelineOptions::default())))
}

/// The page on schedules in a file's text, replayed, explained for up to that many seconds, if at all.
#[pyfunction]
#[pyo3(signature = (text, explain_limit, progress=None))]
pub(crate) fn report(
    py: Python<'_>,
    text: String,
    explain_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let time = explain_limit.map(Duration::try_from_secs_f64).transpose();
    let time = time.map_err(|error| wrong(py, format!("explain_limit: {error}")))?;
    let page = task::run(py, progress.as_ref(), move |interrupt, reporter| {
        let budget = Budget { time, interrupt: Some(interrupt), ..Budget::default() };
        let explain = time.map(|_| ExplainOptions { budget, ..ExplainOptions::default() });
        twill_driver::report::page_of_file("schedule", &text, explain.as_ref(), reporter)
    })?;
    Ok(twill_report::page::html(&page.map_err(|error| of_driver(py, &error))?))
}

/// Schedules a large graph, a file by its path or a random one, with options by keywords: the schedule file, or figures alone where
/// nothing was found in time.
#[pyfunction]
#[pyo3(signature = (path, options, progress=None))]
pub(crate) fn gaus(
    py: Python<'_>,
    path: Option<PathBuf>,
    options: Keywords,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = GausOptions::from_keywords(&options.0, path.is_some()).map_err(|error| wrong(py, error))?;
    let path = path.as_deref();
    let infeasible_or_wrong = |error: Box<GausError>| match &*error {
        _ if error.proves_infeasible() => infeasible(py, &error),
        GausError::Driver(why) => of_driver(py, why),
        _ => wrong(py, &error),
    };
    if options.engine == GausEngine::Exact {
        let started = Instant::now();
        let search = |interrupt, reporter: &mut task::ProgressReporter| {
            twill_driver::gaus::exact(path, &options, started, interrupt, reporter).map_err(Box::new)
        };
        let found = task::run(py, progress.as_ref(), search)?.map_err(infeasible_or_wrong)?;
        return Ok(ModuloFile::new(&found.problem, &found.report).to_json());
    }
    let search = |interrupt, reporter: &mut task::ProgressReporter| {
        twill_driver::gaus::find(path, &options, interrupt, reporter).map_err(Box::new)
    };
    let found = task::run(py, progress.as_ref(), search)?.map_err(infeasible_or_wrong)?;
    Ok(found.to_json())
}

fn usual_cache() -> Option<Cache> {
    Cache::of_environment(|name| std::env::var_os(name))
}

/// Where the cache is; nothing where it is off.
#[pyfunction]
pub(crate) fn cache_folder() -> Option<PathBuf> {
    usual_cache().map(|cache| cache.folder().to_owned())
}

/// How many schedules, kernels, configurations and bytes the cache holds.
#[pyfunction]
pub(crate) fn cache_info(py: Python<'_>) -> PyResult<(usize, usize, usize, u64)> {
    let Some(cache) = usual_cache() else { return Ok((0, 0, 0, 0)) };
    let info = cache.info().map_err(|error| wrong(py, error))?;
    Ok((info.schedules, info.kernels, info.configurations, info.bytes))
}

/// Throws away all that the cache holds.
#[pyfunction]
pub(crate) fn cache_clear(py: Python<'_>) -> PyResult<()> {
    match usual_cache() {
        Some(cache) => cache.clear().map(|_| ()).map_err(|error| wrong(py, error)),
        None => Ok(()),
    }
}

/// The `twill` command with these words, the first being its name; its exit code. Wheels have it; the rest needs none of it.
#[cfg(feature = "command")]
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| twill_cli::run(words))
}
