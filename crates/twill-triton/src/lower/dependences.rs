//! Dependences of the graph.
//!
//! | attribute | rule |
//! |---|---|
//! | delay | the producer's latency; 0 after a streaming load, whose ring hides it |
//! | blocking | the producer is asynchronous, unless both are MMAs and the second adds to the first: the tensor core does them in order |
//! | tied | the accumulator of an MMA, in registers or tensor memory; for arithmetic the operand in registers that it reads last, if its result fits there |
//! | hold | 0 if tied; otherwise the consumer's completion if it is asynchronous, an MMA or a store, or reads shared memory; else 0: it works in place |
//!
//! To these come orders that carry no value: an MMA that adds to a sum in tensor memory waits until the sum before it
//! has been read.

use std::collections::BTreeMap;

use twill_graph::{Cycles, Dependence, Execution, OpId, Operation, Storage};

use super::LoopLowering;
use super::staging::{Staged, Stands};
use crate::tile::{Role, TileOpKind, TileOperation};

/// A read of a result.
struct Read {
    from: usize,
    to: usize,
    distance: u32,
    role: Role,
}

/// All dependences, by producer and consumer in the order of consumers.
pub(super) fn all(lowering: &LoopLowering<'_>, staged: &Staged, operations: &[Operation]) -> Vec<Dependence> {
    let reads = reads(lowering, staged);
    let tied = tied(lowering, staged, operations, &reads);
    let mut merged: BTreeMap<(usize, usize, u32), Dependence> = BTreeMap::new();
    let values = reads.iter().zip(&tied).map(|(read, tied)| dependence(lowering, staged, operations, read, *tied));
    for dependence in values.chain(overwrites(operations, &reads, &tied)) {
        merged
            .entry((dependence.to.index(), dependence.from.index(), dependence.distance))
            .and_modify(|known| {
                known.delay = known.delay.max(dependence.delay);
                known.blocking |= dependence.blocking;
                known.tied |= dependence.tied;
                known.hold = known.hold.max(dependence.hold);
            })
            .or_insert(dependence);
    }
    merged.into_values().collect()
}

fn reads(lowering: &LoopLowering<'_>, staged: &Staged) -> Vec<Read> {
    let mut reads = Vec::new();
    for (to, step) in staged.steps.iter().enumerate() {
        for read in lowering.reads(*step) {
            let from = staged.places.get(&read.from);
            reads.extend(from.map(|from| Read { from: *from, to, distance: read.distance, role: read.role }));
        }
    }
    reads
}

/// An MMA that adds to a result in tensor memory in its place waits for the other readers of that result. In registers
/// the warps that do both keep the order.
fn overwrites(operations: &[Operation], reads: &[Read], tied: &[bool]) -> Vec<Dependence> {
    let in_place = reads.iter().zip(tied).filter(|(read, tied)| **tied && is_in_tensor_memory(&operations[read.from]));
    let mut orders = Vec::new();
    for (write, _) in in_place {
        let others = reads.iter().filter(|other| other.from == write.from && other.to != write.to);
        orders.extend(others.map(|other| Dependence {
            from: OpId::new(other.to),
            to: OpId::new(write.to),
            delay: operations[other.to].completion(),
            // A result that is read later than it is overwritten is not added to in its place.
            distance: write.distance.saturating_sub(other.distance),
            blocking: operations[other.to].execution == Execution::Asynchronous,
            carries_value: false,
            tied: false,
            hold: Cycles::ZERO,
        }));
    }
    orders
}

fn is_in_tensor_memory(op: &Operation) -> bool {
    matches!(op.storage, Storage::Tensor(_))
}

fn tile_operation<'a>(lowering: &LoopLowering<'a>, step: Stands) -> Option<&'a TileOperation> {
    match step {
        Stands::Tile(id) => Some(lowering.tile_loop.operation(id)),
        Stands::ToShared(_) | Stands::ToTensor(_) | Stands::Accumulator(_) | Stands::FromTensor(..) => None,
    }
}

/// For every read whether its consumer continues in the storage that it reads.
fn tied(lowering: &LoopLowering<'_>, staged: &Staged, operations: &[Operation], reads: &[Read]) -> Vec<bool> {
    // The last read of every result, in the order of the text and of iterations.
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, read) in reads.iter().enumerate() {
        let order = |index: usize| (reads[index].distance, reads[index].to);
        last.entry(read.from)
            .and_modify(|known| {
                if order(*known) < order(index) {
                    *known = index
                }
            })
            .or_insert(index);
    }
    let mut taken = vec![false; staged.steps.len()];
    reads
        .iter()
        .enumerate()
        .map(|(index, read)| {
            let (from, to) = (&operations[read.from], &operations[read.to]);
            let is_accumulator = read.role == Role::Accumulator && from.storage == to.storage;
            let is_arithmetic = tile_operation(lowering, staged.steps[read.to])
                .is_some_and(|op| matches!(op.kind, TileOpKind::Elementwise { .. } | TileOpKind::Convert));
            let fits = matches!((from.storage, to.storage), (Storage::Registers(has), Storage::Registers(needs)) if has >= needs);
            let in_place = is_arithmetic && fits && last.get(&read.from) == Some(&index);
            let ties = (is_accumulator || in_place) && !taken[read.to];
            taken[read.to] |= ties;
            ties
        })
        .collect()
}

fn dependence(
    lowering: &LoopLowering<'_>,
    staged: &Staged,
    operations: &[Operation],
    read: &Read,
    tied: bool,
) -> Dependence {
    let (from, to) = (&operations[read.from], &operations[read.to]);
    let kind = |step: usize| tile_operation(lowering, staged.steps[step]).map(|op| op.kind);
    let is_dot = |step: usize| matches!(kind(step), Some(TileOpKind::Dot { .. }));
    let is_asynchronous = |op: &Operation| op.execution == Execution::Asynchronous;
    let chained = tied && is_dot(read.from) && is_dot(read.to) && is_asynchronous(to);
    let moves = match kind(read.to) {
        None
        | Some(TileOpKind::Dot { .. } | TileOpKind::Store(_) | TileOpKind::AtomicReduce(_) | TileOpKind::Load(_)) => {
            true
        }
        Some(
            TileOpKind::Elementwise { .. }
            | TileOpKind::Convert
            | TileOpKind::Reduce { .. }
            | TileOpKind::Opaque { .. },
        ) => is_asynchronous(to) || matches!(from.storage, Storage::Shared(_)),
    };
    Dependence {
        from: OpId::new(read.from),
        to: OpId::new(read.to),
        delay: if from.streaming { Cycles::ZERO } else { from.latency },
        distance: read.distance,
        blocking: is_asynchronous(from) && !chained,
        carries_value: from.storage != Storage::None,
        tied,
        hold: if moves && !tied { to.completion() } else { Cycles::ZERO },
    }
}
