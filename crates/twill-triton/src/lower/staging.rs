//! Decides which operands go through shared memory, and makes the operations of the graph.

use std::collections::BTreeMap;

use twill_graph::{Cycles, Operation, Storage};
use twill_machine::{Memory, TileOperation as Priced};

use super::Lowering;
use crate::error::Error;
use crate::tile::{Kind, Operand, Role, TileId, TileOperation, ValueId};

/// An operation of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An operation of the loop.
    Tile(TileId),
    /// The store of a tile to shared memory, for multiplies to read it there.
    Stage(ValueId),
}

/// The operations of the graph in order.
#[derive(Debug)]
pub(super) struct Staged {
    pub steps: Vec<Step>,
    /// Where in `steps` an operation of the loop stands.
    pub places: Vec<usize>,
    /// Where in `steps` a tile is stored to shared memory.
    pub stages: BTreeMap<ValueId, usize>,
}

/// Puts a store behind every operation whose result must go through shared memory.
pub(super) fn stage(lowering: &Lowering<'_>) -> Staged {
    let l = lowering.tile_loop;
    let through: Vec<ValueId> = l
        .operations()
        .iter()
        .flat_map(|op| op.operands.iter().filter(|operand| lowering.goes_through_shared(op, operand)))
        .flat_map(|operand| operand.tiles.iter().copied())
        .collect();
    let mut staged = Staged { steps: Vec::new(), places: Vec::new(), stages: BTreeMap::new() };
    for (index, op) in l.operations().iter().enumerate() {
        staged.places.push(staged.steps.len());
        staged.steps.push(Step::Tile(TileId::new(index)));
        if let Some(result) = op.result.filter(|result| through.contains(result)) {
            staged.stages.insert(result, staged.steps.len());
            staged.steps.push(Step::Stage(result));
        }
    }
    staged
}

impl Lowering<'_> {
    /// Whether an operand was computed in registers but has to be read from shared memory.
    pub(super) fn goes_through_shared(&self, op: &TileOperation, operand: &Operand) -> bool {
        if operand.tiles.iter().all(|value| self.is_shared(*value)) {
            return false;
        }
        let apart = operand.tiles.len() > 1 || operand.is_transposed();
        match operand.role {
            Role::Left => apart || !self.machine.tensor_core().left_operand.contains(&Memory::Registers),
            // Fragments of the right operand come from all warps' rows, so registers alone do not do.
            Role::Right => true,
            Role::Input => operand.is_transposed() && !matches!(op.kind, Kind::Store(_) | Kind::AtomicReduce(_)),
            Role::Accumulator | Role::Address => false,
        }
    }

    /// Whether a multiply reads its left operand from shared memory.
    pub(super) fn left_is_shared(&self, op: &TileOperation) -> bool {
        op.operand(Role::Left).is_some_and(|left| {
            self.goes_through_shared(op, left) || left.tiles.iter().all(|value| self.is_shared(*value))
        })
    }

    /// Whether a load depends on no tile.
    fn is_streaming(op: &TileOperation) -> bool {
        matches!(op.kind, Kind::Load(_)) && op.operands.is_empty()
    }

    fn operation(&self, op: &TileOperation, name: String) -> Result<Operation, Error> {
        let cost = self.cost(op)?;
        let streaming = Self::is_streaming(op) && cost.variable_latency;
        let transfer = self.machine.transfer_latency();
        // Nothing hides the way to memory of a load that cannot run ahead.
        let waits = matches!(op.kind, Kind::Load(_)) && !streaming;
        let latency = if waits { cost.latency.max(transfer) } else { cost.latency };
        Ok(Operation {
            name,
            kind: op.label().to_owned(),
            source: op.place.source.clone(),
            reservations: cost.reservations,
            occupancy: cost.occupancy,
            latency,
            execution: cost.execution,
            issue_width: cost.issue_width,
            storage: self.storage(op),
            variable_latency: cost.variable_latency,
            streaming,
            handoff: self.handoff(op),
            transfer_latency: if streaming { transfer } else { latency },
            sub_tile: op.sub_tile,
        })
    }

    fn stage_operation(&self, value: ValueId, op: &TileOperation, name: &str) -> Result<Operation, Error> {
        let bytes = self.bytes(self.tile_loop.tile(value));
        let cost = self
            .machine
            .cost(&Priced::ToShared { bytes })
            .map_err(|error| Error::Cost { place: op.place.clone(), error: Box::new(error) })?;
        Ok(Operation {
            name: name.to_owned(),
            kind: "store_shared".to_owned(),
            source: op.place.source.clone(),
            reservations: cost.reservations,
            occupancy: cost.occupancy,
            latency: cost.latency,
            execution: cost.execution,
            issue_width: cost.issue_width,
            storage: Storage::Shared(bytes),
            variable_latency: false,
            streaming: false,
            handoff: Cycles::ZERO,
            transfer_latency: cost.latency,
            sub_tile: op.sub_tile,
        })
    }
}

impl Staged {
    /// The operations with their costs.
    pub fn operations(&self, lowering: &Lowering<'_>) -> Result<Vec<Operation>, Error> {
        let l = lowering.tile_loop;
        let names = l.operation_names();
        let mut operations: Vec<Operation> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            operations.push(match *step {
                Step::Tile(id) => lowering.operation(l.operation(id), names[id.index()].clone())?,
                Step::Stage(value) => {
                    // A tile that is stored was computed by an operation of the loop.
                    let Some(id) = l.producer(value) else { continue };
                    let op = l.operation(id);
                    let whole = &names[id.index()];
                    let stem = op.sub_tile.and_then(|s| whole.strip_suffix(&format!(".{s}"))).unwrap_or(whole);
                    let name = match op.sub_tile {
                        Some(s) => format!("{stem}.shared.{s}"),
                        None => format!("{stem}.shared"),
                    };
                    lowering.stage_operation(value, op, &name)?
                }
            });
        }
        Ok(operations)
    }
}
