//! Blackwell: `tcgen05.mma`, whose result is in tensor memory.

use super::RegisterDemand;

/// Rows that one instruction multiplies (PTX ISA, `tcgen05.mma`).
pub(crate) const MMA_ROWS: [u64; 2] = [64, 128];

/// Registers a thread of a warp that only loads or only issues MMAs.
const ONE_WARP: u32 = 48;
/// The least that `setmaxnreg` grants.
const LEAST: u32 = 24;
/// The most that is asked for: ptxas compiles for 255, and `setmaxnreg` allots multiples of 8.
const MOST: u32 = 240;

/// Registers a thread where one warp loads and one issues MMAs, which share a warp group: what the schedule grants to
/// groups that compute, evenly all that these two leave over. At the kernel's entry ptxas assumes an even share.
pub(crate) fn registers(demand: RegisterDemand) -> u32 {
    let RegisterDemand { compute, computes, copied, granted, .. } = demand;
    let copies = copied > 0;
    // Where threads copy, the warp that issues MMAs has a warp group to itself.
    let groups = compute + 1 + u32::from(copies);
    let all = (65536 / (128 * groups)).min(255) / 8 * 8 * groups;
    let few = 1 + u32::from(copies);
    let share = (all - few * ONE_WARP) / compute.max(1) / 8 * 8;
    // An uneven grant is made even if there is not enough for all.
    let each = share.max(granted.min((all - few * LEAST) / compute.max(1) / 8 * 8)).min(MOST);
    if computes { each } else { ((all - each * compute) / few).clamp(LEAST, MOST) / 8 * 8 }
}
