//! Kernels of other schedules than the best, to be timed.

use super::assembler::{Assembled, Assembler};
use super::candidate::Attempt;
use super::{CompileOptions, GeneratedKernel, variants};
use crate::{Content, Error, Request, Session, TopOptions};

/// A kernel of another schedule.
#[derive(Clone, Debug)]
pub struct OtherKernel {
    /// The kernel.
    pub kernel: GeneratedKernel,
    /// In what its schedule differs from the best, in words, the most important first.
    pub differences: Vec<String>,
}

/// Kernels of the schedules after the best (see [`top`](crate::top)), each with the options that [`compile`](super::compile)
/// takes for its first attempt; no schedule is made again. Left out, with a note, are schedules that no code can be
/// generated for, and those whose code is that of one before: `best` is what `compile` gave.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem or has several loops, or the assembler that was asked for does not work.
pub fn others(
    request: &Request,
    options: &CompileOptions,
    top: TopOptions,
    best: &GeneratedKernel,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Vec<OtherKernel>, Error> {
    if !matches!(request.input.content, Content::Kernel(_)) {
        return Err(Error::NoSource { input: request.input.name.clone() });
    }
    let Some(source) = crate::source(request)? else { return Ok(Vec::new()) };
    let mut assembler = assembler;
    let mut sources: Vec<String> =
        ["kernel.py", "kernel.cu"].iter().find_map(|name| best.files.get(*name)).cloned().into_iter().collect();
    let mut others = Vec::new();
    for (number, other) in (2..).zip(variants::others(request, options, &source, top, session)?) {
        let mut candidate = match other.attempt {
            Ok(Attempt::Made(candidate)) => *candidate,
            Ok(Attempt::Nothing(_)) => continue,
            Err(error) => {
                session.observer.note(&format!("schedule {number}: {error}"));
                continue;
            }
        };
        if sources.contains(&candidate.lowered.source) {
            session.observer.note(&format!("schedule {number}: the same kernel as one before"));
            continue;
        }
        sources.push(candidate.lowered.source.clone());
        if let Some(found) = assembler {
            match found.run(&candidate.files(), &request.input.name)? {
                _ if session.is_stopped() => break,
                Assembled::Report(assembly) => candidate.assembly = Some(assembly),
                // It was said of the best.
                Assembled::Impossible(_) => assembler = None,
            }
        }
        let kernel = GeneratedKernel::of(&candidate, source.machine.name());
        others.push(OtherKernel { kernel, differences: other.differences });
    }
    Ok(others)
}
