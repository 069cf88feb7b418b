//! A limit of memory for searches.

/// How much memory there may be in use.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    /// Bytes at which a search stops.
    pub bytes: u64,
    /// Bytes that are in use now, as the caller counts them. It is called often, so it must be fast.
    pub used: fn() -> u64,
}

impl MemoryBudget {
    /// Returns whether more than the limit is in use.
    pub fn is_used_up(&self) -> bool {
        (self.used)() >= self.bytes
    }
}
