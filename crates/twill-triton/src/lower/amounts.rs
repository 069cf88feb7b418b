//! The amounts of a tile: register words, bytes, columns, elements to compute.

use twill_graph::{Bytes, Columns, Cycles, Storage, Words};

use super::LoopLowering;
use crate::tile::{Origin, Role, Tile, TileLoop, TileOpKind, TileOperation, ValueId};

impl TileLoop {
    /// Returns whether any tile has two dimensions of more than one element.
    pub(super) fn has_planes(&self) -> bool {
        self.tiles().iter().any(|tile| tile.shape.iter().filter(|extent| **extent > 1).count() > 1)
    }
}

impl LoopLowering<'_> {
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

    pub(super) fn elements(tile: &Tile) -> u64 {
        tile.shape.iter().product()
    }

    /// Elements that threads compute, copies included.
    pub(super) fn computed_elements(&self, tile: &Tile) -> u64 {
        Self::elements(tile).saturating_mul(self.copies(tile))
    }

    /// Registers that a tile takes; an element of a replicated vector has a register of its own.
    pub(super) fn words(&self, tile: &Tile) -> Words {
        match self.copies(tile) {
            1 => self.machine.register_words(Self::elements(tile), tile.element.bits()),
            _ => self.machine.register_words(self.computed_elements(tile), tile.element.bits().max(32)),
        }
    }

    /// Memory that a tile takes.
    pub(super) fn bytes(&self, tile: &Tile) -> Bytes {
        self.machine.bytes(Self::elements(tile), tile.element.bits())
    }

    /// Tensor memory of a tile that MMAs read there.
    pub(super) fn operand_columns(&self, tile: &Tile) -> Columns {
        let (rows, columns) = plane(&tile.shape);
        self.machine.tensor_columns(rows, columns, tile.element.bits())
    }

    /// Tensor memory of a tile that MMAs add to: a column an element, in whole instructions.
    pub(super) fn accumulator_columns(&self, tile: &Tile) -> Columns {
        let (rows, columns) = plane(&tile.shape);
        let whole = columns.next_multiple_of(self.machine.tensor_core().instruction_columns.max(1));
        self.machine.tensor_columns(rows, whole, tile.element.bits().max(32))
    }

    /// Where an operation leaves its result.
    pub(super) fn storage(&self, op: &TileOperation) -> Storage {
        match (op.result, op.kind) {
            (None, _) => Storage::None,
            (Some(result), TileOpKind::Load(_)) => Storage::Shared(self.bytes(self.tile_loop.tile(result))),
            (Some(result), TileOpKind::Dot { .. }) if self.accumulates_in_tensor_memory() => {
                Storage::Tensor(self.accumulator_columns(self.tile_loop.tile(result)))
            }
            (Some(result), _) => Storage::Registers(self.words(self.tile_loop.tile(result))),
        }
    }

    /// Cycles to hand a tile in registers to another warp group: one copy of every element goes.
    pub(super) fn handoff(&self, tile: &Tile) -> Cycles {
        let words = self.words(tile);
        self.machine.handoff(if self.copies(tile) == 1 { words } else { Words(Self::elements(tile)) })
    }

    /// Shared memory of loop-invariant tiles that MMAs read there.
    pub(super) fn reserved(&self) -> Bytes {
        let mut read: Vec<ValueId> = self
            .tile_loop
            .operations()
            .iter()
            .flat_map(|op| &op.operands)
            .filter(|operand| match operand.role {
                Role::Left | Role::Right => true,
                Role::Accumulator => self.accumulates_in_tensor_memory(),
                Role::Input | Role::Address => false,
            })
            .flat_map(|operand| operand.tiles.iter().copied())
            .filter(|value| matches!(self.tile_loop.tile(*value).origin, Origin::Invariant { .. }))
            .collect();
        read.sort_unstable();
        read.dedup();
        Bytes(read.into_iter().map(|value| self.bytes(self.tile_loop.tile(value)).0).sum())
    }
}

/// Rows and columns of a shape.
pub(super) fn plane(shape: &[u64]) -> (u64, u64) {
    shape.split_last().map_or((1, 1), |(columns, rows)| (rows.iter().product(), *columns))
}
