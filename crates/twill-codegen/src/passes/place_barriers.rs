//! Guards the buffers of the loops by mbarriers.
//!
//! Before: every buffer of the loops' steps has a buffer of the program. After: each has an *empty* barrier where somebody
//! releases its slots, and a *full* barrier for each value in it that other groups read, an mbarrier a slot; who arrives at them
//! is settled.

use crate::builder::kernel::{KernelBuilder, is_tma};
use crate::error::Error;
use crate::ir::Arrival;
use crate::passes::loops::tcgen05::signalled_by_unit;
use crate::passes::steps::program::{BufferId as StepsBufferId, BufferKind};
use twill_graph::OpId;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    for index in 0..builder.loops.len() {
        for number in 0..builder.loops[index].program.buffers.len() {
            guard(builder, index, StepsBufferId(number));
        }
    }
    Ok(())
}

fn guard(builder: &mut KernelBuilder<'_>, index: usize, id: StepsBufferId) {
    let name = builder.name_of_buffer(index, id);
    let buffer = builder.loops[index].program.buffer(id).clone();
    let at = builder.storage.buffers[&(index, id)];
    let slots = builder.program.buffers[at.index()].slots;
    if !buffer.released_by.is_empty() && !builder.storage.empty.contains_key(&at) {
        let arrivals = buffer.released_by.iter().map(|g| builder.releasing(*g)).collect();
        let barrier = builder.barrier(format!("{name}_empty"), slots, arrivals);
        builder.storage.empty.insert(at, barrier);
    }
    // Of an earlier loop that shares the buffer.
    let shared = builder.storage.buffers.iter().find(|((other, _), theirs)| *other < index && **theirs == at);
    let shared = shared.map(|(key, _)| *key);
    for (position, value) in buffer.values.iter().enumerate().filter(|(_, v)| v.shared) {
        let known = shared.and_then(|(other, theirs)| {
            let theirs = &builder.loops[other].program.buffer(theirs).values;
            let same = theirs.get(position).filter(|_| theirs.len() == buffer.values.len())?;
            builder.storage.full.get(&(other, at, same.op)).copied()
        });
        let barrier = known.unwrap_or_else(|| {
            let facts = &builder.loops[index];
            let barrier_name = if buffer.values.len() > 1 {
                format!("{}_full", facts.problem.graph().operation(value.op).name.replace('.', "_"))
            } else {
                format!("{name}_full")
            };
            let arrivals = full_arrivals(builder, index, id, value.op);
            builder.barrier(barrier_name, slots, arrivals)
        });
        builder.storage.full.insert((index, at, value.op), barrier);
    }
}

/// Who arrives at the full barrier of a value in a buffer: those who bring it, and what else the barrier guards.
pub(crate) fn full_arrivals(builder: &KernelBuilder<'_>, index: usize, id: StepsBufferId, op: OpId) -> Vec<Arrival> {
    let program = &builder.loops[index].program;
    let guarded = (0..program.buffers.len()).map(StepsBufferId);
    let guarded = guarded.filter(|other| program.buffer(*other).guarded_by == Some(id));
    let guarded = guarded.map(|other| (other, program.buffer(other).values[0].op));
    std::iter::once((id, op)).chain(guarded).map(|(id, op)| arrival(builder, index, id, op)).collect()
}

/// Who says that an operation's value is there.
fn arrival(builder: &KernelBuilder<'_>, index: usize, id: StepsBufferId, op: OpId) -> Arrival {
    let facts = &builder.loops[index];
    let warps = builder.warps(facts.group(op));
    let by_unit =
        builder.is_issuer(facts.group(op)) || signalled_by_unit(&facts.program.warps, op, id) && !facts.is_load(op);
    if is_tma(facts, op) || by_unit {
        Arrival::Unit
    } else if facts.is_load(op)
        && !matches!(facts.program.buffer(id).kind, BufferKind::Order(_))
        && !facts.loads_through_registers(builder.module, op)
    {
        Arrival::EachThread { warps }
    } else {
        Arrival::Threads { warps }
    }
}
