//! Warp programs with the first options that fit, their barriers proved, in rings as deep as their loads take to come.

use super::score::{repeating, simulated};
use super::thresholds::THRESHOLDS;
use crate::Source;
use twill_backend::package::Simulated;
use twill_codegen::ir::{Op, WarpProgram, any};
use twill_codegen::{Checked, Options, ScheduledLoop, lower_checked};
use twill_graph::saturate;

/// The warp programs with the first options that fit shared memory, and what they take by simulation. Where `may_deepen`, rings
/// have more slots than the options ask for as long as the simulation gains by it, and one more for loads that take longer: with
/// few slots small tiles wait for memory, as a load is not issued before a slot is free. On an H200, GEMM on tiles of
/// 128 × 128 × 64 takes 2.85 M cycles with three slots, 2.19 with four, 2.16 with five (`bench/results/order.md`).
pub(super) fn emit(
    source: &Source,
    loops: &[ScheduledLoop<'_>],
    options: &[Options],
    may_deepen: bool,
) -> Result<(Checked, Option<Simulated>), twill_codegen::Error> {
    let (options, program) = first_that_fits(source, loops, options)?;
    let with = |ring_depth| {
        // What does not fit now does not fit with more slots.
        let program = lower_checked(&source.kernel, loops, &Options { ring_depth, ..options.clone() }).ok()?;
        let simulated = simulated(&program, &source.lowered, &source.machine)?;
        Some((ring_depth, simulated, program))
    };
    let intervals: Vec<u32> = program.loops.iter().map(|one| saturate(one.interval)).collect();
    let bound = repeating(&program, &intervals);
    let cycles = |program: &WarpProgram, simulated: &Simulated| repeating(program, &simulated.iterations);
    let Some(simulated) = simulated(&program, &source.lowered, &source.machine) else {
        let may_deepen = may_deepen && threads_copy(&program);
        return Ok((if may_deepen { copied_ahead(source, loops, options, program) } else { program }, None));
    };
    let mut best = (options.ring_depth, simulated, program);
    if may_deepen {
        for deeper in options.ring_depth + 1..=THRESHOLDS.deepest_ring {
            if cycles(&best.2, &best.1) <= bound {
                break;
            }
            let Some(found) = with(deeper) else { break };
            if (cycles(&found.2, &found.1) as f64) < cycles(&best.2, &best.1) as f64 * (1.0 - THRESHOLDS.ring_gain) {
                best = found;
            }
        }
        if best.0 > options.ring_depth {
            best = with(best.0 + 1).unwrap_or(best);
        }
        // What threads copy comes later than what TMA copies, and of either the simulation knows how long it takes out of L2.
        if threads_copy(&best.2) && best.0 < THRESHOLDS.copied_ring {
            let deeper = (best.0 + 1..=THRESHOLDS.copied_ring).rev().find_map(with);
            let is_no_slower = |(_, simulated, program): &(u32, Simulated, Checked)| {
                cycles(program, simulated) <= cycles(&best.2, &best.1)
            };
            best = deeper.filter(is_no_slower).unwrap_or(best);
        }
    }
    Ok((best.2, Some(best.1)))
}

/// The program with rings as deep as those that threads copy to are to be, where there is room.
fn copied_ahead(source: &Source, loops: &[ScheduledLoop<'_>], options: &Options, program: Checked) -> Checked {
    let with = |ring_depth| lower_checked(&source.kernel, loops, &Options { ring_depth, ..options.clone() }).ok();
    (options.ring_depth + 1..=THRESHOLDS.copied_ring).rev().find_map(with).unwrap_or(program)
}

/// Whether threads copy tiles asynchronously.
fn threads_copy(program: &WarpProgram) -> bool {
    program.groups.iter().any(|group| any(&group.body, |op| matches!(op, Op::CpAsync { .. })))
}

fn first_that_fits<'a>(
    source: &Source,
    loops: &[ScheduledLoop<'_>],
    options: &'a [Options],
) -> Result<(&'a Options, Checked), twill_codegen::Error> {
    let (mut least, mut refused): (Option<(u64, u64)>, _) = (None, None);
    for options in options {
        match lower_checked(&source.kernel, loops, options) {
            Err(twill_codegen::Error::SharedMemory { needed, available }) => {
                least = Some(least.map_or((needed, available), |before| before.min((needed, available))));
            }
            // Not every result can be made by parts.
            Err(error) if options.shares.epilogue_subtile.is_some() => refused = Some(error),
            other => return Ok((options, other?)),
        }
    }
    if let (None, Some(refused)) = (least, refused) {
        return Err(refused);
    }
    let (needed, available) = least.unwrap_or_default();
    Err(twill_codegen::Error::SharedMemory { needed, available })
}
