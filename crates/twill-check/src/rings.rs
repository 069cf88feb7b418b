//! Rings: every streaming load into shared memory has one, with slots of its size and exactly as
//! many as are taken at once.
//!
//! A load runs ahead, so when it issues says nothing about its slots. A slot is taken from
//! `transfer_latency` cycles before the first reader issues (the load must be under way by then) until
//! the last reader is over; that happens every interval, and the run counts how many slots are
//! taken at once: `⌈(transfer_latency + last − first) / I⌉`. A load that nobody reads has one
//! slot.

use crate::Violation;
use crate::placed::{Placed, amount, completion};
use crate::rejected::Violations;
use crate::unroll::most_at_once;
use std::collections::HashMap;
use twill_graph::{OpId, Operation, Ring, Storage};

/// Slots that the ring of `load` needs.
pub(crate) fn slots(placed: &Placed, load: OpId) -> i128 {
    let readers = placed.readers(load);
    let first = readers.iter().map(|d| placed.read_at(d)).min();
    let last = readers.iter().map(|d| placed.read_at(d) + completion(placed.graph().operation(d.to))).max();
    let (Some(first), Some(last)) = (first, last) else { return 1 };
    let under_way = first - i128::from(placed.graph().operation(load).transfer_latency.0);
    most_at_once(load, under_way, last, placed.interval).max(1)
}

fn needs_ring(operation: &Operation) -> bool {
    operation.streaming && matches!(operation.storage, Storage::Shared(_))
}

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let mut listed: HashMap<OpId, &Ring> = HashMap::new();
    for ring in &placed.schedule.rings {
        let operation = placed.graph().operations().get(ring.load.index());
        if !operation.is_some_and(needs_ring) || listed.insert(ring.load, ring).is_some() {
            let load = operation.map_or_else(|| format!("#{}", ring.load.index()), |o| o.name.clone());
            violations.push(Violation::UnusedRing { load });
        }
    }
    for (op, operation) in placed.operations().filter(|(_, o)| needs_ring(o)) {
        let load = || operation.name.clone();
        let Some(ring) = listed.get(&op) else {
            violations.push(Violation::MissingRing { load: load() });
            continue;
        };
        if let Storage::Shared(required) = operation.storage
            && required != ring.bytes
        {
            violations.push(Violation::RingBytes { load: load(), required, given: ring.bytes });
        }
        let required = slots(placed, op);
        if required != i128::from(ring.depth) {
            violations.push(Violation::RingDepth { load: load(), required: amount(required), given: ring.depth });
        }
    }
}
