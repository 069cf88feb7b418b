//! The route by which an operation reads its tiles.
//!
//! | tile | reader | way |
//! |---|---|---|
//! | loaded, or of before the loop | any | where it is, in shared memory |
//! | in registers | MMA, right operand; left operand that is transposed, in several parts, or stored for another MMA anyway | store to shared memory |
//! | in registers | MMA, left operand | where it is if the machine lets it; otherwise store to tensor memory |
//! | in registers | MMA, accumulator in tensor memory | store to tensor memory |
//! | in tensor memory | MMA, accumulator, if nobody reads it later | where it is |
//! | in tensor memory | MMA, left operand | where it is |
//! | in tensor memory | anything else | load to registers, and from there as above |

use twill_machine::Memory;

use super::LoopLowering;
use crate::tile::{Operand, Role, TileOpKind, TileOperation, ValueId};

/// How an operation gets at a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Where its producer left it.
    Direct,
    /// A store puts it into shared memory.
    Shared,
    /// A load brings it from tensor memory to registers.
    Registers,
    /// A store puts it into tensor memory, for all MMAs that read it there.
    Tensor,
    /// A store puts it into tensor memory for this MMA, which adds to it in place.
    Accumulator,
}

impl LoopLowering<'_> {
    /// The way from a tile to an operation that reads it.
    pub(super) fn route(&self, op: &TileOperation, operand: &Operand, value: ValueId) -> Route {
        let core = self.machine.tensor_core();
        let in_tensor = self.is_in_tensor_memory(value);
        match operand.role {
            Role::Accumulator if self.accumulates_in_tensor_memory() => {
                let in_place = in_tensor && self.is_plain(operand) && self.is_last_reader(operand, value);
                if in_place { Route::Direct } else { Route::Accumulator }
            }
            Role::Left if in_tensor && self.is_plain(operand) && core.left_operand.contains(&Memory::Tensor) => {
                Route::Direct
            }
            _ if !self.is_shared(value) && self.goes_through_shared(op, operand) => Route::Shared,
            Role::Left if !self.is_shared(value) && !core.left_operand.contains(&Memory::Registers) => Route::Tensor,
            _ if in_tensor => Route::Registers,
            _ => Route::Direct,
        }
    }

    /// Returns whether MMAs leave their results in tensor memory.
    pub(super) fn accumulates_in_tensor_memory(&self) -> bool {
        self.machine.tensor_core().accumulator == Memory::Tensor
    }

    /// Returns whether a tile is read from shared memory: those of before the loop that stay there, and loaded ones.
    pub(super) fn is_shared(&self, value: ValueId) -> bool {
        match self.tile_loop.producer(value) {
            None => true,
            Some(producer) => matches!(self.tile_loop.operation(producer).kind, TileOpKind::Load(_)),
        }
    }

    /// Returns whether a tile is the result of an MMA in tensor memory.
    pub(super) fn is_in_tensor_memory(&self, value: ValueId) -> bool {
        let producer = self.tile_loop.producer(value);
        self.accumulates_in_tensor_memory()
            && producer.is_some_and(|id| matches!(self.tile_loop.operation(id).kind, TileOpKind::Dot { .. }))
    }

    /// Returns whether an operand was computed in registers but has to be read from shared memory.
    pub(super) fn goes_through_shared(&self, op: &TileOperation, operand: &Operand) -> bool {
        if operand.tiles.iter().all(|value| self.is_shared(*value)) {
            return false;
        }
        let left = &self.machine.tensor_core().left_operand;
        match operand.role {
            Role::Left if left.contains(&Memory::Registers) => Self::needs_shared(operand),
            // Where registers do not do, a tile that is in shared memory anyway is not stored a second time.
            Role::Left if left.contains(&Memory::Tensor) => {
                let operands = self.tile_loop.operations().iter().flat_map(|op| &op.operands);
                let mut others = operands.filter(|other| operand.tiles.iter().any(|tile| other.tiles.contains(tile)));
                !self.is_plain(operand) || others.any(Self::needs_shared)
            }
            Role::Left => true,
            // Fragments of the right operand come from all warps' rows, so registers alone do not do.
            Role::Right => true,
            Role::Input => {
                operand.is_transposed() && !matches!(op.kind, TileOpKind::Store(_) | TileOpKind::AtomicReduce(_))
            }
            Role::Accumulator | Role::Address => false,
        }
    }

    /// Returns whether an MMA finds an operand in shared memory or not at all.
    fn needs_shared(operand: &Operand) -> bool {
        match operand.role {
            Role::Left => operand.tiles.len() > 1 || operand.is_transposed(),
            Role::Right => true,
            Role::Input | Role::Accumulator | Role::Address => false,
        }
    }

    /// Returns whether an operand is one tile, as it is.
    fn is_plain(&self, operand: &Operand) -> bool {
        let [value] = operand.tiles.as_slice() else { return false };
        !operand.is_transposed() && operand.shape == self.tile_loop.tile(*value).shape
    }

    /// Returns whether an MMA may add to a result in its place: no other does, and nobody reads it in a later
    /// iteration.
    fn is_last_reader(&self, accumulator: &Operand, value: ValueId) -> bool {
        let operands = self.tile_loop.operations().iter().flat_map(|op| &op.operands);
        operands
            .filter(|other| other.tiles.contains(&value) && !std::ptr::eq(*other, accumulator))
            .all(|other| other.role != Role::Accumulator && other.distance <= accumulator.distance)
    }

    /// Returns whether an MMA reads its left operand from shared memory.
    pub(super) fn left_is_shared(&self, op: &TileOperation) -> bool {
        op.operand(Role::Left).is_some_and(|left| {
            self.goes_through_shared(op, left) || left.tiles.iter().all(|value| self.is_shared(*value))
        })
    }
}
