//! `twill check-perf`: whether kernels got worse than a baseline says.

use crate::annotate::{self, Annotation};
use crate::arguments::{CheckPerfArguments, CheckPerfFormat, PythonArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::files::kernels;
use crate::{files, printable, progress, python_source};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;
use twill_driver::performance::{Baseline, Change, MachineStamp, Performance, PerformanceError, changes, measure};
use twill_driver::{Input, Options, Places, Session, Silent, places};
use twill_graph::grouped;
use twill_report::folded;

/// What is said of a kernel.
#[derive(Debug, Serialize)]
struct Checked {
    input: String,
    kernel: String,
    worse: bool,
    changes: Vec<Change>,
    #[serde(skip)]
    now: Performance,
    #[serde(skip)]
    places: Option<Places>,
}

/// A kernel that cannot be compared, and why.
#[derive(Debug, Serialize)]
struct Failed {
    input: String,
    error: String,
    #[serde(skip)]
    annotation: Annotation,
}

#[derive(Debug, Serialize)]
struct All {
    format: &'static str,
    version: u32,
    baseline: String,
    kernels: Vec<Checked>,
    errors: Vec<Failed>,
}

pub(crate) fn run(arguments: &CheckPerfArguments) -> Result<Exit, Error> {
    let path = &arguments.baseline;
    let shown = path.display().to_string();
    let is_there = files::exists(path);
    let begins = arguments.write && !arguments.inputs.is_empty();
    if !is_there && !begins {
        return Err(Error::NoBaseline { path: path.clone() });
    }
    let baseline = if is_there { Baseline::from_json(&files::read(path)?, &shown)? } else { Baseline::default() };
    let inputs = named(arguments, &baseline)?;
    if arguments.write { write(arguments, baseline, &inputs) } else { check(arguments, &baseline, &inputs, shown) }
}

/// The kernels that are asked for: by the baseline's names, or as they are given.
fn named(arguments: &CheckPerfArguments, baseline: &Baseline) -> Result<Vec<String>, Error> {
    if arguments.inputs.is_empty() {
        return Ok(baseline.kernels.keys().cloned().collect());
    }
    let given = kernels(&arguments.inputs)?;
    Ok(given.iter().map(|path| path.display().to_string()).collect())
}

/// Measures kernels, and writes the baseline if all could be.
fn write(arguments: &CheckPerfArguments, mut baseline: Baseline, inputs: &[String]) -> Result<Exit, Error> {
    let (mut failed, mut text) = (false, String::new());
    for input in inputs {
        // Those of the baseline keep their options, unless others are given.
        let options = match baseline.kernels.get(input).filter(|_| arguments.inputs.is_empty()) {
            Some(before) => recorded(input, before)?,
            None => arguments.options(),
        };
        match measured(arguments, input, &options) {
            Ok(now) => {
                let _ = writeln!(text, "{input}: {}", summary(&now));
                baseline.kernels.insert(input.clone(), now);
            }
            Err(error) => {
                eprintln!("error: {}", printable(&error.to_string()));
                failed = true;
            }
        }
        if progress::is_interrupted() {
            return Ok(Exit::Stopped);
        }
    }
    if failed {
        eprintln!("error: {} is not written", arguments.baseline.display());
        return Ok(Exit::Error);
    }
    files::write(Some(&arguments.baseline), &baseline.to_json())?;
    let _ = writeln!(text, "written to {}", arguments.baseline.display());
    files::write(None, &folded(&text, arguments.width.columns()))?;
    Ok(Exit::Done)
}

fn check(arguments: &CheckPerfArguments, baseline: &Baseline, inputs: &[String], shown: String) -> Result<Exit, Error> {
    let mut all =
        All { format: "twill-performance-check", version: 1, baseline: shown, kernels: Vec::new(), errors: Vec::new() };
    for input in inputs {
        match one(arguments, baseline, input) {
            Ok(checked) => all.kernels.push(checked),
            Err(error) => {
                eprintln!("error: {}", printable(&error.to_string()));
                let annotation = annotate::refused(input, &error);
                all.errors.push(Failed { input: input.clone(), error: error.to_string(), annotation });
            }
        }
        if progress::is_interrupted() {
            return Ok(Exit::Stopped);
        }
    }
    let output = match (arguments.format, arguments.format.annotations()) {
        (CheckPerfFormat::Json, _) => serde_json::to_string_pretty(&all).map(|text| text + "\n").unwrap_or_default(),
        (_, Some(format)) => {
            let worse = all.kernels.iter().filter(|one| one.worse);
            let worse = worse.map(|one| {
                let told: Vec<String> = one.changes.iter().filter(|c| c.worse).map(ToString::to_string).collect();
                annotate::worsened(&one.input, &one.kernel, &told, one.places.as_ref())
            });
            let annotations: Vec<Annotation> =
                worse.chain(all.errors.iter().map(|failed| failed.annotation.clone())).collect();
            annotate::render(format, &annotate::PERFORMANCE_RULES, &annotations, &arguments.annotations.root())
        }
        _ => folded(&text(&all), arguments.width.columns()),
    };
    files::write(None, &output)?;
    Ok(match (all.errors.is_empty(), all.kernels.iter().any(|one| one.worse)) {
        (false, _) => Exit::Error,
        (true, true) => Exit::WORSE,
        (true, false) => Exit::Done,
    })
}

/// Compares one kernel with what the baseline says of it.
fn one(arguments: &CheckPerfArguments, baseline: &Baseline, input: &str) -> Result<Checked, Error> {
    let path = || arguments.baseline.display().to_string();
    let before = baseline.kernels.get(input).ok_or_else(|| {
        let known: Vec<&str> = baseline.kernels.keys().map(String::as_str).collect();
        Error::NotInBaseline { path: path(), input: input.to_owned(), known: known.join(", ") }
    })?;
    let options = recorded(input, before)?;
    refuse_others(arguments, input, before, &path())?;
    let given = arguments.lowering.machine.is_some().then(|| arguments.options());
    let machine = MachineStamp::of_options(given.as_ref().unwrap_or(&options))?;
    if machine.name != before.machine.name {
        let (before, now) = (before.machine.name.clone(), machine.name);
        return Err(Error::AnotherMachine { path: path(), input: input.to_owned(), before, now });
    }
    if machine != before.machine {
        let name = machine.name;
        return Err(Error::ChangedMachine { path: path(), input: input.to_owned(), name });
    }
    let now = measured(arguments, input, &options)?;
    if now.kernel != before.kernel {
        let (before, now) = (before.kernel.clone(), now.kernel);
        return Err(Error::OtherKernel { path: path(), input: input.to_owned(), before, now });
    }
    let changes = changes(before, &now);
    let worse = changes.iter().any(|change| change.worse);
    let places = arguments.format.annotations().filter(|_| worse).and_then(|_| {
        let request = options.request(read(input).ok()?, None).ok()?;
        places(&request).ok().flatten()
    });
    Ok(Checked { input: input.to_owned(), kernel: now.kernel.clone(), worse, changes, now, places })
}

/// The options that a baseline has of a kernel. The machine is that which was named.
fn recorded(input: &str, before: &Performance) -> Result<Options, Error> {
    let read = Options::from_keywords(&before.options);
    Ok(read.map_err(|error| PerformanceError::Options { input: input.to_owned(), error })?)
}

/// Refuses options that are not those of the baseline: two answers to two questions cannot be compared.
fn refuse_others(arguments: &CheckPerfArguments, input: &str, before: &Performance, path: &str) -> Result<(), Error> {
    let given = arguments.options().to_keywords();
    let default = CheckPerfArguments::default_work();
    let own = |all: &Map<String, Value>| {
        let mut all: BTreeMap<String, Value> = all.clone().into_iter().collect();
        all.retain(|name, value| {
            name != "time_limit" && name != "machine" && !(name == "work_limit" && *value == default)
        });
        all
    };
    let before = &before.options;
    match own(&given).iter().find(|(name, value)| own(before).get(*name) != Some(value)) {
        None => Ok(()),
        Some((name, value)) => Err(Error::OtherOptions {
            path: path.to_owned(),
            input: input.to_owned(),
            option: name.replace('_', "-"),
            now: value.to_string(),
            before: before.get(name).map_or_else(|| "its default".to_owned(), Value::to_string),
        }),
    }
}

fn read(input: &str) -> Result<Input, Error> {
    python_source::input(input, &PythonArguments::default(), None)
}

fn measured(arguments: &CheckPerfArguments, input: &str, options: &Options) -> Result<Performance, Error> {
    let mut observer = Silent;
    let search = options.search.search(Instant::now(), progress::interrupt());
    let cache = crate::request::cache().filter(|_| !arguments.no_cache);
    let mut session = Session { cache, ..Session::new(search, &mut observer) };
    Ok(measure(read(input)?, options, &mut session)?)
}

fn text(all: &All) -> String {
    let mut out = String::new();
    for one in &all.kernels {
        let verdict = match (one.worse, one.changes.is_empty()) {
            (true, _) => "worse".to_owned(),
            (false, true) => format!("as before: {}", summary(&one.now)),
            (false, false) => "not worse".to_owned(),
        };
        let _ = writeln!(out, "{}: {verdict}", one.input);
        for change in &one.changes {
            let _ = writeln!(out, "  {}{change}", if change.worse { "worse: " } else { "" });
        }
    }
    let worse = all.kernels.iter().filter(|one| one.worse).count();
    let changed = all.kernels.iter().filter(|one| !one.changes.is_empty()).count();
    let _ = writeln!(out, "{} checked, {worse} worse", counted(all.kernels.len()));
    if changed > 0 {
        let _ = writeln!(out, "to accept what changed: twill check-perf {} --write", all.baseline);
    }
    out
}

fn summary(performance: &Performance) -> String {
    let intervals: Vec<String> = performance.loops.iter().map(|one| grouped(one.interval.0)).collect();
    format!(
        "I = {}, {} registers a thread, {} bytes of shared memory",
        intervals.join(" + "),
        performance.registers,
        grouped(performance.shared_memory)
    )
}

fn counted(count: usize) -> String {
    format!("{count} kernel{}", if count == 1 { "" } else { "s" })
}
