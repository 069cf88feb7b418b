//! Which engine answers `twill schedule`: the exact one wherever it can, GauS for graphs that are too large for it.

use crate::Exit;
use crate::arguments::{Format, ModuloArguments, ModuloFormat, ScheduleArguments};
use crate::error::Error;
use crate::gaus::GausArguments;
use crate::input::Posed;
use crate::{files, gaus, modulo};
use clap::Parser;
use std::path::{Path, PathBuf};
use twill_graph::format::DataflowFile;

/// Operations of a loop with warps that the exact scheduler is asked about. Search with warps has been measured up to a
/// tenth of that; beyond, encoding alone takes long.
const MOST_WITH_WARPS: usize = 500;
/// Operations of a loop without warps: of HatScheT's, with up to 2651, nearly all are proved.
const MOST_WITHOUT: usize = 4000;

/// Answers for graphs without warps, by their format; `None` where the input is a kernel or loop graph.
pub(crate) fn dataflow(arguments: &ScheduleArguments) -> Result<Option<Exit>, Error> {
    let path = Path::new(&arguments.search.source.input);
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match ending {
        "graphml" => loop_of_hatschet(arguments, path).map(Some),
        "dot" | "gv" | "blif" | "gml" | "mlir" => {
            by_gradient(arguments, "exact search is for loops; this is a graph without warps", None).map(Some)
        }
        "json" if path.exists() && DataflowFile::is_named_in(&files::read(path)?) => {
            by_gradient(arguments, "exact search is for loops of tile operations", None).map(Some)
        }
        _ => Ok(None),
    }
}

/// Answers for loops with too many operations for the exact scheduler.
pub(crate) fn large(arguments: &ScheduleArguments, posed: &[Posed]) -> Result<Option<Exit>, Error> {
    let operations = posed.iter().map(|p| p.problem.graph().operations().len()).max().unwrap_or(0);
    let most = if arguments.swp_only { MOST_WITHOUT } else { MOST_WITH_WARPS };
    if operations <= most {
        return Ok(None);
    }
    let why = format!(
        "{operations} operations are more than the exact scheduler's {most}; no warps, bounds instead of proofs"
    );
    by_gradient(arguments, &why, Some("--smallest-ii")).map(Some)
}

fn loop_of_hatschet(arguments: &ScheduleArguments, path: &Path) -> Result<Exit, Error> {
    let operations = files::read(path)?.matches("<node").count();
    if operations > MOST_WITHOUT {
        let why = format!("{operations} operations are more than the exact scheduler's {MOST_WITHOUT}");
        return by_gradient(arguments, &why, Some("--smallest-ii"));
    }
    tell(arguments, &format!("exact: {operations} operations, without warps (twill modulo)"));
    let search = &arguments.search;
    modulo::run(&ModuloArguments {
        graph: PathBuf::from(path),
        resources: None,
        format: if arguments.format == Format::Json { ModuloFormat::Json } else { ModuloFormat::Text },
        page: arguments.page.clone(),
        time_limit: search.time_limit,
        work_limit: search.work_limit,
        quiet: search.quiet,
    })
}

#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    gaus: GausArguments,
}

fn by_gradient(arguments: &ScheduleArguments, why: &str, question: Option<&str>) -> Result<Exit, Error> {
    let source = &arguments.search.source;
    let format = match arguments.format {
        Format::Text => "text",
        Format::Json => "json",
        Format::Pseudocode => return Err(Error::NoProgram { input: source.input.clone() }),
    };
    tell(arguments, &format!("GauS: {why} (twill gaus)"));
    let mut words: Vec<String> = ["gaus", &source.input, "--format", format].map(str::to_owned).into();
    words.extend(question.map(str::to_owned));
    let mut add = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name}={value}")));
    add("--machine", source.machine.clone());
    add("--loop", source.loop_index.map(|index| index.to_string()));
    add("--time-limit", arguments.search.time_limit.map(|seconds| seconds.to_string()));
    // What is passed on has been read once already.
    let parsed = Alone::try_parse_from(&words).map_err(|error| Error::Arguments(error.to_string()))?;
    let quiet = arguments.search.quiet;
    gaus::run(&GausArguments { page: arguments.page.clone(), quiet, ..parsed.gaus })
}

fn tell(arguments: &ScheduleArguments, engine: &str) {
    if !arguments.search.quiet {
        eprintln!("engine {engine}");
    }
}
