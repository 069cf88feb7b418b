//! What the program of a kernel takes of shared and tensor memory, with what Triton's compiler adds to it.

use crate::ir::{Buffer, WarpProgram};
use twill_triton::mlir::Type;

/// Bytes of an `mbarrier`.
const BARRIER: u64 = 8;
/// Bytes with which Triton 3.6 hands a scalar of the grid, a pointer or a tensor descriptor to a warp group.
const GRID_AXIS: u64 = 4;
const POINTER: u64 = 8;
/// Most scratch memory through which Triton changes the layout of a tile, part by part.
const SCRATCH: u64 = 4096;
/// Warps are allocated in fours.
const WARP_GROUP: u32 = 4;

impl WarpProgram {
    /// Bytes of shared memory of a CTA: buffers, barriers, and what Triton's compiler adds.
    pub fn shared_bytes(&self) -> u64 {
        self.buffers.iter().map(Buffer::shared_bytes).sum::<u64>() + self.barrier_bytes() + self.compiler_bytes()
    }

    /// Bytes of its barriers.
    pub fn barrier_bytes(&self) -> u64 {
        self.barriers.iter().map(|b| BARRIER * u64::from(b.slots)).sum()
    }

    /// Bytes that Triton's compiler takes in addition to buffers and barriers, at most: what the warp groups get as arguments from
    /// the first of them, a byte for each of their warps, and scratch memory.
    pub fn compiler_bytes(&self) -> u64 {
        let described = self.descriptors.len() as u64 * POINTER;
        let plain = self.parameters.iter().map(|p| match &p.kind {
            Type::TensorDescriptor(_) => 0,
            Type::Pointer { .. } => POINTER,
            other => u64::from(other.scalar_bits().unwrap_or(64).div_ceil(8)),
        });
        // A place in memory has an offset for each dimension, that of the slots included.
        let place = |dimensions: usize| 8 + 4 * dimensions as u64;
        let buffers = self.buffers.iter().filter(|b| !b.shape.is_empty()).map(|b| place(1 + b.shape.len()));
        let arguments = described + plain.sum::<u64>() + 3 * GRID_AXIS + buffers.sum::<u64>() + place(2);
        let workers: u32 = self.groups.iter().skip(1).map(|g| g.warps).sum();
        arguments.next_multiple_of(8) + u64::from(workers.next_multiple_of(WARP_GROUP)) + self.scratch_bytes()
    }

    /// Bytes through which tiles change their layout: with tensor memory, what groups hand to each other comes in another
    /// layout than it is needed in. More was never taken. On Hopper it is known when
    /// the kernel is assembled.
    fn scratch_bytes(&self) -> u64 {
        let handed_off = self.buffers.iter().filter(|b| b.plain && !b.is_tensor());
        let bytes = handed_off.map(|b| (b.bytes() / u64::from(b.slots.max(1))).min(SCRATCH)).sum();
        if self.buffers.iter().any(Buffer::is_tensor) { bytes } else { 0 }
    }

    /// Columns of tensor memory of a CTA.
    pub fn tensor_columns(&self) -> u64 {
        self.buffers.iter().map(Buffer::columns).sum()
    }
}
