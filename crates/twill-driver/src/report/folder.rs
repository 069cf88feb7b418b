//! What lies next to a schedule in the folder of a generated kernel.

use crate::Error;
use serde::Deserialize;
use twill_graph::format::{FormatError, TraceFile};
use twill_report::page::{Assembly, Code, CodeLine, Language, Page};

/// What a page wants of kernel.json.
#[derive(Deserialize)]
struct KernelFile {
    format: String,
    version: u32,
    #[serde(default)]
    lines: Vec<CodeLine>,
    simulated: Option<Simulated>,
    assembly: Option<Assembly>,
}

/// Cycles of an iteration, by loop.
#[derive(Deserialize)]
struct Simulated {
    iterations: Vec<u32>,
    #[serde(default)]
    sass: Vec<u32>,
}

/// Puts on a page what is known of a generated kernel besides its code: cycles as simulated and as estimated from machine code,
/// and what the assembler said. `path` and `json` are its kernel.json.
///
/// # Errors
/// When kernel.json does not read, or is of another number of loops.
pub fn compiled(page: &mut Page, path: &str, json: &str) -> Result<(), Error> {
    let kernel: KernelFile = parse(path, json)?;
    check(path, ("twill-kernel", &kernel.format), kernel.version)?;
    page.assembly = kernel.assembly;
    let Some(Simulated { iterations, sass }) = kernel.simulated else { return Ok(()) };
    let count = page.loops.len();
    if iterations.len() != count || !(sass.is_empty() || sass.len() == count) {
        let why = format!(
            "it has simulated cycles of {} loops, and schedule.json has {count}; compile the kernel again",
            iterations.len().max(sass.len())
        );
        return Err(FormatError::Schedule { file: path.to_owned(), why }.into());
    }
    for (index, own) in page.loops.iter_mut().enumerate() {
        own.simulated = iterations.get(index).copied();
        // A loop that ptxas left none of stands with the cycles of its warp programs (docs/simulation.md).
        own.sass_estimate = sass.get(index).copied().filter(|cycles| Some(*cycles) != own.simulated);
    }
    Ok(())
}

/// The code of a generated kernel: `path` and `json` are its kernel.json, `file` and `text` the kernel itself.
///
/// # Errors
/// When kernel.json does not read, or speaks of lines or operations that there are not.
pub fn code(page: &Page, path: &str, json: &str, file: &str, text: &str) -> Result<Code, Error> {
    let kernel: KernelFile = parse(path, json)?;
    check(path, ("twill-kernel", &kernel.format), kernel.version)?;
    let count = text.lines().count();
    for line in &kernel.lines {
        let is_known = has(page, line.index, &line.operation);
        if line.line == 0 || line.line > count || !is_known {
            let CodeLine { index, operation, line } = line;
            let why = format!(
                "it says that line {line} of {file} runs `{operation}` of loop {index}, and {}; compile the kernel again",
                if is_known { "there is no such line" } else { "schedule.json has no such operation" }
            );
            return Err(FormatError::Schedule { file: path.to_owned(), why }.into());
        }
    }
    let language = if file.ends_with(".py") { Language::Python } else { Language::Cuda };
    Ok(Code { file: file.to_owned(), language, text: text.to_owned(), lines: kernel.lines })
}

/// What was measured of the kernel of a page: `path` and `json` are its trace.json.
///
/// # Errors
/// When it does not read, or is of another schedule.
#[allow(clippy::cast_precision_loss, reason = "no interval has 2^53 cycles")]
pub fn trace(page: &Page, path: &str, json: &str) -> Result<TraceFile, Error> {
    let trace = TraceFile::from_json(json, path)?;
    let wrong = |why: String| Err(FormatError::Schedule { file: path.to_owned(), why }.into());
    for one in &trace.loops {
        let own = page.loops.get(one.index).and_then(|own| own.schedule.initiation_interval);
        let predicted = one.initiation_interval.predicted;
        if own.is_none_or(|own| (own.0 as f64 - predicted).abs() > 0.5) {
            return wrong(format!(
                "loop {} of schedule.json has no interval of {predicted} cycles; measure the kernel again",
                one.index
            ));
        }
        let names = one.operations.iter().map(|o| &o.operation).chain(one.events.iter().map(|e| &e.operation));
        if let Some(operation) = names.into_iter().find(|name| !has(page, one.index, name)) {
            let why = format!(
                "`{operation}` of loop {} is no operation of schedule.json; measure the kernel again",
                one.index
            );
            return wrong(why);
        }
    }
    Ok(trace)
}

fn has(page: &Page, index: usize, operation: &str) -> bool {
    page.loops.get(index).is_some_and(|own| own.schedule.operations.iter().any(|o| o.name == operation))
}

fn parse<T: serde::de::DeserializeOwned>(path: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| {
        let (line, column, message) = (error.line(), error.column(), error.to_string());
        FormatError::Syntax { file: path.to_owned(), line, column, message }.into()
    })
}

fn check(path: &str, (expected, found): (&'static str, &str), found_version: u32) -> Result<(), Error> {
    if found == expected && found_version == 1 {
        return Ok(());
    }
    let (file, found) = (path.to_owned(), found.to_owned());
    Err(FormatError::Version { file, expected, version: 1, found, found_version }.into())
}
