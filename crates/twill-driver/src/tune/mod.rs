//! The tuner: from a kernel to its code, through several schedules, of which it takes the fastest by its own estimates.
//!
//! It chooses, so it is no compiler's back end: [`variants`] says which schedules are tried, [`lower`] makes a kernel of one,
//! [`score`] says what that is worth, [`assemble`] looks at machine code and takes the best, and [`fallback`] is the table of what
//! is changed if registers do not suffice, and [`residency`] runs several CTAs on a multiprocessor if they do. All numbers that it decides by stand in [`thresholds`], with their sources.

mod assemble;
mod assembler;
mod candidate;
mod fallback;
mod generated;
mod in_order;
mod languages;
mod latency_padding;
pub(crate) mod lower;
mod mma_batches;
mod others;
mod relaxed;
mod residency;
mod rings;
pub(crate) mod rules;
mod schedules;
mod score;
mod scratch;
pub(crate) mod thresholds;
mod variants;
mod written;

pub use crate::options::{CompileOptions, Language, TileOrderOption, TraceDetail, TraceOptions, Which};
pub use assembler::Assembler;
pub use generated::{GeneratedKernel, GeneratedLoop, OperationCounts, Room};
pub use languages::compile_fastest;
pub(crate) use lower::of_schedules;
pub use lower::print_after;
pub use others::{OtherKernel, others};

use crate::cache::{EntryKind, Key};
use crate::input::generated_source;
use crate::{Content, DEFAULT_MACHINE, Error, Limits, LoweringParameters, Request, Session};
use assembler::Assembled;
use candidate::{Attempt, Candidate};
use relaxed::Relaxed;
use scratch::pipelined_that_fits;
use serde::Serialize;
use twill_graph::Status;
use twill_machine::Machine;

/// What came of generating a kernel.
#[derive(Clone, Debug)]
pub enum Compiled {
    /// The best kernel of all attempts.
    Kernel(Box<GeneratedKernel>),
    /// There is no schedule to generate code for.
    NoSchedule(Status),
    /// It was stopped before there was anything.
    Stopped,
}

/// Generates the kernel of a request; with an assembler its machine code is looked at, and where registers do not
/// suffice, the schedule is made again.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem, its kernel cannot be generated, or the assembler that was asked for does not work.
pub fn compile(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Compiled, Error> {
    let Content::Kernel(text) = &request.input.content else {
        return Err(Error::NoSource { input: request.input.name.clone() });
    };
    if options.trace.is_some() && options.language() != Language::Cuda {
        return Err(Error::NotTraced { input: request.input.name.clone() });
    }
    if options.cluster > 1 && options.language() != Language::Cuda {
        return Err(Error::NoClusters { input: request.input.name.clone() });
    }
    if options.wave_sync && options.language() != Language::Cuda {
        return Err(Error::NoWaveSync { input: request.input.name.clone() });
    }
    let is_one_group = matches!(options.schedule, Which::InOrder | Which::Multistage);
    let has_warps = is_one_group && options.language() == Language::Gluon;
    if options.num_warps.is_some_and(|warps| !has_warps || !warps.is_power_of_two()) {
        return Err(Error::NoNumWarps { input: request.input.name.clone() });
    }
    let is_subtile = |columns: u32| columns == 0 || columns >= 16 && columns.is_power_of_two();
    let has_subtiles = !is_one_group && options.language() == Language::Gluon;
    if options.epilogue_subtile.is_some_and(|columns| !has_subtiles || !is_subtile(columns)) {
        return Err(Error::NoEpilogueSubtile { input: request.input.name.clone() });
    }
    if options.num_stages.is_some() && (options.schedule != Which::Multistage || !has_warps) {
        return Err(Error::NoNumStages { input: request.input.name.clone() });
    }
    let cache = session.cache.clone();
    let key = kernel_key(text, request, options, assembler, session);
    if let Some(found) = cache.as_ref().and_then(|cache| cache.find(&key, GeneratedKernel::from_json)) {
        return Ok(Compiled::Kernel(Box::new(found)));
    }
    match options.schedule {
        Which::InOrder => {
            let kernel = in_order::compile(request, options, None, assembler, session)?;
            return Ok(Compiled::Kernel(Box::new(in_order_kernel(&kernel, "asked for (--schedule in-order)"))));
        }
        Which::Multistage => {
            let kernel = in_order::compile(request, options, None, assembler, session)?;
            let made = GeneratedKernel::of(&kernel, kernel.spec.machine.name());
            if made.operations.cp_async == 0 && options.num_stages.is_none() {
                return Err(Error::NoLoadsAhead { input: request.input.name.clone() });
            }
            // A background process makes it anew for each process otherwise.
            if let Some(cache) = &cache {
                cache.write(&key, &made.to_json());
            }
            return Ok(Compiled::Kernel(Box::new(made)));
        }
        Which::Optimal | Which::SwpOnly | Which::NoSwp => {}
    }
    let assembler = assembler.map(|assembler| assembler.within(&session.search.budget));
    let assembler = assembler.as_ref();
    let may_be_in_order = in_order::is_asked_for(request, options);
    let kernel = match pipelined_or_whole(request, options, assembler, session) {
        Ok(Made::Kernel(kernel)) => *kernel,
        Ok(Made::Stopped | Made::Oversized(_)) => return Ok(Compiled::Stopped),
        Ok(Made::NoSchedule(status)) => {
            let why = match status {
                Status::Infeasible => "no schedule exists: proved",
                _ => "no schedule was found in time",
            };
            let may = may_be_in_order && !session.is_stopped();
            match may.then(|| in_order::compile(request, options, Some(why), assembler, session)) {
                Some(Ok(candidate)) => in_order_kernel(&candidate, why),
                Some(Err(error @ Error::Assembler { .. })) => return Err(error),
                _ => return Ok(Compiled::NoSchedule(status)),
            }
        }
        Err(error) if may_be_in_order && in_order::is_of_kernel(&error) && !session.is_stopped() => {
            match in_order::compile(request, options, Some(&error.to_string()), assembler, session) {
                Ok(candidate) => in_order_kernel(&candidate, &error.to_string()),
                Err(_) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    };
    let is_whole = assembler.is_none() || kernel.machine_code.is_some();
    // Without a look at the machine code that was asked for, it is not the kernel that was asked for; and what was stopped
    // might have become better.
    if let Some(cache) = cache.filter(|_| is_whole && !session.is_stopped()) {
        cache.write(&key, &kernel.to_json());
        let sass: Option<Vec<(i64, u32)>> =
            kernel.loops.iter().map(|one| Some((one.interval, one.sass_estimate?))).collect();
        if let Some(sass) = sass.filter(|_| options.schedule == Which::Optimal) {
            // Plain data always serialises.
            cache.write(&estimate_key(text, request), &serde_json::to_string(&sass).unwrap_or_default());
        }
    }
    Ok(Compiled::Kernel(Box::new(kernel)))
}

/// The kernel that [`compile`] kept for the same question; nothing is searched or generated.
pub fn cached(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &Session<'_>,
) -> Option<GeneratedKernel> {
    let Content::Kernel(text) = &request.input.content else { return None };
    let key = kernel_key(text, request, options, assembler, session);
    session.cache.as_ref()?.find(&key, GeneratedKernel::from_json)
}

/// Everything that a generated kernel depends on.
fn kernel_key(
    text: &str,
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &Session<'_>,
) -> Key {
    let depends = (text, &request.input.name, lowering(request), limits(request), options);
    // Nobody looks for it without a cache.
    let assembler = assembler.filter(|_| session.cache.is_some()).map(Assembler::depends);
    Key::new(EntryKind::Kernel, &(depends, assembler, session.depends()))
}

/// What came of a request for a pipeline.
enum Made {
    Kernel(Box<GeneratedKernel>),
    NoSchedule(Status),
    /// It cannot be launched, as it takes too much shared memory.
    Oversized(Box<scratch::Oversized>),
    Stopped,
}

/// A kernel in order, and why it has no pipeline.
fn in_order_kernel(candidate: &Candidate, why: &str) -> GeneratedKernel {
    GeneratedKernel { in_order: Some(why.to_owned()), ..GeneratedKernel::of(candidate, candidate.spec.machine.name()) }
}

/// As [`pipelined_that_fits`]; where its rows cannot be shared out and the user did not ask for that, with one sub-tile.
fn pipelined_or_whole(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Made, Error> {
    let error = match pipelined_that_fits(request, options, assembler, session) {
        Err(error) if request.lowering.sub_tiles.is_none() && error.asks_for_one_sub_tile() => error,
        made => return made,
    };
    let lowering = LoweringParameters { sub_tiles: Some(1), ..request.lowering.clone() };
    session.observer.note(&format!("{error}\none sub-tile is tried"));
    match pipelined_that_fits(&Request { lowering, ..request.clone() }, options, assembler, session) {
        Ok(made @ (Made::Kernel(_) | Made::Stopped)) => Ok(made),
        Ok(Made::NoSchedule(_) | Made::Oversized(_)) | Err(_) => Err(error),
    }
}

/// The best kernel with a pipeline.
fn pipelined(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Made, Error> {
    let source = generated_source(request)?;
    let Relaxed { request, options, first } = match variants::first(request, options, &source, assembler, session)? {
        Attempt::Made(first) => Relaxed { request: request.clone(), options: options.clone(), first: *first },
        Attempt::Nothing(status) => match relaxed::first(request, options, &source, status, assembler, session)? {
            Some(relaxed) => relaxed,
            None => return Ok(Made::NoSchedule(status)),
        },
    };
    let (request, options) = (&request, &options);
    let best = match assembler {
        Some(assembler) => fallback::assembled(request, options, first, &source, assembler, session)?,
        None => Some(first),
    };
    let Some(mut best) = best else { return Ok(Made::Stopped) };
    if let Some(assembler) = assembler.filter(|_| best.assembly.is_some()) {
        best = assemble::faster(request, options, &mut best, &source, assembler, session)?.unwrap_or(best);
        best = residency::several(request, best, &source, assembler, session);
    }
    if let Some(oversized) = scratch::Oversized::of(&best) {
        return Ok(Made::Oversized(Box::new(oversized)));
    }
    if let Some(why) = best.unusable() {
        return Err(Error::MachineCode { input: request.input.name.clone(), why });
    }
    if let Some(trace) = options.traced() {
        best = traced(best, trace, assembler, &request.input.name)?;
    }
    Ok(Made::Kernel(Box::new(GeneratedKernel::of(&best, source.machine.name()))))
}

/// By loop, the interval of the kernel that was last made within these limits, and cycles of an iteration of its machine code;
/// none where it is not known.
pub(crate) fn sass_estimate(request: &Request, session: &Session<'_>) -> Option<Vec<(i64, u32)>> {
    let Content::Kernel(text) = &request.input.content else { return None };
    session.cache.as_ref()?.find(&estimate_key(text, request), |found| serde_json::from_str(found).ok())
}

fn estimate_key(text: &str, request: &Request) -> Key {
    let mut resolved = request.clone();
    let assignment = || Some(crate::default_assignment(&crate::source(request).ok()??.machine));
    resolved.limits.warp_assignment = request.limits.warp_assignment.or_else(assignment);
    Key::new(EntryKind::Estimate, &(text, lowering(&resolved), limits(&resolved)))
}

/// The kernel that was chosen, recording the time; what the assembler makes of it changes nothing but its report.
fn traced(
    best: Candidate,
    trace: TraceOptions,
    assembler: Option<&Assembler>,
    input: &str,
) -> Result<Candidate, Error> {
    let assembler = assembler.filter(|_| best.assembly.is_some());
    let mut best = best.traced(trace, input)?;
    if let Some(assembler) = assembler
        && let Assembled::Report(assembly) = assembler.run(&best.files(), input)?
    {
        best.assembly = Some(assembly);
    }
    Ok(best)
}

/// How the kernel is lowered, as far as its code depends on it.
fn lowering(request: &Request) -> impl Serialize {
    let LoweringParameters { machine, kernel, loop_index, sub_tiles, programs, retile_loop, contract } =
        &request.lowering;
    let programs = programs.map(|coarsening| (coarsening.count, coarsening.axis.number()));
    let default = || Machine::builtin(DEFAULT_MACHINE).ok();
    let machine = machine.clone().or_else(default).map(|machine| machine.to_toml());
    (machine, kernel.clone(), *loop_index, *sub_tiles, programs, *retile_loop, *contract)
}

/// What limits the schedule, as far as the code depends on it.
fn limits(request: &Request) -> impl Serialize {
    let Limits {
        compute_groups,
        registers_per_thread,
        compute_warps,
        register_multiple,
        unroll,
        normalise,
        model,
        warp_assignment,
    } = &request.limits;
    let siblings = (request.siblings.trip_counts.clone(), request.siblings.separate_loops);
    let registers = (*registers_per_thread, *compute_warps, *register_multiple);
    (*compute_groups, registers, *unroll, *normalise, *model, *warp_assignment, siblings)
}
