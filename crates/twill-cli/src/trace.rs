//! `twill trace`: what a kernel recorded on a GPU, beside its schedule.

use crate::Exit;
use crate::arguments::{TraceArguments, TraceFormat};
use crate::error::Error;
use crate::files;
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use twill_driver::{TracedKernel, TracedRun};
use twill_graph::format::{KernelScheduleFile, ScheduleFile, TraceFile, TracedLoop, TracedOperation};
use twill_graph::{Problem, Schedule};

pub(crate) fn run(arguments: &TraceArguments) -> Result<Exit, Error> {
    let kernel_file = arguments.folder.join("kernel.json");
    let kernel = TracedKernel::from_json(&files::read(&kernel_file)?, &kernel_file.display().to_string())?;
    let loops = schedules(&arguments.folder.join("schedule.json"))?;
    let buffer_file = arguments.buffer.clone().unwrap_or_else(|| arguments.folder.join("trace.bin"));
    let buffer = fs::read(&buffer_file).map_err(|error| Error::Buffer { path: buffer_file.clone(), error })?;
    let trace = twill_driver::trace(&kernel, &loops, &buffer, told(&buffer_file))?;
    let json = trace.to_json() + "\n";
    if arguments.output.is_some() {
        files::write(arguments.output.as_deref(), &json)?;
    }
    let printed = match arguments.format {
        TraceFormat::Json => json,
        TraceFormat::Text => text(&trace, loops.len()),
    };
    if arguments.output.as_deref() != Some(Path::new("-")) {
        files::write(None, &printed)?;
    }
    Ok(Exit::Done)
}

/// The loops of a folder's schedule, which is one, several, or those of a kernel.
fn schedules(path: &Path) -> Result<Vec<(Problem, Schedule)>, Error> {
    let (text, file) = (files::read(path)?, path.display().to_string());
    if KernelScheduleFile::is_one(&text) {
        let read = KernelScheduleFile::from_json(&text, &file)?;
        let problem = read.problem()?;
        let (_, schedules) = read.schedules(&problem)?;
        return Ok(problem.loops().iter().cloned().zip(schedules).collect());
    }
    let several: Option<Vec<serde_json::Value>> = serde_json::from_str(&text).ok();
    let texts = several.map_or_else(|| vec![text], |each| each.iter().map(ToString::to_string).collect());
    let one = |text: &String| {
        let read = ScheduleFile::from_json(text, &file)?;
        let problem = read.problem()?;
        let schedule = read.schedule(&problem)?;
        Ok((problem, schedule))
    };
    texts.iter().map(one).collect()
}

/// What stands beside a buffer of where it comes from, in `BUFFER.json`.
fn told(buffer: &Path) -> TracedRun {
    #[derive(Default, Deserialize)]
    struct Beside {
        #[serde(default)]
        gpu: String,
        #[serde(default)]
        date: String,
    }
    let mut beside = buffer.as_os_str().to_owned();
    beside.push(".json");
    let beside: Beside =
        files::read(&PathBuf::from(beside)).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let gpu = if beside.gpu.is_empty() { "an unknown GPU".into() } else { beside.gpu };
    TracedRun { file: buffer.display().to_string(), gpu, date: beside.date }
}

/// The marks that cost nothing.
const ITERATIONS: &str = "iterations";

fn text(trace: &TraceFile, loops: usize) -> String {
    let mut out = format!("{} for {}, measured on {}", trace.name, trace.machine, trace.gpu);
    if !trace.date.is_empty() {
        let _ = write!(out, " on {}", trace.date);
    }
    out.push('\n');
    if trace.marks != ITERATIONS {
        let _ = writeln!(
            out,
            "marks at {} take time themselves; cycles of an iteration are by --trace-marks iterations",
            trace.marks
        );
    }
    for one in &trace.loops {
        if loops > 1 {
            let _ = writeln!(out, "\nloop {}", one.index);
        }
        out.push_str(&of_loop(one));
    }
    for index in (0..loops).filter(|index| trace.loops.iter().all(|one| one.index != *index)) {
        let _ = writeln!(out, "\nloop {index}: it ran too few iterations to say anything of its steady state");
    }
    out
}

fn of_loop(one: &TracedLoop) -> String {
    let interval = one.initiation_interval;
    let more = 100.0 * (interval.measured / interval.predicted - 1.0);
    let mut out = format!(
        "cycles an iteration: {:.0} predicted, {:.0} measured ({more:+.1} %)\n\n",
        interval.predicted, interval.measured
    );
    let width = one.operations.iter().map(|o| o.operation.chars().count()).max().unwrap_or(0).max("operation".len());
    let _ = writeln!(
        out,
        "{:width$}  group  {:>15}  {:>15}  {:>7}  {:>7}",
        "operation", "predicted", "measured", "start", "length"
    );
    for o in &one.operations {
        let _ = writeln!(out, "{}", line(o, width));
    }
    out.push_str("\nstart, length: measured less predicted, in cycles of an iteration\n");
    out
}

fn line(o: &TracedOperation, width: usize) -> String {
    let (predicted, measured) = (o.predicted, o.measured);
    let length = (measured.end - measured.start) - (predicted.end - predicted.start);
    format!(
        "{:width$}  {:>5}  {:>6.0} – {:>6.0}  {:>6.0} – {:>6.0}  {:>+7.0}  {length:>+7.0}",
        o.operation,
        o.group,
        predicted.start,
        predicted.end,
        measured.start,
        measured.end,
        measured.start - predicted.start,
    )
}
