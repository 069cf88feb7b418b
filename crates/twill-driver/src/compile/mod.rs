//! From a kernel to its code: schedule, check, generate, assemble.

mod assembler;
pub(crate) mod candidate;
mod choose;
mod found;
mod generated;
mod latency_padding;
mod mma_batches;
mod others;
mod rings;
pub(crate) mod rules;
mod timed;
mod written;

pub use assembler::Assembler;
pub use generated::{GeneratedKernel, GeneratedLoop};
pub use others::{OtherKernel, others};
pub(crate) use timed::of_schedules;

use crate::cache::{Key, Kind};
use crate::input::generated_source;
use crate::{Content, DEFAULT_MACHINE, Error, Limits, Lowering, Request, Session, Source};
use assembler::Assembled;
use candidate::{Attempt, Candidate};
use generated::machine_code;
use serde::Serialize;
use twill_exact::{Budget, SearchOptions};
use twill_graph::{Status, WarpAssignment};
use twill_machine::Machine;

/// Work for the search of a second or later attempt: what is not found then is not worth the wait.
const LATER_WORK: u64 = 20_000_000;

/// Work for each search for a schedule whose MMAs start together: a few seconds.
const PADDED_WORK: u64 = 4_000_000;

/// What the generator is asked for. What is `None` is chosen by rules that measurement gave (`docs/codegen.md`).
#[derive(Clone, Debug, Serialize)]
pub struct CompileOptions {
    /// As many CTAs as there are multiprocessors walk over the tiles.
    pub persistent: Option<bool>,
    /// The order of tiles.
    pub tile_order: Option<TileOrderOption>,
    /// Programs along the first axis that form a group_m, or along the second that go together.
    pub group_m: Option<u32>,
    /// Least slots of every ring of loads, at least 1.
    pub ring_depth: Option<u32>,
    /// Least slots of the buffers through which warp groups hand values over, at least 1.
    pub handoff_depth: Option<u32>,
    /// A schedule is preferred in which all sub-tiles start their MMAs in one order and in mma_batches, if there is one.
    pub mma_batches: bool,
    /// Left operands that are the same in all iterations stay in registers instead of shared memory.
    pub operands_in_registers: Option<bool>,
    /// Groups take pingpong on the tensor core, in the order of the schedule.
    pub pingpong: Option<bool>,
    /// Two CTAs with neighbouring tiles form a cluster and load together what both read; in CUDA C++ alone.
    pub cluster: bool,
    /// Persistent CTAs begin their tiles together; in CUDA C++ alone.
    pub wave_sync: bool,
    /// Which schedule code is generated for.
    pub schedule: Which,
    /// Most schedules to try, where registers spill or MMAs run one by one.
    pub attempts: u32,
    /// Schedules of the least interval of which the one is taken whose machine code takes the fewest cycles; 1 takes the first.
    /// None compares several where the first one's machine code takes far longer than its interval.
    pub candidates: Option<u32>,
    /// The language that it is written in.
    pub language: Language,
    /// The kernel records its time (`docs/simulation.md`); in CUDA C++ alone.
    pub trace: Option<TraceOptions>,
    /// What generates the kernel again, for its head.
    pub command: String,
}

/// What a kernel records of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceOptions {
    /// Of so many iterations of its first tile.
    pub iterations: u32,
    /// How closely.
    pub detail: TraceDetail,
}

/// How closely the time of a kernel is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TraceDetail {
    /// Each operation.
    Operations,
    /// Operations that threads do one after the other, with no wait in between, as one.
    Segments,
    /// When each group begins an iteration.
    Iterations,
}

impl From<TraceDetail> for twill_codegen::ir::Detail {
    fn from(detail: TraceDetail) -> Self {
        match detail {
            TraceDetail::Operations => Self::Operations,
            TraceDetail::Segments => Self::Segments,
            TraceDetail::Iterations => Self::Iterations,
        }
    }
}

/// What kernels are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Language {
    /// Gluon, which Triton compiles where the kernel runs.
    Gluon,
    /// CUDA C++, which needs no Python where the kernel runs.
    Cuda,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            persistent: None,
            tile_order: None,
            group_m: None,
            ring_depth: None,
            handoff_depth: None,
            mma_batches: true,
            operands_in_registers: None,
            pingpong: None,
            cluster: false,
            wave_sync: false,
            schedule: Which::Optimal,
            attempts: 4,
            candidates: Some(1),
            language: Language::Gluon,
            trace: None,
            command: String::new(),
        }
    }
}

/// Which schedule code is generated for. The poorer ones give each sub-tile a warp group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Which {
    /// The best, with its proof.
    Optimal,
    /// Order and stages of the modulo schedule, which knows nothing of warps.
    SwpOnly,
    /// One iteration after another, one operation after another; rings of one slot.
    NoSwp,
}

/// In which order tiles are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TileOrderOption {
    /// As a grid is: the first axis fastest.
    Linear,
    /// The first axis from its end.
    Lpt,
    /// In bands along the first axis.
    GroupM,
}

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
    if options.trace.is_some() && options.language != Language::Cuda {
        return Err(Error::NotTraced { input: request.input.name.clone() });
    }
    if options.cluster && options.language != Language::Cuda {
        return Err(Error::NoClusters { input: request.input.name.clone() });
    }
    if options.wave_sync && options.language != Language::Cuda {
        return Err(Error::NoWaveSync { input: request.input.name.clone() });
    }
    let cache = session.cache.clone();
    let depends = (text, &request.input.name, lowering(request), limits(request), options);
    let key = Key::new(Kind::Kernel, &(depends, assembler.map(Assembler::depends), session.depends()));
    if let Some(found) = cache.as_ref().and_then(|cache| cache.find(&key, GeneratedKernel::from_json)) {
        return Ok(Compiled::Kernel(Box::new(found)));
    }
    let source = generated_source(request)?;
    let first = match Candidate::first(request, options, &source, session)? {
        Attempt::Made(candidate) => *candidate,
        Attempt::Nothing(status) => return Ok(Compiled::NoSchedule(status)),
    };
    let best = match assembler {
        Some(assembler) => assembled(request, options, first, &source, assembler, session)?,
        None => Some(first),
    };
    let Some(mut best) = best else { return Ok(Compiled::Stopped) };
    if let Some(assembler) = assembler.filter(|_| best.assembly.is_some()) {
        best = choose::choose(request, options, best, &source, assembler, session)?;
    }
    if let Some(trace) = options.trace {
        best = traced(best, trace, assembler, &request.input.name)?;
    }
    let kernel = GeneratedKernel::of(&best, source.machine.name());
    // Without a look at the machine code that was asked for, it is not the kernel that was asked for; and what was stopped
    // might have become better.
    if let Some(cache) = cache.filter(|_| (assembler.is_none() || best.assembly.is_some()) && !session.is_stopped()) {
        cache.write(&key, &kernel.to_json());
        let sass: Option<Vec<(i64, u32)>> =
            kernel.loops.iter().map(|one| Some((one.interval, one.assembled?))).collect();
        if let Some(sass) = sass.filter(|_| options.schedule == Which::Optimal) {
            // Plain data always serialises.
            cache.write(&estimate_key(text, request), &serde_json::to_string(&sass).unwrap_or_default());
        }
    }
    Ok(Compiled::Kernel(Box::new(kernel)))
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
    Key::new(Kind::Estimate, &(text, lowering(&resolved), limits(&resolved)))
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
    let Lowering { machine, kernel, loop_index, sub_tiles, programs, retile_loop, contract } = &request.lowering;
    let programs = programs.map(|coarsening| (coarsening.count, coarsening.axis.number()));
    let default = || Machine::builtin(DEFAULT_MACHINE).ok();
    let machine = machine.clone().or_else(default).map(|machine| machine.to_toml());
    (machine, kernel.clone(), *loop_index, *sub_tiles, programs, *retile_loop, *contract)
}

/// What limits the schedule, as far as the code depends on it.
fn limits(request: &Request) -> impl Serialize {
    let Limits { compute_groups, registers_per_thread, unroll, normalise, model, warp_assignment } = &request.limits;
    let siblings = (request.siblings.trip_counts.clone(), request.siblings.apart);
    (*compute_groups, *registers_per_thread, *unroll, *normalise, *model, *warp_assignment, siblings)
}

/// The best of as many attempts as there may be: where registers do not suffice, the schedule is made again with
/// fewer, so that fewer values live at a time. None where it was stopped before there was anything.
fn assembled(
    request: &Request,
    options: &CompileOptions,
    first: Candidate,
    source: &Source,
    assembler: &Assembler,
    session: &mut Session<'_>,
) -> Result<Option<Candidate>, Error> {
    let mut best = first;
    match assembler.run(&best.files(), &request.input.name) {
        _ if session.is_stopped() => return Ok(None),
        Ok(Assembled::Report(assembly)) => best.assembly = Some(assembly),
        Ok(Assembled::Impossible(why)) => {
            session.observer.note(&format!(
                "note: the kernel is not assembled: {why}; name an interpreter that has it with --python"
            ));
            return Ok(Some(best));
        }
        Err(error) => return Err(error),
    }
    let mut made = 1;
    if is_short(&best) && !best.others.is_empty() {
        (best, made) = next_with_registers(best, options.attempts, assembler, &request.input.name, session);
    }
    let (mut tried, mut limits) = (options.clone(), request.limits.clone());
    let work = session.search.budget.work.map_or(LATER_WORK, |work| work.min(LATER_WORK));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let later = SearchOptions { budget, ..session.search.clone() };
    let mut session = session.with(later);
    let (mut granted, mut source_before) = (best.granted, best.source.clone());
    // The schedule that was found first is no other option, and always there to go back to.
    let most = options.attempts.max(if best.preferred && made == 1 { 2 } else { 1 });
    // It was among those of several loops.
    best.preferred &= made == 1;
    for number in made + 1..=most {
        if !is_short(&best) || session.is_stopped() {
            break;
        }
        let what = best.assembly.as_ref().map(machine_code).unwrap_or_default();
        // One change at a time; what does not help is taken back.
        let [usual, other] = rules::assignments(source);
        let before = (tried.clone(), limits.clone());
        let goes_back = best.preferred;
        if goes_back {
            session.observer.note(&format!("{what}; attempt {number}: the schedule that was found first"));
        } else if limits.compute_groups.is_none() && compute_groups(&best) > 2 {
            // Each of fewer groups has more of the register file than it has more values.
            let fewer = compute_groups(&best) - 1;
            limits.compute_groups = Some(fewer);
            session.observer.note(&format!("{what}; attempt {number}: {fewer} compute groups"));
        } else if tried.persistent.is_none() && best.program.tiling.persistent && !tried.wave_sync {
            tried.persistent = Some(false);
            session.observer.note(&format!("{what}; attempt {number}: one tile a CTA"));
        } else if limits.warp_assignment.is_none() {
            limits.warp_assignment = Some(other);
            let how = match other {
                WarpAssignment::BySubTile => "each group works on sub-tiles of its own",
                WarpAssignment::Free => "any group may work on any sub-tile",
            };
            session.observer.note(&format!("{what}; attempt {number}: {how}"));
        } else {
            let Some(fewer) = fewer_registers(&limits, granted, source) else { break };
            limits.registers_per_thread = Some(fewer);
            session
                .observer
                .note(&format!("{what}; attempt {number}: at most {fewer} registers a thread in the schedule"));
        }
        let mut candidate = match Candidate::plain(
            &Request { limits: limits.clone(), ..request.clone() },
            &tried,
            source,
            &mut session,
        ) {
            Ok(Attempt::Made(candidate)) => *candidate,
            Ok(Attempt::Nothing(_)) => {
                session.observer.note(&format!("attempt {number}: there is no schedule, or none was found in time"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {number}: {error}"));
                break;
            }
        };
        granted = candidate.granted;
        if candidate.source == source_before {
            session.observer.note(&format!("attempt {number}: the same kernel"));
            continue;
        }
        source_before.clone_from(&candidate.source);
        match assembler.run(&candidate.files(), &request.input.name) {
            _ if session.is_stopped() => break,
            Ok(Assembled::Report(assembly)) => candidate.assembly = Some(assembly),
            Ok(Assembled::Impossible(why)) => {
                session.observer.note(&format!("attempt {number}: {why}"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {number}: {error}"));
                break;
            }
        }
        let (own, kept) = (candidate.cost(), best.cost());
        // What is preferred is not given up for a few bytes.
        let few = |cost: (usize, u64, i64, u64)| (cost.0, cost.1, cost.2);
        let is_better = if goes_back { few(own) < few(kept) } else { own < kept };
        if is_better {
            session.observer.note(&format!("attempt {number} is better"));
            best = candidate;
        } else {
            session.observer.note(&format!("attempt {number} is no better"));
            if goes_back {
                break;
            }
            let registers = limits.registers_per_thread;
            (tried, limits) = before;
            limits.registers_per_thread = registers;
            tried.persistent = tried.persistent.or(Some(true));
            limits.warp_assignment = limits.warp_assignment.or(Some(usual));
            limits.compute_groups = limits.compute_groups.or(Some(compute_groups(&best)));
        }
    }
    Ok(Some(best))
}

/// Whether registers do not suffice for it.
fn is_short(candidate: &Candidate) -> bool {
    candidate.assembly.as_ref().is_some_and(twill_backend::gluon::Assembly::is_short_of_registers)
}

/// Of a kernel with several loops for which registers do not suffice, and those of other schedules: the first with enough, or the
/// best of as many as may be made in all; and how many were made.
fn next_with_registers(
    mut best: Candidate,
    most: u32,
    assembler: &Assembler,
    input: &str,
    session: &mut Session<'_>,
) -> (Candidate, u32) {
    let mut others = std::mem::take(&mut best.others).into_iter();
    let mut made = 1;
    while made < most && is_short(&best) && !session.is_stopped() {
        let Some(mut other) = others.next() else { break };
        made += 1;
        let what = best.assembly.as_ref().map(machine_code).unwrap_or_default();
        session.observer.note(&format!("{what}; attempt {made}: the schedule that is next by simulation"));
        match assembler.run(&other.files(), input) {
            _ if session.is_stopped() => break,
            Ok(Assembled::Report(assembly)) => other.assembly = Some(assembly),
            Ok(Assembled::Impossible(why)) => {
                session.observer.note(&format!("attempt {made}: {why}"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {made}: {error}"));
                break;
            }
        }
        if other.cost() < best.cost() {
            session.observer.note(&format!("attempt {made} is better"));
            best = other;
        } else {
            session.observer.note(&format!("attempt {made} is no better"));
        }
    }
    best.others = others.collect();
    (best, made)
}

/// Warp groups of a kernel that compute.
fn compute_groups(candidate: &Candidate) -> u32 {
    let groups = candidate.program.groups.iter().filter(|group| group.warps >= 4);
    u32::try_from(groups.count()).unwrap_or(u32::MAX)
}

/// Fewer registers than this schedule grants a thread, or than it might; none where a thread must have more.
fn fewer_registers(limits: &Limits, granted: u32, source: &Source) -> Option<u32> {
    let file = source.machine.resources().registers;
    let step = file.granularity.max(1);
    let most = limits.registers_per_thread.unwrap_or(file.maximum_per_thread);
    let fewer = granted.min(most.checked_sub(step)?) / step * step;
    (fewer >= file.minimum_per_thread.max(file.reserve_per_thread)).then_some(fewer)
}
