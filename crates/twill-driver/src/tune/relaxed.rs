//! The first kernel of a request that has no schedule within the machine's registers.

use super::candidate::{Attempt, Candidate};
use super::thresholds::THRESHOLDS;
use super::{Assembler, CompileOptions, Language, Which, rules, variants};
use crate::relax;
use crate::{Error, Request, Session, Source};
use twill_exact::{Budget, SearchOptions};
use twill_graph::Status;

/// What was tried in the end.
pub(super) struct Relaxed {
    pub(super) request: Request,
    pub(super) options: CompileOptions,
    pub(super) first: Candidate,
}

/// The first of the [relaxed requests](relax::relaxed) that becomes a kernel; none where none does. `status` is that of the request.
///
/// # Errors
/// Where no schedule would help.
pub(super) fn first(
    request: &Request,
    options: &CompileOptions,
    source: &Source,
    status: Status,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Option<Relaxed>, Error> {
    if options.schedule != Which::Optimal {
        return Ok(None);
    }
    // What was searched in vain for all of its time is not searched so again.
    let most = if status == Status::Infeasible { THRESHOLDS.later_work } else { crate::answer::GRACE_WORK };
    let work = session.search.budget.work.map_or(most, |work| work.min(most));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let mut session = session.with(SearchOptions { budget, ..session.search.clone() });
    let mut refused = None;
    for (request, what) in relax::relaxed(request) {
        let warps = request.limits.compute_warps;
        // What is not written with eight warps is not tried with more registers for each of them.
        // Who has another kernel has a faster one than one that spills.
        if !options.in_order && request.limits.register_multiple != 1 {
            continue;
        }
        if session.is_stopped() || (warps.is_some() && (options.language() != Language::Gluon || refused.is_some())) {
            continue;
        }
        let mut options = options.clone();
        options.shares.compute_warps = warps;
        match variants::first(&request, &options, source, assembler, &mut session) {
            Ok(Attempt::Made(first)) if warps.is_none() || rules::is_wide(&first.lowered.program) => {
                session.observer.note(&format!("{}; this one takes {what}", relax::reason(status)));
                return Ok(Some(Relaxed { request, options, first: *first }));
            }
            Ok(_) => (),
            Err(error) if error.excess().is_none() && warps.is_some() => refused = Some(error),
            Err(error) if error.excess().is_none() => return Err(error),
            Err(error) => session.observer.note(&format!("with {what}: {error}")),
        }
    }
    refused.map_or(Ok(None), Err)
}
