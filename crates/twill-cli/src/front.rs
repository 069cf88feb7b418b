//! Which engine answers `twill schedule`: the exact one wherever it can, GauS for graphs that are too large for it.

use crate::arguments::{Format, GausArguments, GausFormat, ScheduleArguments, SearchArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, gaus};
use std::path::{Path, PathBuf};
use twill_driver::gaus::is_loop;
use twill_driver::options::{GausEngine, GausOptions, given};
use twill_driver::{InputKind, LoopProblem, Request};

/// Operations of a loop with warps that the exact scheduler is asked about. Search with warps has been measured up to a
/// tenth of that; beyond, encoding alone takes long.
const MOST_WITH_WARPS: usize = 500;
/// Operations of a loop without warps: of HatScheT's, with up to 2651, nearly all are proved.
const MOST_WITHOUT: usize = 4000;

/// The exact engine for loops without warps.
const EXACT: &str = "twill gaus --engine exact";

/// Answers for graphs without warps, by their format; `None` where the input is a kernel or loop graph.
pub(crate) fn dataflow(arguments: &ScheduleArguments) -> Result<Option<Exit>, Error> {
    let path = Path::new(&arguments.search.source.input);
    if !files::exists(path) {
        return Ok(None);
    }
    match InputKind::of(path, &files::read(path)?) {
        InputKind::Hatschet => loop_of_hatschet(arguments, path).map(Some),
        InputKind::Dataflow => without_warps(arguments, path).map(Some),
        InputKind::Kernel | InputKind::LoopGraph => Ok(None),
    }
}

fn without_warps(arguments: &ScheduleArguments, path: &Path) -> Result<Exit, Error> {
    refuse(arguments, "GauS", true)?;
    let question = is_loop(path)?;
    by_gradient(arguments, "exact search is for loops of tile operations; this is a graph without warps", question)
}

/// Refuses options that the engine would silently leave out.
fn refuse(arguments: &ScheduleArguments, engine: &'static str, is_file_of_others: bool) -> Result<(), Error> {
    let (search, source) = (&arguments.search, &arguments.search.source);
    let own = [
        ("emit", arguments.emit.is_some()),
        ("certificate", arguments.certificate.is_some()),
        ("top", arguments.top.top.is_some()),
    ];
    let own = own.into_iter().filter(|(_, given)| *given).map(|(option, _)| option.to_owned());
    let groups = [given(&arguments.siblings), given(&search.limits), given(&search.search), given(&source.lowering)];
    // What both engines know, and how loops go together, which none of them asks.
    let known = |option: &str| match option {
        "separate-loops" | "time-limit" | "memory-limit" | "no-cache" | "coarsening-axis" => true,
        "work-limit" => engine == EXACT,
        "machine" | "loop" => !is_file_of_others,
        _ => false,
    };
    match own.chain(groups.into_iter().flatten()).find(|option| !known(option)) {
        Some(option) => Err(Error::NotForEngine { input: source.input.clone(), option, engine }),
        None => Ok(()),
    }
}

/// Refuses what the exact scheduler is not for.
pub(crate) fn refuse_in_reports(arguments: &SearchArguments) -> Result<(), Error> {
    let input = &arguments.source.input;
    let refused = |why: &str| Err(Error::NotOnPage { input: input.clone(), why: why.into() });
    let path = Path::new(input);
    let is_dataflow = files::exists(path)
        && matches!(InputKind::of(path, &files::read(path)?), InputKind::Hatschet | InputKind::Dataflow);
    if is_dataflow { refused("it is a graph without warps") } else { Ok(()) }
}

/// Refuses loops with too many operations for the exact scheduler.
pub(crate) fn refuse_large(request: &Request) -> Result<(), Error> {
    let loops = twill_driver::lowered(&request.input, &request.lowering)?.loops;
    let operations = loops.iter().map(|l| l.graph.operations().len()).max().unwrap_or(0);
    if operations <= MOST_WITH_WARPS {
        return Ok(());
    }
    let why = format!("{operations} operations are more than the exact scheduler's {MOST_WITH_WARPS}");
    Err(Error::NotOnPage { input: request.input.name.clone(), why })
}

/// Answers for loops with too many operations for the exact scheduler.
pub(crate) fn large(arguments: &ScheduleArguments, problems: &[LoopProblem]) -> Result<Option<Exit>, Error> {
    let operations = problems.iter().map(|p| p.problem.graph().operations().len()).max().unwrap_or(0);
    let most = if arguments.swp_only { MOST_WITHOUT } else { MOST_WITH_WARPS };
    if operations <= most {
        return Ok(None);
    }
    refuse(arguments, "GauS", false)?;
    let why = format!(
        "{operations} operations are more than the exact scheduler's {most}; no warps, bounds instead of proofs"
    );
    by_gradient(arguments, &why, true).map(Some)
}

fn loop_of_hatschet(arguments: &ScheduleArguments, path: &Path) -> Result<Exit, Error> {
    let operations = files::read(path)?.matches("<node").count();
    if arguments.format().is_picture() {
        let input = arguments.search.source.input.clone();
        return Err(Error::NoPicture { input, others: "text or json" });
    }
    refuse(arguments, if operations > MOST_WITHOUT { "GauS" } else { EXACT }, true)?;
    if operations > MOST_WITHOUT {
        let why = format!("{operations} operations are more than the exact scheduler's {MOST_WITHOUT}");
        return by_gradient(arguments, &why, true);
    }
    let format = if arguments.format() == Format::Json { GausFormat::Json } else { GausFormat::Text };
    tell(arguments, &format!("exact: {operations} operations, without warps ({EXACT})"));
    gaus::run(&as_gaus(arguments, format, GausOptions { engine: GausEngine::Exact, ..GausOptions::default() }))
}

fn by_gradient(arguments: &ScheduleArguments, why: &str, is_loop: bool) -> Result<Exit, Error> {
    let source = &arguments.search.source;
    let format = match arguments.format() {
        Format::Text => GausFormat::Text,
        Format::Json => GausFormat::Json,
        Format::Perfetto => GausFormat::Perfetto,
        Format::Pseudocode => return Err(Error::NoProgram { input: source.input.clone() }),
        Format::Svg | Format::GraphSvg | Format::Dot => {
            return Err(Error::NoPicture { input: source.input.clone(), others: "text, json or perfetto" });
        }
    };
    tell(arguments, &format!("GauS: {why} (twill gaus)"));
    gaus::run_for_proof(&as_gaus(arguments, format, GausOptions { smallest_ii: is_loop, ..GausOptions::default() }))
}

/// What `twill gaus` is asked with the same options, and these of its own.
fn as_gaus(arguments: &ScheduleArguments, format: GausFormat, own: GausOptions) -> GausArguments {
    let (search, lowering) = (&arguments.search, &arguments.search.source.lowering);
    let limits = search.search.clone();
    let options = GausOptions {
        machine: lowering.machine.clone(),
        loop_index: lowering.loop_index,
        time_limit: limits.time_limit,
        // GauS knows none.
        work_limit: limits.work_limit.filter(|_| own.engine == GausEngine::Exact),
        memory_limit: limits.memory_limit,
        ..own
    };
    let input = Some(PathBuf::from(&search.source.input));
    GausArguments { input, options, format: Some(format), page: arguments.page.clone(), quiet: search.quiet }
}

fn tell(arguments: &ScheduleArguments, engine: &str) {
    if !arguments.search.quiet {
        eprintln!("engine {engine}");
    }
}
