//! What is tried where a kernel has no schedule within the registers of its warp groups.
//!
//! A thread of one group of eight warps holds half of what one of four holds, so that is tried first. What does not fit then is
//! taken to be spilled: threads have a multiple of their registers.

use crate::{Content, DEFAULT_MACHINE, Limits, Request};
use twill_graph::{MultiLoopReport, Outcome, Report, Status};
use twill_machine::Machine;

/// Warps of the only compute group, where four do not hold its values.
pub(crate) const MORE_WARPS: u32 = 8;

/// Multiples of the registers of a thread that are tried in turn.
const MULTIPLES: [u32; 4] = [1, 2, 4, 16];

/// The requests to try in turn where this one has no schedule, with what is to be said of each; none where it limits what a
/// schedule may use, where it is no kernel, or where MMAs leave their results in tensor memory.
pub(crate) fn relaxed(request: &Request) -> Vec<(Request, String)> {
    let Limits { compute_groups, registers_per_thread, compute_warps, register_multiple, .. } = request.limits;
    let is_limited = compute_groups.is_some() || registers_per_thread.is_some() || compute_warps.is_some();
    if is_limited || register_multiple != 1 || !is_kernel_for_hopper(request) {
        return Vec::new();
    }
    let with = |limits: Limits, what: String| (Request { limits, ..request.clone() }, what);
    let times = |multiple: u32| format!("{multiple} times the registers, of which those beyond the file are spilled");
    let one_group = MULTIPLES.map(|register_multiple| {
        let (compute_groups, compute_warps) = (Some(1), Some(MORE_WARPS));
        let limits = Limits { compute_groups, compute_warps, register_multiple, ..request.limits.clone() };
        let what = format!("one compute group of {MORE_WARPS} warps");
        with(limits, if register_multiple == 1 { what } else { format!("{what} and {}", times(register_multiple)) })
    });
    let wider = MULTIPLES[1..].iter().map(|&register_multiple| {
        with(Limits { register_multiple, ..request.limits.clone() }, times(register_multiple))
    });
    one_group.into_iter().chain(wider).collect()
}

fn is_kernel_for_hopper(request: &Request) -> bool {
    let machine = request.lowering.machine.clone().or_else(|| Machine::builtin(DEFAULT_MACHINE).ok());
    let is_hopper = machine.is_some_and(|machine| machine.architecture().trim_end_matches('a') == "sm_90");
    is_hopper && matches!(request.input.content, Content::Kernel(_))
}

/// Why a request that has no schedule is relaxed.
pub(crate) fn reason(status: Status) -> &'static str {
    match status {
        Status::Infeasible => "no schedule exists for the machine's warp groups: proved",
        _ => "no schedule was found in time",
    }
}

/// Whether limits are those of another machine, of which nothing that is proved holds for the one that was asked for.
pub(crate) fn is_relaxed(limits: &Limits) -> bool {
    limits.compute_warps.is_some() || limits.register_multiple != 1
}

/// The same without what was proved.
pub(crate) fn without_proof<S>(report: Report<S>) -> Report<S> {
    Report { outcome: feasible(report.outcome), wider_bound: None, ..report }
}

/// The same of several loops.
pub(crate) fn without_proof_of_loops<S>(report: MultiLoopReport<S>) -> MultiLoopReport<S> {
    let loops = report.loops.into_iter().map(without_proof).collect();
    MultiLoopReport { outcome: feasible(report.outcome), loops, ..report }
}

fn feasible<S>(outcome: Outcome<S>) -> Outcome<S> {
    match outcome {
        Outcome::Optimal { schedule } => Outcome::Feasible { schedule },
        other => other,
    }
}
