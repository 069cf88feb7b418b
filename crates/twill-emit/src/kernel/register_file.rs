//! The register file of a Hopper multiprocessor, dealt out to the groups of a CTA.

/// Registers a thread that each of so many groups gets that compute, beside a group that only starts loads.
pub fn register_share(compute: u32) -> u32 {
    registers(false, false, 0, compute)
}

/// Registers a thread: groups that compute share what the file of 64 K words has, evenly, which is at least what a
/// schedule with even shares grants. `setmaxnreg` deals out multiples of 8 to 128 threads at a time; ptxas assumes an even
/// share at the kernel's entry, so the shares must sum up to that. More than 240 changed nothing where it was measured.
/// `copies`: the threads that load hold addresses; `rings`: how many rings and buffers the group that loads serves, each
/// with a slot and a phase.
pub(super) fn registers(is_loader: bool, copies: bool, rings: usize, compute: u32) -> u32 {
    let groups = compute + 1;
    let entry = (65536 / (128 * groups)).min(255) / 8 * 8;
    let loader = match compute {
        _ if copies => 72,
        _ if rings > 4 => 40,
        0..=2 => 24,
        _ => 32,
    };
    if is_loader { loader } else { ((entry * groups - loader) / compute.max(1) / 8 * 8).min(240) }
}
