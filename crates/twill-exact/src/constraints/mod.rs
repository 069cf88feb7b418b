//! The constraints of docs/model.md, one a file: its statement and its clauses. The checker's side
//! of each stands in `twill-check` under the same name.

pub(crate) mod assignment;
pub(crate) mod bandwidth;
pub(crate) mod channels;
pub(crate) mod concurrency;
pub(crate) mod cumulative;
pub(crate) mod dependence;
pub(crate) mod exclusive;
pub(crate) mod handoff;
pub(crate) mod registers;
pub(crate) mod resource;
pub(crate) mod shared_memory;
pub(crate) mod symmetry;
pub(crate) mod tensor_memory;

use crate::encoding::{Candidate, Encoding};
use twill_graph::Family;

/// Encodes what is encoded at once, and prepares the rest.
pub(crate) fn encode(e: &mut Encoding) {
    if e.has(Family::Resource) {
        resource::encode(e);
    }
    if e.common.is_none() && e.sub_tiles_in_order {
        symmetry::encode(e);
    }
    if e.question.joint() {
        assignment::encode(e);
        if e.has(Family::Handoff) {
            handoff::encode(e);
        }
        if !e.engine.is_logged() {
            channels::encode(e); // the objective's alone
        }
        if e.has(Family::Exclusive) {
            exclusive::encode(e);
        }
        if e.has(Family::Concurrency) {
            concurrency::encode(e);
        }
        registers::prepare(e);
        shared_memory::prepare(e);
        tensor_memory::prepare(e);
    }
}

/// Adds clauses against what a candidate breaks; `false` when it breaks nothing.
pub(crate) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let mut broken = e.has(Family::Resource) && resource::refine(e, candidate);
    broken |= e.has(Family::TensorMemory) && tensor_memory::refine(e, candidate);
    broken |= e.has(Family::SharedMemory) && shared_memory::refine(e, candidate);
    broken |= e.has(Family::Registers) && registers::refine(e, candidate);
    broken |= handoff::refine(e, candidate);
    broken
}

#[cfg(test)]
mod tests;
