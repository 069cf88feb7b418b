//! Relations between the loops of one kernel: which operations run on the same warp
//! group in all of them, and how often each loop runs (docs/model.md, "Sibling loops").

use std::collections::BTreeMap;

use twill_graph::{LoopGraph, LoopOperation, Tie, TieReason, corresponding};

use crate::kernel::Kernel;
use crate::mlir::{ForLoop, OperationId, ValueId};
use crate::tile::TileLoop;

impl Kernel {
    /// Iterations of a loop, by its number; `None` unless its step is a constant and its bounds differ by one, and
    /// where it does not run at all. The kernel's arithmetic must not overflow.
    pub fn trip_count(&self, index: usize) -> Option<u64> {
        let parts = self.parts(index)?;
        let step = self.module().integer_constant(parts.step).filter(|step| *step > 0)?;
        let length = self.distance(parts.lower, parts.upper).filter(|length| *length > 0)?;
        u64::try_from((length + step - 1) / step).ok()
    }

    /// Ties between the operations of all loops. `prepared` and `graphs`: every loop as it is lowered
    /// ([`Options::prepare`](crate::Options::prepare)), and what it is lowered to.
    ///
    /// - The operation that makes a carried value of one loop is tied to the one that makes the
    ///   carried value that starts as its result in a later loop, sub-tile by sub-tile; all parts
    ///   are, where the loops are cut differently.
    /// - Operations that correspond by their place in the source are tied ([`corresponding`]).
    pub fn ties(&self, prepared: &[TileLoop], graphs: &[&LoopGraph]) -> Vec<Tie> {
        let mut ties = Vec::new();
        for from in 0..prepared.len() {
            for to in from + 1..prepared.len() {
                for (yields, continues) in self.handed_on(from, to) {
                    let makes = |index: usize, id| parts(&prepared[index], graphs[index], index, id);
                    let (one, other) = (makes(from, yields), makes(to, continues));
                    ties.extend(tied(&one, &other));
                }
            }
        }
        ties.extend(corresponding(graphs));
        ties
    }

    /// Operations of the TTIR that make a value at the end of an iteration of `from`, and of `to`, where
    /// `to` starts with what `from` ends with.
    fn handed_on(&self, from: usize, to: usize) -> Vec<(OperationId, OperationId)> {
        let (Some(from), Some(to)) = (self.parts(from), self.parts(to)) else { return Vec::new() };
        let made = |value: ValueId| self.module().defining_operation(value);
        let pair = |(initial, yielded): (&ValueId, &ValueId)| {
            let at = from.results.iter().position(|result| result == initial)?;
            Some((made(from.yielded[at])?, made(*yielded)?))
        };
        to.initial.iter().zip(to.yielded).filter_map(pair).collect()
    }

    fn parts(&self, index: usize) -> Option<ForLoop<'_>> {
        self.module().for_loop(self.loops().get(index)?.statement())
    }
}

/// The operations of a graph that stand for an operation of the TTIR, by sub-tile.
fn parts(l: &TileLoop, graph: &LoopGraph, index: usize, id: OperationId) -> BTreeMap<Option<u32>, LoopOperation> {
    let named = l.operations().iter().zip(l.operation_names());
    let part = |(op, name): (&crate::tile::TileOperation, String)| {
        let op_id = graph.find(&name).filter(|_| op.statements.contains(&id))?;
        Some((op.sub_tile, LoopOperation { index, op: op_id }))
    };
    named.filter_map(part).collect()
}

fn tied(one: &BTreeMap<Option<u32>, LoopOperation>, other: &BTreeMap<Option<u32>, LoopOperation>) -> Vec<Tie> {
    let reason = TieReason::Carried;
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    if one.keys().eq(other.keys()) {
        let pairs = one.values().zip(other.values());
        return pairs.map(|(&a, &b)| Tie { reason, operations: vec![a, b] }).collect();
    }
    vec![Tie { reason, operations: one.values().chain(other.values()).copied().collect() }]
}
