//! `shared_memory`: what is reserved, the rings of streaming loads, live values and handoff
//! buffers together fit at any time.

use crate::lives::{self, Life};
use crate::placed::{Placed, amount};
use crate::rejected::Violations;
use crate::{Violation, rings};
use twill_graph::Storage;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    if lives::replayable(placed).is_err() {
        return;
    }
    let (mut ring_bytes, mut lives) = (0i128, Vec::new());
    for (op, operation) in placed.operations() {
        match operation.storage {
            Storage::Shared(bytes) if operation.streaming => {
                ring_bytes = ring_bytes.saturating_add(rings::slots(placed, op).saturating_mul(bytes.0.into()));
            }
            Storage::Shared(bytes) => lives.push(Life::of_result(placed, op, bytes.0)),
            Storage::Registers(_) => lives.extend(lives::handoff_buffer(placed, op)),
            Storage::None | Storage::Tensor(_) => {}
        }
    }
    let (reserved, available) = (placed.graph().reserved().shared.0, placed.problem.resources().shared_memory.0);
    let always = ring_bytes.saturating_add(reserved.into());
    let most = lives::most(placed, &lives);
    let required = always.saturating_add(most.as_ref().map_or(0, |(peak, _)| peak.total));
    if required > i128::from(available) {
        let (at, holders) = lives::place(placed, most);
        violations.push(Violation::SharedMemory {
            available,
            required: amount(required),
            reserved,
            rings: amount(ring_bytes),
            at,
            holders,
        });
    }
}
