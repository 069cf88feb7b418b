//! Shared memory that the compiler takes besides the program's buffers: scratch to convert layouts, to reduce, to multiply at once.
//!
//! It is known when a kernel is assembled. Where it is too much, the kernel is scheduled again with so much less, and what cannot
//! be launched is no result.

use super::assembler::Assembler;
use super::candidate::Candidate;
use super::thresholds::THRESHOLDS;
use super::{CompileOptions, Made, pipelined};
use crate::{Error, Request, Session};
use twill_exact::{Budget, SearchOptions};
use twill_graph::{Bytes, grouped};
use twill_machine::Machine;

/// A kernel that takes more shared memory than a thread block can have.
pub(super) struct Oversized {
    machine: Machine,
    /// Bytes that it takes.
    needed: u64,
    /// Bytes of its buffers.
    buffers: u64,
}

impl Oversized {
    /// Of a candidate that was assembled; none where it fits, or nothing is known of its machine code.
    pub(super) fn of(candidate: &Candidate) -> Option<Oversized> {
        let needed = candidate.assembly.as_ref().filter(|assembly| assembly.is_too_large())?.shared_memory;
        let buffers = candidate.lowered.program.shared_bytes();
        Some(Oversized { machine: candidate.spec.machine.clone(), needed, buffers })
    }

    /// Bytes that the compiler takes besides buffers.
    fn scratch(&self) -> u64 {
        self.needed.saturating_sub(self.buffers)
    }

    /// Bytes that it leaves for buffers, of the machine's.
    pub(super) fn room(&self) -> u64 {
        self.machine.resources().shared_memory.0.saturating_sub(self.scratch())
    }
}

/// The best kernel with a pipeline that fits shared memory.
///
/// # Errors
/// As [`pipelined`], and where none fits.
pub(super) fn pipelined_that_fits(
    request: &Request,
    options: &CompileOptions,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Made, Error> {
    let mut oversized = match pipelined(request, options, assembler, session)? {
        Made::Oversized(oversized) => oversized,
        made => return Ok(made),
    };
    let machine = oversized.machine.clone();
    let available = machine.resources().shared_memory.0;
    let work = session.search.budget.work.map_or(THRESHOLDS.later_work, |work| work.min(THRESHOLDS.later_work));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let later = SearchOptions { budget, ..session.search.clone() };
    let mut session = session.with(later);
    for _ in 0..THRESHOLDS.smaller {
        if session.is_over() {
            break;
        }
        let room = available.saturating_sub(oversized.scratch());
        session.observer.note(&format!(
            "the compiler takes {} bytes of shared memory besides buffers, which is too much: the next schedule may take {}",
            grouped(oversized.scratch()),
            grouped(room)
        ));
        let mut smaller = request.clone();
        smaller.lowering.machine = Some(machine.clone().with_shared_memory(Bytes(room)));
        match pipelined(&smaller, options, assembler, &mut session)? {
            Made::Oversized(again) => oversized = again,
            made => return Ok(made),
        }
    }
    let error = Box::new(twill_codegen::Error::SharedMemory { needed: oversized.needed, available });
    Err(Error::Emit { input: request.input.name.clone(), error })
}
