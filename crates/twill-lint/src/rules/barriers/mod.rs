//! Barriers in shared memory: counts and expected bytes, as far as the text says them.
//!
//! PTX ISA, "mbarrier": a phase completes when the pending count of arrivals and the transaction count are zero, and a wait names
//! the parity of its phase. In machine code `SYNCS.EXCH.64` initialises one, `SYNCS.ARRIVE.TRANS64` arrives and expects bytes, and
//! `SYNCS.PHASECHK` waits.

mod bytes;
mod count;
mod facts;

use crate::finding::Finding;
use crate::program::Program;
pub use facts::{Facts, Kind as UseKind, Use};

/// Finds barriers that cannot complete as they are used; and how much of them could be read off.
pub fn check(program: &Program) -> (Vec<Finding>, Facts) {
    let facts = Facts::of(program);
    let mut findings = count::check(program, &facts);
    findings.extend(bytes::check(program, &facts));
    (findings, facts)
}
