//! Which engine answers `twill schedule`: the exact one wherever it can, GauS for graphs that are too large for it.

use crate::Exit;
use crate::arguments::{Format, GausArguments, ScheduleArguments, SearchArguments};
use crate::error::Error;
use crate::kind::InputKind;
use crate::{files, gaus};
use clap::Parser;
use std::path::Path;
use twill_driver::{LoopProblem, Request};

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
    let question = gaus::is_loop(path)?.then_some("--smallest-ii");
    by_gradient(arguments, "exact search is for loops of tile operations; this is a graph without warps", question)
}

/// Refuses options that the engine would silently leave out.
fn refuse(arguments: &ScheduleArguments, engine: &'static str, is_file_of_others: bool) -> Result<(), Error> {
    let (search, source) = (&arguments.search, &arguments.search.source);
    let exact = engine == EXACT;
    let given = [
        ("emit", arguments.emit.is_some()),
        ("certificate", arguments.certificate.is_some()),
        ("top", arguments.top.top.is_some()),
        ("trip-counts", !arguments.siblings.trip_counts.is_empty()),
        ("compute-groups", search.limits.compute_groups.is_some()),
        ("registers-per-thread", search.limits.registers_per_thread.is_some()),
        ("max-interval", search.max_interval.is_some()),
        ("work-limit", search.budget.work_limit.is_some() && !exact),
        ("unroll", search.limits.unroll > 1),
        ("normalise", search.limits.normalise > 0),
        ("kernel", source.lowering.kernel.is_some()),
        ("sub-tiles", source.lowering.sub_tiles.is_some()),
        ("cta-coarsening", source.lowering.cta_coarsening.is_some()),
        ("retile-loop", source.lowering.retile_loop.is_some()),
        ("no-contract", source.lowering.no_contract),
        ("machine", source.lowering.machine.is_some() && is_file_of_others),
        ("loop", source.lowering.loop_index.is_some() && is_file_of_others),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::NotForEngine { input: source.input.clone(), option, engine }),
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
    by_gradient(arguments, &why, Some("--smallest-ii")).map(Some)
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
        return by_gradient(arguments, &why, Some("--smallest-ii"));
    }
    let format = match arguments.format() {
        Format::Json => "json",
        _ => "text",
    };
    tell(arguments, &format!("exact: {operations} operations, without warps ({EXACT})"));
    gaus::run(&as_gaus(arguments, format, &["--engine", "exact"])?)
}

#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    gaus: GausArguments,
}

fn by_gradient(arguments: &ScheduleArguments, why: &str, question: Option<&str>) -> Result<Exit, Error> {
    let source = &arguments.search.source;
    let format = match arguments.format() {
        Format::Text => "text",
        Format::Json => "json",
        Format::Perfetto => "perfetto",
        Format::Pseudocode => return Err(Error::NoProgram { input: source.input.clone() }),
        Format::Svg | Format::GraphSvg | Format::Dot => {
            return Err(Error::NoPicture { input: source.input.clone(), others: "text, json or perfetto" });
        }
    };
    tell(arguments, &format!("GauS: {why} (twill gaus)"));
    gaus::run_for_proof(&as_gaus(arguments, format, question.as_slice())?)
}

/// What `twill gaus` is asked with the same options, and these words.
fn as_gaus(arguments: &ScheduleArguments, format: &str, more: &[&str]) -> Result<GausArguments, Error> {
    let (search, lowering) = (&arguments.search, &arguments.search.source.lowering);
    let words = ["gaus", &search.source.input, "--format", format].into_iter().chain(more.iter().copied());
    // These words are all known.
    let parsed = Alone::try_parse_from(words).map_err(|error| Error::Arguments(error.to_string()))?;
    Ok(GausArguments {
        machine: lowering.machine.clone(),
        loop_index: lowering.loop_index,
        time_limit: search.budget.time_limit,
        work_limit: search.budget.work_limit,
        memory_limit: search.budget.memory_limit,
        page: arguments.page.clone(),
        quiet: search.quiet,
        ..parsed.gaus
    })
}

fn tell(arguments: &ScheduleArguments, engine: &str) {
    if !arguments.search.quiet {
        eprintln!("engine {engine}");
    }
}
