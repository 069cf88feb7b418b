//! Hopper: `wgmma`, whose result is in registers.

use super::RegisterDemand;

/// Rows that one instruction of a warp group multiplies (PTX ISA, `wgmma`).
pub(crate) const MMA_ROWS: u64 = 64;

/// Registers a thread that each of N compute groups gets, next to a group that only starts loads.
pub fn register_share(compute: u32) -> u32 {
    registers(RegisterDemand { compute, computes: true, copied: 0, rings: 0, granted: 0, loading: None, ctas: 1 })
}

/// Registers a thread at the entry of a CTA of N groups of four warps, which is one of so many that share the register file.
pub fn entry_registers(groups: u32, ctas: u32) -> u32 {
    (65536 / (128 * (groups * ctas).max(1))).min(255) / 8 * 8
}

/// Registers a thread of a group that copies through pointers, at least.
const COPIES: u32 = 72;
/// Registers of a group that copies apart from what it copies: slots, phases, bounds and pointers of the kernel.
const LOOP: u32 = 48;

/// What groups that compute keep, however many registers copies would like: an accumulator of 64 × 256, or of 64 × 128, and its
/// surroundings; of more groups than three an even share.
fn least_computing(compute: u32, entry: u32) -> u32 {
    match compute {
        0 | 1 => 240,
        2 => 192,
        3 => 128,
        _ => entry,
    }
}

/// Registers a thread: groups that compute share what the file of 64 K words has, evenly, which is at least what a
/// schedule with even shares grants. `setmaxnreg` allots multiples of 8 to 128 threads at a time; ptxas assumes an even
/// share at the kernel's entry, so the shares must sum up to that. More than 240 changed nothing where it was measured.
pub(crate) fn registers(demand: RegisterDemand) -> u32 {
    let RegisterDemand { compute, computes, copied, rings, loading, ctas, .. } = demand;
    let groups = compute + 1;
    let entry = entry_registers(groups, ctas);
    let rest = (entry * groups).saturating_sub(compute * least_computing(compute, entry)).min(240);
    let loader = match compute {
        _ if ctas > 1 => loading
            .unwrap_or(entry)
            .next_multiple_of(8)
            .clamp(24, (entry * groups).saturating_sub(24 * compute).max(24)),
        // What one group cannot have is of no use to another.
        0 | 1 => rest,
        _ if let Some(loading) = loading => loading.next_multiple_of(8).clamp(24, rest.max(COPIES)),
        _ if copied > 0 => (LOOP + copied).next_multiple_of(8).clamp(COPIES, rest.max(COPIES)),
        _ if rings > 4 => 40,
        0..=2 => 24,
        _ => 32,
    };
    if computes { ((entry * groups - loader) / compute.max(1) / 8 * 8).min(240) } else { loader }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_load_have_what_others_can_spare() {
        let demand =
            RegisterDemand { compute: 1, computes: false, copied: 0, rings: 2, granted: 0, loading: None, ctas: 1 };
        let both =
            |demand: RegisterDemand| [true, false].map(|computes| registers(RegisterDemand { computes, ..demand }));
        // One group cannot have more than 240.
        assert_eq!(both(demand), [240, 240]);
        let two = RegisterDemand { compute: 2, ..demand };
        assert_eq!(both(two), [240, 24]);
        assert_eq!(both(RegisterDemand { loading: Some(50), ..two }), [224, 56]);
        // An accumulator of 64 × 128 and its surroundings stay.
        assert_eq!(both(RegisterDemand { loading: Some(240), ..two }), [192, 120]);
        // Two CTAs have 128 for each thread of two groups.
        assert_eq!(both(RegisterDemand { ctas: 2, loading: Some(50), ..demand }), [200, 56]);
        assert_eq!(both(RegisterDemand { ctas: 2, ..two }), [80, 80]);
    }
}
