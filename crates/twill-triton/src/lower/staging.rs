//! The operations of the graph in order: those of the loop, and the loads and stores that bring tiles to them.

use std::collections::{BTreeMap, BTreeSet};

use super::LoopLowering;
use super::routes::Route;
use crate::tile::{Role, TileId, TileOperation, ValueId};

/// The meaning of an operation of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stands {
    /// An operation of the loop.
    Tile(TileId),
    /// The store of a tile from registers to shared memory, for all MMAs that read it there.
    ToShared(ValueId),
    /// The store of a tile from registers to tensor memory, for all MMAs that read it there.
    ToTensor(ValueId),
    /// The store to tensor memory of what this MMA adds to.
    Accumulator(TileId),
    /// The load of a tile of N iterations ago from tensor memory to registers, for all that read it there.
    FromTensor(ValueId, u32),
}

/// A read of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub from: Stands,
    pub distance: u32,
    pub role: Role,
}

/// The operations of the graph in order.
#[derive(Debug)]
pub(super) struct Staged {
    pub steps: Vec<Stands>,
    /// Where in `steps` a step stands.
    pub places: BTreeMap<Stands, usize>,
}

/// Puts stores after the operation whose result they store and loads before the first operation that needs them.
pub(super) fn stage(lowering: &LoopLowering<'_>) -> Staged {
    let l = lowering.tile_loop;
    let stores = stores(lowering);
    let mut staged = Staged { steps: Vec::new(), places: BTreeMap::new() };
    for (index, op) in l.operations().iter().enumerate() {
        staged.push(lowering, Stands::Tile(TileId::new(index)));
        for (_, store) in stores.iter().filter(|(value, _)| Some(*value) == op.result) {
            staged.push(lowering, *store);
        }
    }
    staged
}

/// The stores of tiles that the loop computes.
fn stores(lowering: &LoopLowering<'_>) -> BTreeSet<(ValueId, Stands)> {
    let l = lowering.tile_loop;
    let mut stores = BTreeSet::new();
    for (index, op) in l.operations().iter().enumerate() {
        for operand in &op.operands {
            for value in operand.tiles.iter().filter(|value| l.producer(**value).is_some()) {
                stores.extend(match lowering.route(op, operand, *value) {
                    Route::Shared => Some((*value, Stands::ToShared(*value))),
                    Route::Tensor => Some((*value, Stands::ToTensor(*value))),
                    // A value of an earlier iteration is stored before the MMA, like a loop-invariant one.
                    Route::Accumulator if operand.distance > 0 => None,
                    Route::Accumulator => Some((*value, Stands::Accumulator(TileId::new(index)))),
                    Route::Direct | Route::Registers => None,
                });
            }
        }
    }
    stores
}

impl Staged {
    /// Adds a step and before it what has to come first.
    fn push(&mut self, lowering: &LoopLowering<'_>, step: Stands) {
        if self.places.contains_key(&step) {
            return;
        }
        for read in lowering.reads(step) {
            let l = lowering.tile_loop;
            let first = match read.from {
                Stands::FromTensor(..) => true,
                Stands::Accumulator(dot) => {
                    accumulator(l.operation(dot)).all(|(value, distance)| distance > 0 || l.producer(value).is_none())
                }
                Stands::Tile(_) | Stands::ToShared(_) | Stands::ToTensor(_) => false,
            };
            if first {
                self.push(lowering, read.from);
            }
        }
        self.places.insert(step, self.steps.len());
        self.steps.push(step);
    }
}

/// The tiles that an MMA adds to, and of how many iterations ago they are.
fn accumulator(dot: &TileOperation) -> impl Iterator<Item = (ValueId, u32)> + '_ {
    let operand = dot.operand(Role::Accumulator).into_iter();
    operand.flat_map(|operand| operand.tiles.iter().map(|value| (*value, operand.distance)))
}

impl LoopLowering<'_> {
    /// The operands of a step.
    pub(super) fn reads(&self, step: Stands) -> Vec<Read> {
        let l = self.tile_loop;
        let produced = |value: ValueId| l.producer(value).map(Stands::Tile);
        let in_registers = |value: ValueId| {
            if self.is_in_tensor_memory(value) { Some(Stands::FromTensor(value, 0)) } else { produced(value) }
        };
        let input = |from: Stands| Read { from, distance: 0, role: Role::Input };
        match step {
            Stands::Tile(id) => {
                let op = l.operation(id);
                let reads = op.operands.iter().flat_map(|operand| {
                    operand.tiles.iter().flat_map(move |value| {
                        let route = self.route(op, operand, *value);
                        let read = match route {
                            Route::Direct => produced(*value).map(|from| (from, operand.distance)),
                            Route::Shared => Some((Stands::ToShared(*value), operand.distance)),
                            Route::Tensor => Some((Stands::ToTensor(*value), operand.distance)),
                            Route::Registers => Some((Stands::FromTensor(*value, operand.distance), 0)),
                            Route::Accumulator => Some((Stands::Accumulator(id), 0)),
                        };
                        // Threads transpose a tile of their own registers: the store is what that costs.
                        let is_transposed = route == Route::Shared && operand.role == Role::Input;
                        let held = produced(*value).filter(|_| is_transposed).map(|from| (from, operand.distance));
                        let role = operand.role;
                        read.into_iter().chain(held).map(move |(from, distance)| Read { from, distance, role })
                    })
                });
                reads.collect()
            }
            Stands::ToShared(value) | Stands::ToTensor(value) => in_registers(value).map(input).into_iter().collect(),
            Stands::Accumulator(dot) => {
                let held = |(value, distance)| {
                    if self.is_in_tensor_memory(value) {
                        return Some(input(Stands::FromTensor(value, distance)));
                    }
                    Some(Read { distance, ..input(produced(value)?) })
                };
                accumulator(l.operation(dot)).filter_map(held).collect()
            }
            Stands::FromTensor(value, distance) => {
                produced(value).map(|from| Read { from, distance, role: Role::Input }).into_iter().collect()
            }
        }
    }
}
