//! The operations of the graph with their costs and names.

use std::collections::BTreeSet;

use twill_graph::{Bytes, Cycles, Operation, Storage, Words};
use twill_machine::{Cost, CostError, TileWork};

use super::LoopLowering;
use super::staging::{Staged, Stands};
use crate::error::Error;
use crate::tile::{Operand, Origin, Role, Tile, TileId, TileOpKind, TileOperation, ValueId};

/// The suffix that tells an operation that only moves a tile from the one that computed it.
struct Move {
    /// The tile; its data are in the form in which it was computed.
    value: ValueId,
    kind: &'static str,
    /// Follows the name of the operation whose result is moved.
    suffix: &'static str,
    cost: Cost,
    storage: Storage,
    handoff: Cycles,
    /// The operation of the loop on whose account it happens.
    of: TileId,
}

impl Staged {
    /// The operations with their costs.
    pub fn operations(&self, lowering: &LoopLowering<'_>) -> Result<Vec<Operation>, Error> {
        let names = lowering.tile_loop.operation_names();
        let mut taken: BTreeSet<String> = names.iter().cloned().collect();
        let mut operations = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            operations.push(match *step {
                Stands::Tile(id) => lowering.operation(lowering.tile_loop.operation(id), names[id.index()].clone())?,
                // A tile is moved from one operation or to one.
                Stands::ToShared(_) | Stands::ToTensor(_) | Stands::Accumulator(_) | Stands::FromTensor(..) => {
                    let Some(moved) = lowering.movement(*step)? else { continue };
                    let name = lowering.name(&moved, &names, &taken);
                    taken.insert(name.clone());
                    lowering.moving(moved, name)
                }
            });
        }
        Ok(operations)
    }
}

impl LoopLowering<'_> {
    /// Returns whether a load depends on no tile.
    fn is_streaming(op: &TileOperation) -> bool {
        matches!(op.kind, TileOpKind::Load(_)) && op.operands.is_empty()
    }

    /// Returns whether it writes, or writes where it is told by, a value in registers from an iteration before; or nothing that the
    /// loop makes: what is made before it is in the registers of groups that compute.
    fn stores_what_is_held(&self, op: &TileOperation) -> bool {
        let is_carried = |operand: &Operand| {
            let computed = |value: &ValueId| self.tile_loop.producer(*value).is_some() && !self.is_shared(*value);
            operand.distance > 0 && operand.tiles.iter().any(computed)
        };
        let is_made_here =
            |operand: &Operand| operand.tiles.iter().any(|value| self.tile_loop.producer(*value).is_some());
        matches!(op.kind, TileOpKind::Store(_) | TileOpKind::AtomicReduce(_))
            && (op.operands.iter().any(is_carried) || !op.operands.iter().any(is_made_here))
    }

    fn operation(&self, op: &TileOperation, name: String) -> Result<Operation, Error> {
        let cost = self.cost(op)?;
        let streaming = Self::is_streaming(op) && cost.variable_latency;
        let transfer = self.machine.transfer_latency();
        // Nothing hides the way to memory of a load that cannot run ahead.
        let waits = matches!(op.kind, TileOpKind::Load(_)) && !streaming;
        let latency = if waits { cost.latency.max(transfer) } else { cost.latency };
        let storage = self.storage(op);
        let handoff = match (op.result, storage) {
            (Some(result), Storage::Registers(_)) => self.handoff(self.tile_loop.tile(result)),
            _ => Cycles::ZERO,
        };
        Ok(Operation {
            name,
            kind: op.label().to_owned(),
            source: op.place.source.clone(),
            reservations: cost.reservations,
            occupancy: cost.occupancy,
            latency,
            execution: cost.execution,
            issue_width: cost.issue_width,
            storage,
            // A value in registers stays on its group, and nobody waits for a store.
            variable_latency: cost.variable_latency && !self.stores_what_is_held(op),
            streaming,
            handoff,
            transfer_latency: if streaming { transfer } else { latency },
            sub_tile: op.sub_tile,
            traffic: cost.traffic,
        })
    }

    /// The kind of an operation that only moves a tile; `None` for operations of the loop.
    fn movement(&self, step: Stands) -> Result<Option<Move>, Error> {
        let l = self.tile_loop;
        let tile = |value: ValueId| l.tile(value);
        let place =
            |of: TileId| move |error| Error::Cost { place: l.operation(of).place.clone(), error: Box::new(error) };
        let (value, of) = match step {
            Stands::Tile(_) => return Ok(None),
            Stands::ToShared(value) | Stands::ToTensor(value) | Stands::FromTensor(value, _) => {
                let Some(of) = l.producer(value) else { return Ok(None) };
                (value, of)
            }
            Stands::Accumulator(dot) => {
                let accumulator = l.operation(dot).operand(Role::Accumulator);
                let Some(value) = accumulator.and_then(|operand| operand.tiles.first().copied()) else {
                    return Ok(None);
                };
                (value, dot)
            }
        };
        let moved = |kind, suffix, cost, storage| {
            Ok(Some(Move { value, kind, suffix, cost, storage, handoff: Cycles::ZERO, of }))
        };
        match step {
            Stands::Tile(_) => Ok(None),
            Stands::ToShared(_) => {
                let bytes = self.bytes(tile(value));
                let cost = self.machine.cost(&TileWork::ToShared { bytes }).map_err(place(of))?;
                moved("store_shared", "shared", cost, Storage::Shared(bytes))
            }
            Stands::ToTensor(_) => {
                let words = self.machine.register_words(Self::elements(tile(value)), tile(value).element.bits());
                let cost = self.machine.cost(&TileWork::TensorStore { words }).map_err(place(of))?;
                moved("store_tensor", "tensor", cost, Storage::Tensor(self.operand_columns(tile(value))))
            }
            Stands::Accumulator(dot) => {
                let Some(result) = l.operation(dot).result.map(tile) else { return Ok(None) };
                let cost = self.accumulator_store(dot, result).map_err(place(of))?;
                moved("store_tensor", "tensor", cost, Storage::Tensor(self.accumulator_columns(result)))
            }
            Stands::FromTensor(..) => {
                let words = accumulator_words(tile(value));
                let cost = self.machine.cost(&TileWork::TensorLoad { words }).map_err(place(of))?;
                let storage = Storage::Registers(self.words(tile(value)));
                let handoff = self.handoff(tile(value));
                Ok(Some(Move { value, kind: "load_tensor", suffix: "registers", cost, storage, handoff, of }))
            }
        }
    }

    /// The cost of storing what an MMA adds to; a tile that is loaded or of before the loop comes from shared memory,
    /// and a transposed one is turned round there.
    fn accumulator_store(&self, dot: TileId, result: &Tile) -> Result<Cost, CostError> {
        let store = self.machine.cost(&TileWork::TensorStore { words: accumulator_words(result) })?;
        let Some(operand) = self.tile_loop.operation(dot).operand(Role::Accumulator) else { return Ok(store) };
        let bytes = |in_shared: bool| -> u64 {
            let tiles = operand.tiles.iter().filter(|value| self.is_shared(**value) == in_shared);
            tiles.map(|value| self.bytes(self.tile_loop.tile(*value)).0).sum()
        };
        let mut cost = store;
        let turned = Bytes(if operand.is_transposed() { bytes(false) } else { 0 });
        if turned > Bytes(0) {
            cost = self.machine.cost(&TileWork::ToShared { bytes: turned })?.then(&cost);
        }
        self.with_fetch(cost, Bytes(bytes(true) + turned.0))
    }

    /// The name of the operation whose result is moved, what it becomes, and the sub-tile.
    fn name(&self, moved: &Move, names: &[String], taken: &BTreeSet<String>) -> String {
        let whole = match &self.tile_loop.tile(moved.value).origin {
            Origin::Operation(id) => &names[id.index()],
            Origin::Invariant { name, .. } => name,
        };
        let end = self.tile_loop.operation(moved.of).sub_tile.map_or_else(String::new, |s| format!(".{s}"));
        let stem = whole.strip_suffix(&end).unwrap_or(whole);
        let numbered = |number: u32| match number {
            1 => format!("{stem}.{}{end}", moved.suffix),
            _ => format!("{stem}.{}{number}{end}", moved.suffix),
        };
        (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
    }

    fn moving(&self, moved: Move, name: String) -> Operation {
        let op = self.tile_loop.operation(moved.of);
        Operation {
            name,
            kind: moved.kind.to_owned(),
            source: op.place.source.clone(),
            reservations: moved.cost.reservations,
            occupancy: moved.cost.occupancy,
            latency: moved.cost.latency,
            execution: moved.cost.execution,
            issue_width: moved.cost.issue_width,
            storage: moved.storage,
            variable_latency: false,
            streaming: false,
            handoff: moved.handoff,
            transfer_latency: moved.cost.latency,
            sub_tile: op.sub_tile,
            traffic: moved.cost.traffic,
        }
    }
}

/// Words that a tile takes in tensor memory as a result of an MMA.
fn accumulator_words(tile: &Tile) -> Words {
    Words(LoopLowering::elements(tile).saturating_mul(u64::from(tile.element.bits().max(32))).div_ceil(32))
}
