//! Hopper: `wgmma`, whose result is in registers.

use super::RegisterDemand;

/// Rows that one instruction of a warp group multiplies (PTX ISA, `wgmma`).
pub(crate) const MMA_ROWS: u64 = 64;

/// Registers a thread that each of N compute groups gets, next to a group that only starts loads.
pub fn register_share(compute: u32) -> u32 {
    registers(RegisterDemand { compute, computes: true, copies: false, rings: 0, granted: 0 })
}

/// Registers a thread: groups that compute share what the file of 64 K words has, evenly, which is at least what a
/// schedule with even shares grants. `setmaxnreg` allots multiples of 8 to 128 threads at a time; ptxas assumes an even
/// share at the kernel's entry, so the shares must sum up to that. More than 240 changed nothing where it was measured.
pub(crate) fn registers(demand: RegisterDemand) -> u32 {
    let RegisterDemand { compute, computes, copies, rings, .. } = demand;
    let groups = compute + 1;
    let entry = (65536 / (128 * groups)).min(255) / 8 * 8;
    let loader = match compute {
        _ if copies => 72,
        _ if rings > 4 => 40,
        0..=2 => 24,
        _ => 32,
    };
    if computes { ((entry * groups - loader) / compute.max(1) / 8 * 8).min(240) } else { loader }
}
