//! Live values in tensor memory fit its columns in every slot.

use super::registers::values;
use crate::encoding::storage::Pool;
use crate::encoding::{Candidate, Encoding};
use twill_graph::Storage;
use twill_graph::proof::Pool as Room;

pub(super) fn prepare(e: &mut Encoding) {
    let items = values(e, |storage| match storage {
        Storage::Tensor(columns) => Some(columns.0),
        Storage::None | Storage::Registers(_) | Storage::Shared(_) => None,
    });
    e.storage.tensor = Pool::new(Room::Tensor, items, e.problem.resources().tensor_memory.0);
}

pub(super) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let mut pool = std::mem::take(&mut e.storage.tensor);
    let base = e.problem.graph().reserved().tensor.0;
    let events = pool.overfull(e, candidate, |_| true, pool.capacity, base);
    for &event in &events {
        let terms = pool.terms(e, event, false);
        let reason = pool.overfull_at(event);
        e.engine.at_most(&[], terms, pool.capacity.saturating_sub(base), reason);
    }
    e.storage.tensor = pool;
    !events.is_empty()
}

/// Columns in use at most, with those reserved.
pub(crate) fn peak(e: &Encoding, candidate: &Candidate) -> u64 {
    e.problem.graph().reserved().tensor.0 + e.storage.tensor.peak(e, candidate, |_| true)
}
