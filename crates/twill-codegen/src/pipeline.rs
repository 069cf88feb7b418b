//! The passes from the schedules of a kernel's loops to its warp program, in order.
//!
//! Each pass takes the program as the passes before it left it, and says in its file what holds before and after it. Builds
//! with debug assertions check after each that the program is [`well_formed`]. It can be printed after any of them
//! ([`lower_observed`], `twill compile --print-after`).

use crate::builder::kernel::KernelBuilder;
use crate::builder::source::ScheduledLoop;
use crate::error::Error;
use crate::ir::WarpProgram;
use crate::options::{Options, SmemFallback};
use crate::passes::{
    allot_registers, assign_buffers, complete_carried, consumers, epilogue, epilogue_barriers, fence_reads, finish,
    hoist_smem_loads, issue_mmas_ahead, legalize, multicast, partial_sums, pingpong, place_barriers, producers,
    structure_returns, tile_scheduler,
};
use crate::verify::{Checked, check, well_formed};
use twill_triton::Kernel;

/// Steps of loops that are generated: what Triton and ptxas compile within a minute.
const MOST_STEPS: u64 = 10_000;

/// A step from schedules to a warp program.
pub struct Pass {
    /// Its name, as `--print-after` takes it.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    run: fn(&mut KernelBuilder<'_>) -> Result<(), Error>,
}

/// All passes. Before the first, the steps of each loop are in the order of its schedule
/// ([`steps`](crate::passes::steps)).
pub const PASSES: &[Pass] = &[
    Pass { name: "legalize", summary: "refuse what no pass can lower", run: legalize::run },
    Pass { name: "partial-sums", summary: "carry row sums per thread", run: partial_sums::run },
    Pass { name: "assign-buffers", summary: "give values shared or tensor memory", run: assign_buffers::run },
    Pass { name: "place-barriers", summary: "guard buffers by mbarriers", run: place_barriers::run },
    Pass { name: "pingpong", summary: "order the groups' MMAs by named barriers", run: pingpong::run },
    Pass { name: "epilogue-barriers", summary: "guard what loops leave in tensor memory", run: epilogue_barriers::run },
    Pass { name: "consumers", summary: "lower the loops of groups that compute or issue MMAs", run: consumers::run },
    Pass { name: "epilogue", summary: "store what the loops made", run: epilogue::run },
    Pass { name: "producers", summary: "lower the loops of groups that load", run: producers::run },
    Pass { name: "structure-returns", summary: "turn early returns into branches", run: structure_returns::run },
    Pass { name: "issue-mmas-ahead", summary: "start MMAs ahead of fences", run: issue_mmas_ahead::run },
    Pass { name: "hoist-smem-loads", summary: "read shared memory under MMAs", run: hoist_smem_loads::run },
    Pass { name: "complete-carried", summary: "wait for what is there already", run: complete_carried::run },
    Pass { name: "tile-scheduler", summary: "assign tiles to CTAs", run: tile_scheduler::run },
    Pass { name: "allot-registers", summary: "share the register file out", run: allot_registers::run },
    Pass { name: "multicast", summary: "load common tiles once for a cluster", run: multicast::run },
    Pass { name: "fence-reads", summary: "fence what threads read of rings that TMA fills", run: fence_reads::run },
    Pass { name: "finish", summary: "settle names, and refuse what does not fit memory", run: finish::run },
];

/// The warp program of a kernel.
///
/// # Errors
/// When an operation of the kernel is not known, or the buffers do not fit shared or tensor memory.
pub fn lower(kernel: &Kernel, loops: &[ScheduledLoop<'_>], options: &Options) -> Result<WarpProgram, Error> {
    lower_observed(kernel, loops, options, &mut |_, _| {})
}

/// [`lower`], with a look at the program after each pass. Where a first program does not fit or would deadlock, the passes run
/// again, and are seen again.
///
/// # Errors
/// As [`lower`].
pub fn lower_observed(
    kernel: &Kernel,
    loops: &[ScheduledLoop<'_>],
    options: &Options,
    after: &mut dyn FnMut(&Pass, &WarpProgram),
) -> Result<WarpProgram, Error> {
    // Loops may have buffers in common, each with others beside them.
    if let ([_], true) = (loops, options.shared_barriers)
        && let Ok(checked) = lower_with_fallbacks(kernel, loops, options, after).and_then(Lowered::check)
    {
        return Ok(checked.into_inner());
    }
    let options = &without_shared_barriers(options);
    let program = lower_with_fallbacks(kernel, loops, options, after)?.into_program();
    if has_pingpong(&program) && matches!(check(program.clone()), Err(Error::Protocol { .. })) {
        return Ok(lower_with_fallbacks(kernel, loops, &without_pingpong(options), after)?.into_program());
    }
    Ok(program)
}

/// [`lower`], with the proof that its barriers are enough ([`verify`](mod@crate::verify)).
///
/// # Errors
/// As [`lower`] and [`check`].
pub fn lower_checked(kernel: &Kernel, loops: &[ScheduledLoop<'_>], options: &Options) -> Result<Checked, Error> {
    let lower = |options: &Options| lower_with_fallbacks(kernel, loops, options, &mut |_, _| {});
    // Loads that share barriers start together: not all rings, and not all orders of iterations, allow for that.
    if let ([_], true) = (loops, options.shared_barriers)
        && let Ok(checked) = lower(options).and_then(Lowered::check)
    {
        return Ok(checked);
    }
    let options = &without_shared_barriers(options);
    let lowered = lower(options)?;
    let has_pingpong = has_pingpong(lowered.program());
    match lowered.check() {
        Err(Error::Protocol { .. }) if has_pingpong => lower(&without_pingpong(options))?.check(),
        checked => checked,
    }
}

/// A program, with its proof where it took one to choose it.
#[allow(clippy::large_enum_variant, reason = "there is one of them at a time")]
enum Lowered {
    Open(WarpProgram),
    Proved(Checked),
}

impl Lowered {
    fn program(&self) -> &WarpProgram {
        match self {
            Lowered::Open(program) => program,
            Lowered::Proved(checked) => checked,
        }
    }

    fn into_program(self) -> WarpProgram {
        match self {
            Lowered::Open(program) => program,
            Lowered::Proved(checked) => checked.into_inner(),
        }
    }

    fn check(self) -> Result<Checked, Error> {
        match self {
            Lowered::Open(program) => check(program),
            Lowered::Proved(checked) => Ok(checked),
        }
    }
}

/// Whether groups alternate on the tensor core. Ping-pong has one order; where groups hand off results in another, they would
/// deadlock.
fn has_pingpong(program: &WarpProgram) -> bool {
    !program.named_barriers.is_empty()
}

fn without_shared_barriers(options: &Options) -> Options {
    Options { shared_barriers: false, ..options.clone() }
}

fn without_shorter_pipelines(options: &Options) -> Options {
    Options { shorter_pipelines: false, ..options.clone() }
}

fn without_pingpong(options: &Options) -> Options {
    Options { pingpong: false, ..options.clone() }
}

fn lower_with_fallbacks(
    kernel: &Kernel,
    loops: &[ScheduledLoop<'_>],
    options: &Options,
    after: &mut dyn FnMut(&Pass, &WarpProgram),
) -> Result<Lowered, Error> {
    let mut error = None;
    for fallback in SmemFallback::all(options) {
        match lower_few_trips(kernel, loops, options, fallback, after) {
            Err(too_large @ Error::SharedMemory { .. }) => error = error.or(Some(too_large)),
            // With fewer slots than the schedule counts on, groups may deadlock.
            Ok(Lowered::Open(program)) if fallback.fewer_slots > 0 && check(program.clone()).is_err() => {}
            other => return other,
        }
    }
    Err(error.unwrap_or(Error::SharedMemory { needed: 0, available: options.shared_bytes }))
}

/// With shorter pipelines for few trips where they are proved; all else is as it would be without. They start loads in another
/// order than the schedule, which other groups may not allow for.
fn lower_few_trips(
    kernel: &Kernel,
    loops: &[ScheduledLoop<'_>],
    options: &Options,
    fallback: SmemFallback,
    after: &mut dyn FnMut(&Pass, &WarpProgram),
) -> Result<Lowered, Error> {
    let builder = KernelBuilder::new(kernel, loops, options, fallback)?;
    let has_shorter = builder.loops.iter().any(|one| one.program.warps.iter().any(|warp| warp.shorter.is_some()));
    if !has_shorter {
        return run_passes(not_too_long(builder)?, after).map(Lowered::Open);
    }
    if let Ok(checked) = not_too_long(builder).and_then(|builder| run_passes(builder, after)).and_then(check) {
        return Ok(Lowered::Proved(checked));
    }
    let options = without_shorter_pipelines(options);
    run_passes(not_too_long(KernelBuilder::new(kernel, loops, &options, fallback)?)?, after).map(Lowered::Open)
}

/// The same builder, if Triton and ptxas get done with what it makes.
fn not_too_long(builder: KernelBuilder<'_>) -> Result<KernelBuilder<'_>, Error> {
    let groups = builder.loops.iter().flat_map(|one| &one.program.warps);
    let steps = groups.map(|group| group.length() as u64).sum();
    if steps > MOST_STEPS { Err(Error::TooLong { steps, most: MOST_STEPS }) } else { Ok(builder) }
}

fn run_passes(
    mut builder: KernelBuilder<'_>,
    after: &mut dyn FnMut(&Pass, &WarpProgram),
) -> Result<WarpProgram, Error> {
    for pass in PASSES {
        (pass.run)(&mut builder)?;
        debug_assert_eq!(well_formed(&builder.program), Ok(()), "after {}", pass.name);
        after(pass, &builder.program);
    }
    Ok(builder.program)
}
