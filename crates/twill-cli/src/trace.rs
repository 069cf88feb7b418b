//! `twill trace`: what a kernel recorded on a GPU, compared with its schedule.

use crate::arguments::{TraceArguments, TraceFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use twill_check::Verified;
use twill_driver::report::{self, Schedules};
use twill_driver::{TracedKernel, TracedRun};
use twill_graph::format::{FormatError, TraceFile, TracedLoop, TracedOperation};
use twill_graph::{Problem, Report, Schedule, grouped_real};
use twill_report::{Align, Table, folded};

pub(crate) fn run(arguments: &TraceArguments) -> Result<Exit, Error> {
    let kernel_file = arguments.folder.join("kernel.json");
    let kernel = TracedKernel::from_json(&files::read(&kernel_file)?, &kernel_file.display().to_string())?;
    let loops = schedules(&arguments.folder.join("schedule.json"))?;
    let buffer_file = arguments.buffer.clone().unwrap_or_else(|| arguments.folder.join("trace.bin"));
    let buffer = fs::read(&buffer_file).map_err(|error| Error::Buffer { path: buffer_file.clone(), error })?;
    let trace = twill_driver::trace(&kernel, &loops, &buffer, told(&buffer_file)?)?;
    let json = trace.to_json() + "\n";
    if arguments.output.is_some() {
        files::write(arguments.output.as_deref(), &json)?;
    }
    let printed = match arguments.format {
        TraceFormat::Json => json,
        TraceFormat::Text => {
            let columns = arguments.width.columns();
            folded(&text(&trace, loops.len(), columns), columns)
        }
    };
    if arguments.output.as_deref() != Some(Path::new("-")) {
        files::write(None, &printed)?;
    }
    Ok(Exit::Done)
}

/// The loops of a folder's schedule, which is one, several, or those of a kernel; replayed.
fn schedules(path: &Path) -> Result<Vec<(Problem, Verified<Schedule>)>, Error> {
    let (text, file) = (files::read(path)?, path.display().to_string());
    let Schedules::Loops { loops, .. } = report::schedules_of_file(&file, &text)? else {
        let why = "it is of a graph without warps, which no kernel is made of".into();
        return Err(FormatError::Schedule { file, why }.into());
    };
    let one = |(problem, report): (Problem, Report<Verified<Schedule>>)| match report.outcome.schedule() {
        Some(schedule) => Ok((problem, schedule.clone())),
        None => {
            let why = format!("there is no schedule of {} in it", problem.graph().name());
            Err(FormatError::Schedule { file: file.clone(), why }.into())
        }
    };
    loops.into_iter().map(one).collect()
}

/// The metadata of a buffer, in `BUFFER.json`, if that is there.
fn told(buffer: &Path) -> Result<TracedRun, Error> {
    #[derive(Default, Deserialize)]
    struct BufferMetadata {
        gpu: Option<String>,
        #[serde(default)]
        date: String,
        revision: Option<String>,
    }
    let mut name = buffer.as_os_str().to_owned();
    name.push(".json");
    let path = PathBuf::from(name);
    let metadata: BufferMetadata = if path.try_exists().unwrap_or(true) {
        let text = files::read(&path)?;
        serde_json::from_str(&text).map_err(|error| Error::BufferMetadata { path, error })?
    } else {
        BufferMetadata::default()
    };
    Ok(TracedRun {
        file: buffer.display().to_string(),
        gpu: metadata.gpu.filter(|gpu| !gpu.is_empty()).unwrap_or_else(|| "an unknown GPU".into()),
        date: metadata.date,
        revision: metadata.revision,
    })
}

/// The timestamps that cost nothing.
const ITERATIONS: &str = "iterations";

fn text(trace: &TraceFile, loops: usize, columns: usize) -> String {
    let mut out = format!("{} for {}, measured on {}", trace.name, trace.machine, trace.gpu);
    if !trace.date.is_empty() {
        let _ = write!(out, " on {}", trace.date);
    }
    out.push('\n');
    if trace.timestamps != ITERATIONS {
        let _ = writeln!(
            out,
            "timestamps at {} take time themselves; cycles of an iteration are by --trace-detail iterations",
            trace.timestamps
        );
    }
    for one in &trace.loops {
        if loops > 1 {
            let _ = writeln!(out, "\nloop {}", one.index);
        }
        out.push_str(&of_loop(one, columns));
    }
    for index in (0..loops).filter(|index| trace.loops.iter().all(|one| one.index != *index)) {
        let _ = writeln!(out, "\nloop {index}: it ran too few iterations to say anything of its steady state");
    }
    out
}

fn of_loop(one: &TracedLoop, columns: usize) -> String {
    let interval = one.initiation_interval;
    let more = 100.0 * (interval.measured / interval.predicted - 1.0);
    let out = format!(
        "cycles an iteration: {} predicted, {} measured ({more:+.1} %)\n\n",
        whole(interval.predicted),
        whole(interval.measured)
    );
    let mut table = Table::new().column("operation", Align::Left, 0).column("group", Align::Right, 1);
    for title in ["predicted", "measured", "start", "length"] {
        table = table.column(title, Align::Right, 0);
    }
    one.operations.iter().for_each(|operation| table.row(row(operation)));
    out + &table.text(columns) + "\nstart, length: measured less predicted, in cycles of an iteration\n"
}

fn row(o: &TracedOperation) -> Vec<String> {
    let (predicted, measured) = (o.predicted, o.measured);
    let span = |from: f64, to: f64| format!("{} – {}", whole(from), whole(to));
    let more = |cycles: f64| format!("{}{}", if cycles < 0.0 { "" } else { "+" }, whole(cycles));
    vec![
        o.operation.clone(),
        o.group.to_string(),
        span(predicted.start, predicted.end),
        span(measured.start, measured.end),
        more(measured.start - predicted.start),
        more((measured.end - measured.start) - (predicted.end - predicted.start)),
    ]
}

fn whole(cycles: f64) -> String {
    grouped_real(cycles, Some(0))
}
