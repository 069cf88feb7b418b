//! Row sums whose last step waits for the end of the loop.
//!
//! A row of an MMA's result lies in four threads. A carried sum `l' = l · α + sum(p)` is linear in `l`, so each thread can
//! carry its own partial, `l'_t = l_t · α + sum_t(p)`, and the four partials are added once after the loop (a quad
//! all-reduce) instead of in every iteration, where the exchange between threads would stand before the next MMA.

use crate::builder::kernel::KernelBuilder;
use crate::builder::planned::CarriedSum;
use crate::builder::source::LoopFacts;
use crate::error::Error;
use std::collections::HashMap;
use twill_graph::OpId;
use twill_triton::mlir::{Module, ValueId};
use twill_triton::tile::{Combine, TileOpKind};

/// The carried sums of a loop, by the operation that makes the new sum.
pub(crate) fn carried_sums(module: &Module, facts: &LoopFacts<'_>) -> HashMap<OpId, CarriedSum> {
    let mut sums = HashMap::new();
    for (carried, (argument, yielded)) in facts.parts.carried.iter().zip(facts.parts.yielded).enumerate() {
        let Some((factor, sum)) = linear(module, *argument, *yielded) else { continue };
        let Some(reduce) = module.defining_operation(sum) else { continue };
        let operation = module.operation(reduce);
        let [tile] = operation.operands.as_slice() else { continue };
        let shape = module.type_of(*tile).known_shape().unwrap_or_default();
        // The new sum and the sum of the tile go nowhere else.
        let only = |value: ValueId| module.uses(value).len() == 1;
        let by_rows = operation.attributes.integer("axis") == Some(1) && shape.len() == 2 && shape[1].is_multiple_of(8);
        if !(only(*argument) && only(*yielded) && only(sum) && by_rows) {
            continue;
        }
        let (Some(producers), Some(sources)) = (facts.producers.get(yielded), facts.producers.get(&sum)) else {
            continue;
        };
        for producer in producers {
            let source = sources.iter().find(|s| s.region == producer.region && s.program == producer.program);
            let Some(source) = source else { continue };
            let is_sum = facts
                .tile_operation(source.op)
                .is_some_and(|o| matches!(o.kind, TileOpKind::Reduce { combine: Combine::Sum, .. }));
            if is_sum && facts.group(source.op) == facts.group(producer.op) {
                sums.insert(producer.op, CarriedSum { carried, reduce: source.op, tile: *tile, factor });
            }
        }
    }
    sums
}

/// `yielded = argument · factor + sum`, or without a factor.
fn linear(module: &Module, argument: ValueId, yielded: ValueId) -> Option<(Option<ValueId>, ValueId)> {
    let of = |value: ValueId, name: &str| {
        let operation = module.operation(module.defining_operation(value)?);
        (operation.name == name).then_some(operation.operands.as_slice())
    };
    let [a, b] = of(yielded, "arith.addf")? else { return None };
    for (old, sum) in [(*a, *b), (*b, *a)] {
        if of(sum, "tt.reduce").is_none() {
            continue;
        }
        if old == argument {
            return Some((None, sum));
        }
        if let Some([x, y]) = of(old, "arith.mulf") {
            let only = module.uses(old).len() == 1;
            match (*x == argument, *y == argument) {
                (true, false) if only => return Some((Some(*y), sum)),
                (false, true) if only => return Some((Some(*x), sum)),
                _ => {}
            }
        }
    }
    None
}

/// The pass.
///
/// Before: any program. After: which carried sums each thread keeps by itself is known; the loops are lowered with them.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    builder.plan_partial_sums();
    Ok(())
}

impl KernelBuilder<'_> {
    /// Finds the carried sums of all loops; a sum that begins with another loop's is kept in partials only if that one is.
    pub fn plan_partial_sums(&mut self) {
        // A row that comes from tensor memory lies in one thread.
        if self.has_tensor_memory() {
            return;
        }
        for index in 0..self.loops.len() {
            let mut sums = carried_sums(self.module, &self.loops[index]);
            sums.retain(|_, sum| {
                let initial = self.loops[index].parts.initial[sum.carried];
                let shape = self.module.type_of(sum.tile).known_shape();
                let halves = shape.is_some_and(|shape| shape[1].is_power_of_two());
                match self.loop_result(initial) {
                    Some((before, k)) => self.loops[before].sums.values().any(|s| s.carried == k),
                    None => self.module.float_constant(initial).is_some_and(|c| c == 0.0 || (halves && c.is_finite())),
                }
            });
            // Partials are added up by the group that stores what is made of them; what all sub-tiles read is handed over as sums.
            let has_others = self.loops[index].tiles.sub_tiles() > 1 && self.compute_groups().len() > 1;
            sums.retain(|op, _| {
                let sub_tile = self.loops[index].tile_operation(*op).and_then(|o| o.sub_tile);
                let is_shared = sub_tile.is_none() && has_others;
                !is_shared && self.owner(sub_tile.unwrap_or(0)) == Some(self.loops[index].group(*op))
            });
            self.loops[index].sums = sums;
        }
        // A later loop that goes on with a sum must keep it in partials as well.
        for index in (0..self.loops.len()).rev() {
            let broken: Vec<(usize, usize)> = self.loops[index]
                .parts
                .initial
                .iter()
                .enumerate()
                .filter(|(k, _)| !self.loops[index].sums.values().any(|s| s.carried == *k))
                .filter_map(|(_, initial)| self.loop_result(*initial))
                .collect();
            for (before, k) in broken {
                self.loops[before].sums.retain(|_, s| s.carried != k);
            }
        }
    }
}
