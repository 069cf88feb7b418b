//! `twill coverage`: what becomes of a set of kernels.

use crate::arguments::{CoverageArguments, CoverageFormat, PythonArguments};
use crate::collected::Collected;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::{self, kernels};
use crate::printable;
use crate::progress;
use crate::python_source;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use twill_driver::options::{CompileOptions, LoweringOptions, SearchLimits};
use twill_driver::tune::{Assembler, OperationCounts};
use twill_driver::{CodeCoverage, Coverage, Options, ScheduleCoverage, Session, Silent, coverage};

pub(crate) fn run(arguments: &CoverageArguments) -> Result<Exit, Error> {
    let options = Options {
        lowering: LoweringOptions { machine: arguments.machine.clone(), ..LoweringOptions::default() },
        search: SearchLimits { time_limit: Some(f64::from(arguments.time_limit)), ..SearchLimits::default() },
        ..Options::default()
    };
    let machine = options.lowering.lowering()?.machine;
    let folder = tempfile::tempdir().map_err(|error| Error::Write { path: std::env::temp_dir(), error })?;
    let assembler = arguments.python.clone().map(|python| Assembler::new(Some(python), folder.path().to_owned()));
    let cache = crate::request::cache().filter(|_| !arguments.no_cache);
    if arguments.format == CoverageFormat::Markdown {
        files::write(None, "| kernel | schedule | Gluon | CUDA |\n|---|---|---|---|\n")?;
    }
    let (mut all, mut failed) = (Vec::new(), false);
    for path in kernels(&arguments.inputs)? {
        if progress::is_interrupted() {
            break;
        }
        let mut observer = Silent;
        let search = options.search.patient().search(Instant::now(), progress::interrupt());
        let mut session = Session { cache: cache.clone(), ..Session::new(search, &mut observer) };
        let name = path.display().to_string();
        let found = python_source::input(&name, &PythonArguments::default(), arguments.machine.as_deref())
            .and_then(|input| Ok(options.request(input, machine.clone())?))
            .and_then(|request| Ok(coverage(&request, &CompileOptions::default(), assembler.as_ref(), &mut session)?));
        match found {
            Ok(found) => {
                let collected = Collected::of(&path);
                files::write(None, &format!("{}\n", line(&path, &found, collected.as_ref(), arguments.format)))?;
                all.push((found, collected));
            }
            Err(error) => {
                eprintln!("error: {}", printable(&error.to_string()));
                failed = true;
            }
        }
    }
    if arguments.format != CoverageFormat::Json {
        files::write(None, &format!("\n{}", summary(&all)))?;
    }
    Ok(match (failed, progress::is_interrupted()) {
        (true, _) => Exit::Error,
        (_, true) => Exit::Stopped,
        _ => Exit::Done,
    })
}

fn line(path: &Path, found: &Coverage, collected: Option<&Collected>, format: CoverageFormat) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let schedule = match &found.schedule {
        ScheduleCoverage::Optimal => "optimal".to_owned(),
        ScheduleCoverage::Feasible => "feasible".to_owned(),
        ScheduleCoverage::None(why) => format!("none: {why}"),
    };
    match format {
        // Plain data always serialises.
        CoverageFormat::Json => {
            let mut row = serde_json::to_value(found).unwrap_or_default();
            if let Some(collected) = collected {
                row["launches"] = collected.launches.into();
                row["milliseconds"] = collected.milliseconds.into();
            }
            row.to_string()
        }
        CoverageFormat::Text => {
            let launched = collected.map_or_else(String::new, |collected| format!("  launched: {collected}\n"));
            let (gluon, cuda) = (words(&found.gluon), words(&found.cuda));
            format!("{name}\n{launched}  schedule: {schedule}\n  Gluon: {gluon}\n  CUDA: {cuda}")
        }
        CoverageFormat::Markdown => {
            let cell = |text: String| text.replace('|', "\\|");
            format!("| {name} | {} | {} | {} |", cell(schedule), cell(words(&found.gluon)), cell(words(&found.cuda)))
        }
    }
}

fn words(code: &CodeCoverage) -> String {
    let of = |operations: &OperationCounts, machine_code: &Option<String>| {
        let OperationCounts { tma_loads, cp_async, loads, async_mmas, dots } = operations;
        let counts = [
            (tma_loads, "TMA loads"),
            (cp_async, "cp.async"),
            (loads, "loads"),
            (async_mmas, "asynchronous MMAs"),
            (dots, "dots"),
        ];
        let counts = counts.iter().filter(|(n, _)| **n > 0).map(|(n, what)| format!("{n} {what}"));
        counts.chain(machine_code.clone()).collect::<Vec<_>>().join(", ")
    };
    match code {
        CodeCoverage::Realised { operations, machine_code, .. } => {
            format!("realised: {}", of(operations, machine_code))
        }
        CodeCoverage::InOrder { operations, machine_code, why } => {
            format!("in order: {} ({why})", of(operations, machine_code))
        }
        CodeCoverage::None(why) => format!("none: {why}"),
    }
}

/// How many of each kind there are, and the reasons, the most frequent first.
fn summary(found: &[(Coverage, Option<Collected>)]) -> String {
    let all: Vec<&Coverage> = found.iter().map(|(coverage, _)| coverage).collect();
    let share = |what: &str, count: usize| {
        let percent = 100.0 * count as f64 / all.len().max(1) as f64;
        format!("{what}: {count} of {} ({percent:.1} %)\n", all.len())
    };
    let count = |is: &dyn Fn(&Coverage) -> bool| all.iter().filter(|one| is(one)).count();
    let mut text = share("scheduled", count(&|c| !matches!(c.schedule, ScheduleCoverage::None(_))));
    text += &share("  proved optimal", count(&|c| c.schedule == ScheduleCoverage::Optimal));
    text += &share("Gluon", count(&|c| c.gluon.is_generated()));
    text += &share("CUDA", count(&|c| c.cuda.is_generated()));
    text += &share("schedule realised", count(&|c| c.gluon.is_realised() || c.cuda.is_realised()));
    let time = |is: &dyn Fn(&Coverage) -> bool| -> f64 {
        let times = found.iter().filter(|(coverage, _)| is(coverage));
        times.filter_map(|(_, collected)| collected.as_ref()?.milliseconds).sum()
    };
    let total = time(&|_| true);
    if total > 0.0 {
        let realised = time(&|c| c.gluon.is_realised() || c.cuda.is_realised());
        let percent = 100.0 * realised / total;
        text += &format!("  of the time on the GPU: {realised:.1} of {total:.1} ms ({percent:.1} %)\n");
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for one in all {
        if let CodeCoverage::InOrder { why, .. } | CodeCoverage::None(why) = &one.gluon {
            *reasons.entry(kind(why)).or_default() += 1;
        }
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(why, count)| (std::cmp::Reverse(*count), why.clone()));
    if !reasons.is_empty() {
        text += "why the schedule is not realised in Gluon:\n";
    }
    reasons.iter().for_each(|(why, count)| text += &format!("{count:5}  {why}\n"));
    text
}

/// A reason without the place that it names.
fn kind(why: &str) -> String {
    let after_place = why.split_once(": `").map_or(why, |(_, rest)| rest);
    match after_place.split_once("): ") {
        Some((_, what)) => what.to_owned(),
        None => after_place.to_owned(),
    }
}
