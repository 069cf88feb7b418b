//! Shared memory of loops whose loads run ahead. A loop has ended, with all its copies, before the next one begins: that takes
//! the rings of those before it, where tiles are alike, so that several CTAs share a multiprocessor.

use super::Builder;
use super::runs_ahead::AsyncLoad;
use crate::ir::{Buffer, BufferId};
use twill_triton::mlir::Type;

/// Rows and bytes of a row from which on a tile has a layout that the tensor core reads.
const LEAST_SWIZZLED: (u64, u64) = (8, 32);

/// The ring of a load, with so many slots.
pub(super) enum Ring {
    /// That of a loop before.
    Earlier(BufferId, u32),
    New(RingTile, u32),
}

/// A tile in a slot.
pub(super) struct RingTile {
    pub shape: Vec<u64>,
    pub element: Type,
    /// Whether its layout is none that the tensor core reads.
    pub plain: bool,
}

impl RingTile {
    fn bytes(&self) -> u64 {
        bytes(&self.shape, &self.element)
    }

    fn is_of(&self, buffer: &Buffer) -> bool {
        (&self.shape, &self.element, self.plain) == (&buffer.shape, &buffer.element, buffer.plain)
    }
}

impl Builder<'_> {
    /// A ring for each load of a loop, with at least so many slots.
    pub(super) fn rings(&self, loads: &[AsyncLoad], slots: u32) -> Vec<Ring> {
        let mut free: Vec<BufferId> = (0..self.buffers.len()).map(BufferId::at).collect();
        loads
            .iter()
            .map(|load| {
                let tile = self.ring_tile(*load);
                match free.iter().position(|id| tile.is_of(&self.buffers[id.index()])) {
                    Some(k) => {
                        let buffer = free.remove(k);
                        Ring::Earlier(buffer, slots.max(self.buffers[buffer.index()].slots))
                    }
                    None => Ring::New(tile, slots),
                }
            })
            .collect()
    }

    /// Shared memory of all rings so far and those of a loop, in bytes.
    pub(super) fn ring_bytes(&self, loads: &[AsyncLoad], slots: u32) -> u64 {
        let size = |buffer: &Buffer| bytes(&buffer.shape, &buffer.element);
        let before: u64 = self.buffers.iter().map(|buffer| size(buffer) * u64::from(buffer.slots)).sum();
        let more = self.rings(loads, slots).into_iter().map(|ring| match ring {
            Ring::Earlier(buffer, slots) => {
                let buffer = &self.buffers[buffer.index()];
                size(buffer) * u64::from(slots - buffer.slots)
            }
            Ring::New(tile, slots) => tile.bytes() * u64::from(slots),
        });
        before + more.sum::<u64>()
    }

    fn ring_tile(&self, of: AsyncLoad) -> RingTile {
        let kind = self.module.type_of(self.module.operation(of.id).results[0]);
        let (mut shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        if of.turned {
            shape.reverse();
        }
        let row = bytes(shape.last().map_or(&[], std::slice::from_ref), &element);
        let plain = shape.len() != 2 || shape[0] < LEAST_SWIZZLED.0 || row < LEAST_SWIZZLED.1;
        RingTile { shape, element, plain }
    }
}

/// Bytes of a tile.
pub(super) fn bytes(shape: &[u64], element: &Type) -> u64 {
    shape.iter().product::<u64>() * u64::from(element.scalar_bits().unwrap_or(8)) / 8
}
