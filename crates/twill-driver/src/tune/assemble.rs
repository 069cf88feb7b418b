//! Which of several schedules of one interval is taken: the one whose assembled machine code takes the fewest cycles.

use super::assembler::{Assembled, Assembler};
use super::candidate::{Attempt, Candidate};
use super::score::repeating;
use super::thresholds::THRESHOLDS;
use super::{CompileOptions, Which, variants};
use crate::{Error, Request, Session, Source, TopOptions};
use twill_graph::saturate;

/// The kernel of another schedule of the least interval that takes fewer cycles by its SASS estimate, if there is one, among
/// `options.candidates` in all, or among four where nothing was requested and its own takes far longer than its interval, is short of
/// registers, or was chosen by simulation of the warp programs alone. MMAs that run one by one come last, whatever they take, and
/// before them kernels that spill.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem.
pub(super) fn faster(
    request: &Request,
    options: &CompileOptions,
    first: &mut Candidate,
    source: &Source,
    assembler: &Assembler,
    session: &mut Session<'_>,
) -> Result<Option<Candidate>, Error> {
    let Some(own) = cycles(first).filter(|_| !first.is_compared) else { return Ok(None) };
    let bounds: Vec<u32> = first.lowered.program.loops.iter().map(|one| saturate(one.interval)).collect();
    let is_far = own.2 as f64 > THRESHOLDS.far * repeating(&first.lowered.program, &bounds) as f64;
    let is_asked = is_far || first.by_simulation || first.is_short_of_registers();
    let most = options.candidates.unwrap_or(if is_asked { THRESHOLDS.unrequested } else { 1 });
    if most < 2 || session.is_over() {
        return Ok(None);
    }
    if options.schedule != Which::Optimal {
        if options.candidates.is_some() {
            session.observer.note("note: the schedule to compare with is the only one of its kind");
        }
        return Ok(None);
    }
    first.is_compared = true;
    let mut best = None;
    let mut least = (own.0, own.1, (own.2 as f64 * (1.0 - THRESHOLDS.margin)) as u64);
    let mut others = others(request, options, first, source, most, session)?;
    others.retain(|candidate| candidate.lowered.source != first.lowered.source);
    if session.is_stopped() {
        return Ok(None);
    }
    let files: Vec<_> = others.iter().map(|candidate| candidate.files_like(first)).collect();
    let assembled = assembler.run_all(&files, &request.input.name);
    if session.is_stopped() {
        return Ok(None);
    }
    for (number, (mut candidate, assembled)) in (2..).zip(others.into_iter().zip(assembled)) {
        match assembled {
            Ok(Assembled::Report(assembly)) => candidate.assembly = Some(assembly),
            Ok(Assembled::Impossible(_)) => break,
            Err(error) => {
                session.observer.note(&format!("schedule {number}: {error}"));
                continue;
            }
        }
        let Some(own) = cycles(&candidate) else { continue };
        session.observer.note(&format!("schedule {number}: {} cycles by SASS estimate", own.2));
        if own < least {
            candidate.is_compared = true;
            (best, least) = (Some(candidate), own);
        }
    }
    Ok(best)
}

/// Kernels of other schedules, with the first N in all: of one loop those that [`top`](crate::top) finds, of several those
/// whose MMAs start together.
fn others(
    request: &Request,
    options: &CompileOptions,
    first: &mut Candidate,
    source: &Source,
    most: u32,
    session: &mut Session<'_>,
) -> Result<Vec<Candidate>, Error> {
    if first.lowered.program.loops.len() > 1 {
        let mut others = std::mem::take(&mut first.others);
        if others.is_empty() && options.candidates.is_some() {
            session.observer.note("note: of these loops no other schedules were found to compare with");
        }
        others.truncate(most as usize - 1);
        return Ok(others);
    }
    let requested = TopOptions { most: most as usize, within: 0.0 };
    let found = variants::others(request, options, source, requested, session)?;
    let made = found.into_iter().filter_map(|other| match other.attempt {
        Ok(Attempt::Made(candidate)) => Some(*candidate),
        _ => None,
    });
    Ok(made.collect())
}

/// MMAs that run one by one, whether registers do not suffice, and cycles of an iteration of the loops that repeat; `None` where machine code is not simulated, or cannot be launched.
fn cycles(candidate: &Candidate) -> Option<(usize, bool, u64)> {
    candidate.assembly.as_ref().filter(|assembly| !assembly.is_unusable())?;
    let cycles = candidate.sass_estimate();
    (!cycles.is_empty()).then(|| {
        (candidate.cost().serial, candidate.is_short_of_registers(), repeating(&candidate.lowered.program, &cycles))
    })
}
