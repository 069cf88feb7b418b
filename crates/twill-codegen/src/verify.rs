//! The seal without which no code is printed.

mod arrivals;
mod cluster;
mod copies;
mod early_returns;
mod enclosing_loops;
mod protocol;
mod registers;
mod structure;
mod value_numbers;

use crate::error::Error;
use crate::ir::Detail;
use crate::ir::WarpProgram;
use std::ops::Deref;
pub use structure::well_formed;
use twill_check::protocol::{Limits, Proof, ProtocolError, verify};
use web_time::Instant;

/// Warp programs of a kernel whose barriers are proved to be enough, in whatever order groups and asynchronous units
/// work. Only [`check`] makes one, and the emitters take nothing else.
#[derive(Clone, Debug)]
pub struct Checked {
    program: WarpProgram,
    proof: Proof,
    seconds: f64,
}

impl Checked {
    /// What was looked at.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Seconds that the proof took.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The same program, made to record the time of the last iterations of a tile: its timestamps are no synchronisation, so that
    /// what is proved of its barriers holds.
    #[must_use]
    pub fn traced(&self, iterations: u32, detail: Detail) -> Checked {
        let mut program = self.program.clone();
        program.record(iterations, detail);
        Checked { program, proof: self.proof, seconds: self.seconds }
    }

    /// Breaks the seal.
    pub fn into_inner(self) -> WarpProgram {
        self.program
    }
}

impl Deref for Checked {
    type Target = WarpProgram;

    fn deref(&self) -> &WarpProgram {
        &self.program
    }
}

/// Proves that the barriers of a kernel are enough (docs/codegen.md), and that groups wait for their MMAs before they use
/// the results.
///
/// # Errors
/// [`Error::Protocol`] with a run that goes wrong, or [`Error::NotProved`] where neither a proof nor such a run was found.
pub fn check(program: WarpProgram) -> Result<Checked, Error> {
    let started = Instant::now();
    registers::check(&program)?;
    arrivals::check(&program)?;
    copies::check(&program)?;
    match verify(&program.system()?, &Limits::default()) {
        Ok(verified) => Ok(Checked { proof: verified.proof(), program, seconds: started.elapsed().as_secs_f64() }),
        Err(ProtocolError::Violated(found)) => Err(Error::Protocol { counterexample: found.to_string() }),
        Err(error @ ProtocolError::Malformed { .. }) => Err(Error::Protocol { counterexample: error.to_string() }),
        Err(error) => Err(Error::NotProved { why: error.to_string() }),
    }
}
