//! Gives the values that loops keep outside registers their buffers in shared or tensor memory.
//!
//! Before: the steps of each loop name buffers of their own. After: each of them has a buffer of the program, with as many slots
//! as the schedule and the options ask for; loops that use theirs alike share one.

use crate::builder::kernel::{KernelBuilder, is_tma};
use crate::error::Error;
use crate::ir::{Arrival, Buffer, Memory};
use crate::passes::place_barriers::full_arrivals;
use crate::passes::steps::program::{BufferId as StepsBufferId, BufferKind};
use twill_graph::OpId;
use twill_triton::mlir::Type;
use twill_triton::tile::{TileOpKind, Transfer};

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for index in 0..builder.loops.len() {
        for number in 0..builder.loops[index].program.buffers.len() {
            assign(builder, index, StepsBufferId(number));
        }
    }
    deepen(builder);
    equal_slots(builder);
    Ok(())
}

fn assign(builder: &mut KernelBuilder<'_>, index: usize, id: StepsBufferId) {
    let facts = &builder.loops[index];
    let buffer = facts.program.buffer(id);
    let op = buffer.values[0].op;
    let (mut shape, element) = builder.tile_of(index, op);
    if facts.is_turned(op) {
        shape.reverse();
    }
    // A number has a place as a tile of one element.
    if shape.is_empty() && !matches!(buffer.kind, BufferKind::Order(_)) {
        shape.push(1);
    }
    let wanted = Buffer {
        name: format!("{}_buffer", builder.name_of_buffer(index, id)),
        shape,
        // Shared memory has no elements of one bit.
        element: if element == Type::Integer(1) { Type::Integer(8) } else { element },
        slots: match buffer.kind {
            BufferKind::Ring(_) => buffer.depth.saturating_sub(builder.smem_fallback.fewer_slots).max(1),
            _ => buffer.depth,
        },
        least_slots: 1,
        memory: match buffer.kind {
            BufferKind::Tensor(columns) => Memory::Tensor { columns: columns.0 },
            _ => Memory::Shared,
        },
        plain: !is_read_by_unit(builder, index, op) && !is_tma(facts, op),
        source: facts.problem.graph().operation(op).source.clone(),
    };
    // What TMA fills in one loop and threads in another has barriers of two kinds.
    let arrivals = |index: usize, id: StepsBufferId| -> Vec<Vec<Arrival>> {
        let values = builder.loops[index].program.buffer(id).values.iter().filter(|value| value.shared);
        values.map(|value| full_arrivals(builder, index, id, value.op)).collect()
    };
    let is_alike = |(other, id_there): &(usize, StepsBufferId)| {
        let theirs = builder.loops[*other].program.buffer(*id_there);
        theirs.writer == buffer.writer
            && theirs.released_by == buffer.released_by
            && arrivals(*other, *id_there) == arrivals(index, id)
    };
    let mut same = builder.storage.buffers.iter().filter(|((other, _), at)| {
        let have = &builder.program.buffers[at.index()];
        *other < index && have.name == wanted.name && have.shape == wanted.shape && have.element == wanted.element
    });
    let shared = same.next().filter(|(key, _)| is_alike(key)).map(|(_, at)| *at);
    let at = match shared {
        Some(at) => {
            let known = &mut builder.program.buffers[at.index()].slots;
            *known = wanted.slots.max(*known);
            at
        }
        None => builder.buffer(wanted),
    };
    builder.storage.buffers.insert((index, id), at);
}

/// Gives rings and handoff buffers more slots: a schedule needs only as many as it says, but nothing is always on time. What
/// does not fit shared memory in the end is an error, so this takes no more than it is told to.
fn deepen(builder: &mut KernelBuilder<'_>) {
    for ((index, id), at) in &builder.storage.buffers {
        let buffer = builder.loops[*index].program.buffer(*id);
        let slots = match buffer.kind {
            BufferKind::Ring(_) => builder.options.ring_depth,
            BufferKind::Handoff(_) | BufferKind::Shared(_) if !buffer.released_by.is_empty() => {
                builder.options.handoff_depth
            }
            _ => 1,
        };
        let buffer = &mut builder.program.buffers[at.index()];
        buffer.least_slots = slots;
        buffer.slots = slots.max(buffer.slots);
    }
}

/// Gives rings that share barriers as many slots as the deepest of them.
fn equal_slots(builder: &mut KernelBuilder<'_>) {
    let guarded = |((index, id), at): (&(usize, StepsBufferId), &crate::ir::BufferId)| {
        let by = builder.loops[*index].program.buffer(*id).guarded_by?;
        Some((*at, builder.storage.buffers[&(*index, by)]))
    };
    let pairs: Vec<_> = builder.storage.buffers.iter().filter_map(guarded).collect();
    // Loops may share buffers, so one change may ask for another.
    for _ in 0..=pairs.len() {
        for (one, other) in &pairs {
            let buffers = &mut builder.program.buffers;
            let slots = buffers[one.index()].slots.max(buffers[other.index()].slots);
            buffers[one.index()].slots = slots;
            buffers[other.index()].slots = slots;
        }
    }
}

/// Whether the tensor core or TMA reads what an operation leaves in memory.
fn is_read_by_unit(builder: &KernelBuilder<'_>, index: usize, op: OpId) -> bool {
    let facts = &builder.loops[index];
    facts.problem.graph().uses(op).any(|d| {
        facts.tile_operation(d.to).is_some_and(|o| {
            matches!(
                o.kind,
                TileOpKind::Dot { .. } | TileOpKind::Store(Transfer::Tma) | TileOpKind::AtomicReduce(Transfer::Tma)
            )
        })
    })
}
