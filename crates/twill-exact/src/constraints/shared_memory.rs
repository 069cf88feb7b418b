//! Reserved bytes, rings of streaming loads, live values and handoff buffers fit shared memory in
//! every slot.

use super::registers::{Read, kept, values};
use crate::encoding::storage::{Pool, RingLoad, When};
use crate::encoding::{Anchor, Candidate, Encoding, FEW_WRAPS, Stages};
use batsat::Lit;
use std::collections::HashMap;
use twill_graph::proof::{Atom, Item as Name, Pool as Room, Reason};
use twill_graph::saturate;
use twill_graph::{Dependence, OpId, Problem, Storage};

/// Slots of a load's ring: `max(1, ⌈(transfer + last − first) / I⌉)`.
pub(crate) fn ring_depth(problem: &Problem, load: OpId, times: &[i64], interval: i64) -> i64 {
    let graph = problem.graph();
    let issue = |d: &Dependence| times[d.to.index()] + i64::from(d.distance) * interval;
    let first = graph.uses(load).map(issue).min();
    let last = graph.uses(load).map(|d| issue(d) + graph.operation(d.to).completion().0).max();
    let (Some(first), Some(last)) = (first, last) else { return 1 };
    let life = graph.operation(load).transfer_latency.0 + last - first;
    twill_graph::Cycles(life).div_ceil(twill_graph::Cycles(interval)).max(1)
}

pub(super) fn prepare(e: &mut Encoding) {
    let graph = e.problem.graph();
    let mut items = values(e, |storage| match storage {
        Storage::Shared(bytes) => Some(bytes.0),
        Storage::None | Storage::Registers(_) | Storage::Tensor(_) => None,
    });
    items.retain(|item| !graph.operation(item.owner).streaming);
    let handoffs: Vec<Dependence> = e.handoffs().into_iter().map(|d| d.1).collect();
    for u in graph.op_ids() {
        let read = |d: &Dependence| Read {
            by: d.to,
            distance: d.distance,
            until: graph.operation(d.to).completion().0,
            when: When::Apart(u, d.to),
        };
        let reads: Vec<Read> = handoffs.iter().filter(|d| d.from == u).map(read).collect();
        items.extend(kept(e, Name::Buffer(u), u, 4 * graph.operation(u).register_words().0, &reads));
    }
    e.storage.shared = Pool::new(Room::Shared, items, e.problem.resources().shared_memory.0);
    e.storage.rings = graph
        .op_ids()
        .filter_map(|load| match graph.operation(load).storage {
            Storage::Shared(bytes) if graph.operation(load).streaming && bytes.0 > 0 => {
                Some(RingLoad { load, bytes: bytes.0, deeper: HashMap::new() })
            }
            _ => None,
        })
        .collect();
}

pub(super) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let mut pool = std::mem::take(&mut e.storage.shared);
    let mut rings = std::mem::take(&mut e.storage.rings);
    let broken = refine_with(e, candidate, &mut pool, &mut rings);
    e.storage.shared = pool;
    e.storage.rings = rings;
    broken
}

fn refine_with(e: &mut Encoding, candidate: &Candidate, pool: &mut Pool, rings: &mut [RingLoad]) -> bool {
    let capacity = pool.capacity;
    let reserved = e.problem.graph().reserved().shared.0;
    let one_slot_each = rings.iter().fold(reserved, |sum, r| sum.saturating_add(r.bytes));
    let Some(room) = capacity.checked_sub(one_slot_each) else {
        e.engine.clause([], Reason::OverfullRings);
        return true;
    };
    let interval = e.question.interval;
    let problem = e.problem;
    let deeper = |r: &RingLoad| {
        let slots = ring_depth(problem, r.load, &candidate.times, interval) - 1;
        r.bytes.saturating_mul(saturate::<u64>(slots))
    };
    let rings_take = rings.iter().map(deeper).fold(0, u64::saturating_add);
    if rings_take > room {
        let terms = ring_terms(e, rings, candidate, room);
        e.engine.at_most(&[], terms, room, Reason::OverfullRings);
        return true;
    }
    let events = pool.overfull(e, candidate, |_| true, room, rings_take);
    for &event in &events {
        let mut terms = pool.terms(e, event, false);
        terms.extend(ring_terms(e, rings, candidate, room));
        let reason = pool.overfull_at(event);
        e.engine.at_most(&[], terms, room, reason);
    }
    !events.is_empty()
}

/// The bytes of every slot after the first of every ring, up to one more than there is room for; of rings of very many only
/// somewhat more than the candidate has, as deeper ones can be excluded when they come.
fn ring_terms(e: &mut Encoding, rings: &mut [RingLoad], candidate: &Candidate, room: u64) -> Vec<(Lit, u64)> {
    let mut terms = Vec::new();
    for ring in rings {
        let most = saturate::<i64>(room / ring.bytes).saturating_add(2);
        let depth = ring_depth(e.problem, ring.load, &candidate.times, e.question.interval);
        for slots in 2..=most.min(depth.saturating_mul(2).max(FEW_WRAPS)) {
            if e.is_spent_on(slots) {
                break;
            }
            let literal = deeper(e, ring, slots);
            if literal == e.engine.constant(false) {
                break;
            }
            terms.push((literal, ring.bytes));
        }
    }
    terms
}

/// The literal for "the ring has at least `slots` slots".
fn deeper(e: &mut Encoding, ring: &mut RingLoad, slots: i64) -> Lit {
    if let Some(&known) = ring.deeper.get(&slots) {
        return known;
    }
    let graph = e.problem.graph();
    let interval = e.question.interval;
    let uses: Vec<&Dependence> = graph.uses(ring.load).collect();
    let transfer = graph.operation(ring.load).transfer_latency.0;
    let mut ways = Vec::new();
    for first in &uses {
        for last in &uses {
            // transfer + (t_last + δI + completion) − (t_first + δI) > (slots − 1) I
            let shift = (i64::from(last.distance) - i64::from(first.distance)) * interval;
            let least = (slots - 1) * interval - transfer - graph.operation(last.to).completion().0 - shift + 1;
            // It is known for one operation.
            ways.push([match first.to == last.to {
                true => e.engine.constant(least <= 0),
                false => e.at_least(Anchor::Issue(first.to), Anchor::Issue(last.to), least),
            }]);
        }
    }
    // Proofs are made in the unbounded form, and treat rings as storage.
    let name = matches!(e.question.stages, Stages::Any).then_some(Atom::Ring { load: ring.load, slots });
    ways.sort_unstable();
    ways.dedup();
    let literal = e.engine.any(ways, name);
    ring.deeper.insert(slots, literal);
    literal
}

/// Bytes in use at most, with reserved ones and rings.
pub(crate) fn peak(e: &Encoding, candidate: &Candidate) -> u64 {
    let slots = |ring: &RingLoad| {
        let depth = ring_depth(e.problem, ring.load, &candidate.times, e.question.interval);
        ring.bytes.saturating_mul(saturate::<u64>(depth))
    };
    let rings = e.storage.rings.iter().map(slots).fold(0, u64::saturating_add);
    let live = e.storage.shared.peak(e, candidate, |_| true);
    e.problem.graph().reserved().shared.0.saturating_add(rings).saturating_add(live)
}
