//! How much of a tile there is: register words, bytes, elements to compute.

use twill_graph::{Bytes, Cycles, Storage, Words};

use super::Lowering;
use crate::tile::{Kind, Origin, Role, Tile, TileLoop, TileOperation, ValueId};

impl TileLoop {
    /// Whether any tile has two dimensions of more than one element.
    pub(super) fn has_planes(&self) -> bool {
        self.tiles().iter().any(|tile| tile.shape.iter().filter(|extent| **extent > 1).count() > 1)
    }
}

impl Lowering<'_> {
    /// Threads that have a copy of each element.
    fn copies(&self, tile: &Tile) -> u64 {
        let mut large = (0..tile.shape.len()).filter(|d| tile.shape[*d] > 1);
        let threads = 32 * u64::from(self.machine.resources().compute_groups.warps);
        match (large.next(), large.next()) {
            (Some(_), Some(_)) => 1,
            (Some(_), None) if self.whole_vectors => 1,
            (Some(d), None) if tile.row_dimension == Some(d) => self.machine.row_statistic_copies(),
            (Some(_), None) => (threads / self.machine.row_statistic_copies().max(1)).max(1),
            (None, _) => threads,
        }
    }

    fn elements(tile: &Tile) -> u64 {
        tile.shape.iter().product()
    }

    /// Elements that threads compute, copies included.
    pub(super) fn computed_elements(&self, tile: &Tile) -> u64 {
        Self::elements(tile).saturating_mul(self.copies(tile))
    }

    /// Registers that a tile takes; an element of a replicated vector has a register of its own.
    fn words(&self, tile: &Tile) -> Words {
        match self.copies(tile) {
            1 => self.machine.register_words(Self::elements(tile), tile.element.bits()),
            _ => self.machine.register_words(self.computed_elements(tile), tile.element.bits().max(32)),
        }
    }

    /// Memory that a tile takes.
    pub(super) fn bytes(&self, tile: &Tile) -> Bytes {
        self.machine.bytes(Self::elements(tile), tile.element.bits())
    }

    /// Where an operation leaves its result.
    pub(super) fn storage(&self, op: &TileOperation) -> Storage {
        match (op.result, op.kind) {
            (None, _) => Storage::None,
            (Some(result), Kind::Load(_)) => Storage::Shared(self.bytes(self.tile_loop.tile(result))),
            (Some(result), _) => Storage::Registers(self.words(self.tile_loop.tile(result))),
        }
    }

    /// Whether a tile is read from shared memory: those of before the loop that stay there, and loaded ones.
    pub(super) fn is_shared(&self, value: ValueId) -> bool {
        match self.tile_loop.producer(value) {
            None => true,
            Some(producer) => matches!(self.tile_loop.operation(producer).kind, Kind::Load(_)),
        }
    }

    /// Cycles to hand a result in registers to another warp group: one copy of every element goes.
    pub(super) fn handoff(&self, op: &TileOperation) -> Cycles {
        match (op.result, self.storage(op)) {
            (Some(result), Storage::Registers(words)) => {
                let tile = self.tile_loop.tile(result);
                self.machine.handoff(if self.copies(tile) == 1 { words } else { Words(Self::elements(tile)) })
            }
            _ => Cycles::ZERO,
        }
    }

    /// Shared memory of tiles that multiplies find there when the loop is entered.
    pub(super) fn reserved(&self) -> Bytes {
        let mut read: Vec<ValueId> = self
            .tile_loop
            .operations()
            .iter()
            .flat_map(|op| &op.operands)
            .filter(|operand| matches!(operand.role, Role::Left | Role::Right))
            .flat_map(|operand| operand.tiles.iter().copied())
            .filter(|value| matches!(self.tile_loop.tile(*value).origin, Origin::Invariant { .. }))
            .collect();
        read.sort_unstable();
        read.dedup();
        Bytes(read.into_iter().map(|value| self.bytes(self.tile_loop.tile(value)).0).sum())
    }
}
