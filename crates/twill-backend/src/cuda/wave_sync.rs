//! Soft grid barrier (wave sync): what CTAs load of the same tiles reaches the L2 cache once, and the power that this
//! saves is clock rate (bench/results/variants.md). The barrier decides when a CTA loads, never what, and a wait ends
//! after a bounded time, so the protocol needs no proof of it.

use super::one_thread::{beyond_one_thread, is_one_thread};
use super::tensor_memory;
use twill_codegen::Error;
use twill_codegen::ir::{Group, WarpProgram};
use twill_codegen::ir::{Op, any};

/// Ahead of the tiles.
pub(super) const BEGIN: &str = "grid_barrier wave_sync_;";

/// Ahead of a tile's first loop.
pub(super) const WAIT: &str = "wave_sync_.wait(tile_at_, tile_count(programs_x, programs_y, programs_z));";

/// After the tiles.
pub(super) const END: &str = "wave_sync_.leave();";

/// Whether this group waits for the loading groups of the other CTAs.
pub(super) fn is_waiting_group(kernel: &WarpProgram, group: &Group) -> bool {
    kernel.tile_scheduler.wave_sync
        && is_one_thread(kernel, group)
        && any(&group.body, |op| matches!(op, Op::TmaLoad { .. }))
}

/// Refuses a wave sync that the kernel cannot have.
pub(super) fn check(kernel: &WarpProgram) -> Result<(), Error> {
    let refuse = |what: &str| Err(Error::NoWaveSync { what: what.to_owned() });
    if !kernel.tile_scheduler.wave_sync {
        Ok(())
    } else if tensor_memory::is_used(kernel) {
        refuse("kernels with tensor memory were not measured so")
    } else if !kernel.tile_scheduler.persistent {
        refuse("these CTAs work on one tile each, as with --persistent off")
    } else if kernel.tile_scheduler.serpentine().is_some() {
        refuse("their tiles have loops of different length")
    } else if kernel.groups.iter().filter(|group| is_waiting_group(kernel, group)).count() != 1 {
        let loader = kernel.groups.iter().find(|group| group.warps == 1);
        let line = loader.and_then(beyond_one_thread).and_then(|note| note.line);
        let why = line.map_or_else(String::new, |line| format!("; one warp also does what line {line} says"));
        refuse(&format!("here no single thread does all loads through tensor descriptors{why}"))
    } else {
        Ok(())
    }
}
