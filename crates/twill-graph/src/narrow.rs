//! Counts and positions as 32 bits.

/// A count or a position in a list as 32 bits: lists have fewer than 2³² entries, as each takes memory.
pub fn narrow(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok(), "a list of {count} entries");
    count as u32
}
