//! Reserved bytes, rings of streaming loads, live values and handoff buffers fit shared memory in
//! every slot.

use crate::life::{Cells, End};
use crate::model::Model;
use crate::term::{Term, at_most, implies, or};
use std::collections::BTreeMap;
use twill_graph::{Bytes, OpId, Storage, Words};

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nshared memory: rings, values alive and handoff buffers fit in every slot.\n\
         more_v_j: the ring of v has more than j slots; passed_v_c: the handoff buffer of v is held.",
    );
    let room = i128::from(m.problem.resources().shared_memory.0) - i128::from(m.problem.graph().reserved().shared.0);
    let mut always: Vec<(u64, Term)> = Vec::new();
    let mut held: Vec<(u64, Cells)> = Vec::new();
    for v in m.problem.graph().op_ids() {
        let op = m.problem.graph().operation(v);
        match op.storage {
            Storage::Shared(bytes) if bytes > Bytes(0) && op.streaming => always.extend(ring(m, v, bytes.0, room)),
            Storage::Shared(bytes) if bytes > Bytes(0) => held.push((bytes.0, m.live(v))),
            Storage::Registers(words) if words > Words(0) => held.push((4 * words.0, buffer(m, v))),
            Storage::None | Storage::Registers(_) | Storage::Shared(_) | Storage::Tensor(_) => {}
        }
    }
    let mut cells: BTreeMap<i64, Vec<(u64, Term)>> = BTreeMap::new();
    for (bytes, life) in held {
        for (cell, copies) in life {
            cells.entry(cell).or_default().extend(copies.into_iter().map(|alive| (bytes, alive)));
        }
    }
    let mut terms = at_most(&always, room);
    for mut cell in cells.into_values() {
        cell.extend_from_slice(&always);
        terms.extend(at_most(&cell, room));
    }
    m.script.assert("shared_memory", terms);
}

/// Bytes of a ring, slot by slot: `max(1, ⌈(transfer + last − first) / I⌉)` slots, where `first` and
/// `last` are its first use and the end of its last.
fn ring(m: &mut Model, v: OpId, bytes: u64, room: i128) -> Vec<(u64, Term)> {
    let graph = m.problem.graph();
    let transfer = graph.operation(v).transfer_latency.0;
    let mut slots = vec![(bytes, Term::Known(true))];
    let start = |d: &twill_graph::Dependence| i64::from(d.distance) * m.interval;
    let longest = graph.uses(v).map(|d| m.latest(d.to) + start(d) + graph.operation(d.to).completion().0).max();
    let Some(longest) = longest.map(|l| l + transfer) else { return slots };
    let mut terms = Vec::new();
    for j in 1.. {
        // No life is so long; or that many slots fit nowhere, and the last one already does not.
        if j * m.interval >= longest || i128::from(bytes) * i128::from(j) > room {
            break;
        }
        let more = m.script.declare(format!("more_{}_{j}", v.index()));
        for a in graph.uses(v) {
            for b in graph.uses(v) {
                // Without more slots: t_b + d_b I + completion + transfer <= t_a + d_a I + j I.
                let completion = graph.operation(b.to).completion().0;
                let gap = j * m.interval + start(a) - start(b) - completion - transfer;
                if a.to == b.to {
                    terms.push(or([Term::Known(gap >= 0), more.clone()]));
                    continue;
                }
                let clause = |t| or([implies(&[&m.issued(a.to, t)], m.issued(b.to, t + gap)), more.clone()]);
                terms.extend((0..=m.latest(a.to)).map(clause));
            }
        }
        slots.push((bytes, more));
    }
    m.script.assert(format!("shared_memory: ring of {}", m.name(v)), terms);
    slots
}

/// The handoff buffer of a register value: from its issue to the completion of the last operation on
/// another group that reads it.
fn buffer(m: &mut Model, v: OpId) -> Cells {
    let graph = m.problem.graph();
    let away = graph.uses(v).filter(|d| d.to != v && d.distance == 0);
    let end = |d: &twill_graph::Dependence| End {
        op: d.to,
        distance: 0,
        offset: graph.operation(d.to).completion().0,
        when: m.apart(v, d.to),
    };
    let ends: Vec<End> = away.map(end).collect();
    m.held(&format!("passed_{}", v.index()), v, &ends)
}
