//! Which of several schedules of one interval is taken: the one whose machine code takes the fewest cycles.

use super::candidate::{Attempt, Candidate};
use super::timed::repeating;
use super::{Assembled, Assembler, CompileOptions, Which};
use crate::{Error, Request, Session, Source, TopOptions};

/// How much faster, in part, another kernel must be than the first: simulations of two kernels are not apart by less when one
/// of them is. Without it attention backward lost 3 % on an H200.
const MARGIN: f64 = 0.02;

/// How much longer than its interval the machine code of a schedule takes before others are looked at unasked. On an H200 those of
/// attention with head dimension 64 take twice as long, and the fastest of four is 12 % faster in the backward pass and 15 % in the
/// forward pass; where the first takes up to 1.6 times its interval, none is more than 2 % faster
/// (`bench/results/order.md`).
const FAR: f64 = 1.6;

/// Schedules that are looked at then, and where a simulation of the warp programs chose among several: on an H200 it chose one for
/// the causal attention of Triton's tutorial that is 7 % slower than another (`bench/results/calibration.md`).
const UNREQUESTED: u32 = 4;

/// The candidate, or the kernel of another schedule of the least interval that takes fewer cycles as assembled, among
/// `options.candidates` in all, or among four where nothing was requested and its own takes far longer than its interval, or was chosen
/// by simulation of the warp programs alone. MMAs that run one by one come last, whatever they take.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem.
pub(super) fn choose(
    request: &Request,
    options: &CompileOptions,
    first: Candidate,
    source: &Source,
    assembler: &Assembler,
    session: &mut Session<'_>,
) -> Result<Candidate, Error> {
    let Some(own) = cycles(&first) else { return Ok(first) };
    let bounds: Vec<u32> =
        first.program.loops.iter().map(|one| u32::try_from(one.interval).unwrap_or(u32::MAX)).collect();
    let is_far = own.1 as f64 > FAR * repeating(&first.program, &bounds) as f64;
    let most = options.candidates.unwrap_or(if is_far || first.by_simulation { UNREQUESTED } else { 1 });
    if most < 2 || session.is_stopped() {
        return Ok(first);
    }
    if options.schedule != Which::Optimal {
        if options.candidates.is_some() {
            session.observer.note("note: the schedule to compare with is the only one of its kind");
        }
        return Ok(first);
    }
    let mut best = first;
    let mut least = (own.0, (own.1 as f64 * (1.0 - MARGIN)) as u64);
    for (number, mut candidate) in (2..).zip(others(request, options, &mut best, source, most, session)?) {
        if candidate.source == best.source {
            continue;
        }
        match assembler.run(&candidate.files(), &request.input.name) {
            _ if session.is_stopped() => break,
            Ok(Assembled::Report(assembly)) => candidate.assembly = Some(assembly),
            Ok(Assembled::Impossible(_)) => break,
            Err(error) => {
                session.observer.note(&format!("schedule {number}: {error}"));
                continue;
            }
        }
        let Some(own) = cycles(&candidate) else { continue };
        session.observer.note(&format!("schedule {number}: {} cycles by SASS estimate", own.1));
        if own < least {
            (best, least) = (candidate, own);
        }
    }
    Ok(best)
}

/// Kernels of other schedules, with the first so many in all: of one loop those that [`top`](crate::top) finds, of several those
/// whose MMAs start together.
fn others(
    request: &Request,
    options: &CompileOptions,
    first: &mut Candidate,
    source: &Source,
    most: u32,
    session: &mut Session<'_>,
) -> Result<Vec<Candidate>, Error> {
    if first.program.loops.len() > 1 {
        let mut others = std::mem::take(&mut first.others);
        if others.is_empty() && options.candidates.is_some() {
            session.observer.note("note: of these loops no other schedules were found to compare with");
        }
        others.truncate(most as usize - 1);
        return Ok(others);
    }
    let requested = TopOptions { most: most as usize, within: 0.0 };
    let found = Candidate::others(request, options, source, requested, session)?;
    let made = found.into_iter().filter_map(|other| match other.attempt {
        Ok(Attempt::Made(candidate)) => Some(*candidate),
        _ => None,
    });
    Ok(made.collect())
}

/// MMAs that run one by one, and cycles of an iteration of the loops that repeat; `None` where machine code is not simulated.
fn cycles(candidate: &Candidate) -> Option<(usize, u64)> {
    let cycles = candidate.sass_estimate();
    (!cycles.is_empty()).then(|| (candidate.cost().0, repeating(&candidate.program, &cycles)))
}
