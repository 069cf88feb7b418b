//! What a command may take: time since it began, work, memory of the process.

use crate::arguments::BudgetArguments;
use memory_stats::memory_stats;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use twill_exact::{Budget, SearchOptions};
use twill_graph::MemoryBudget;

/// Bytes of a megabyte, as limits count them.
const MEGABYTE: u64 = 1_000_000;

/// When the command began; the first call says.
pub(crate) fn started() -> Instant {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    *STARTED.get_or_init(Instant::now)
}

impl BudgetArguments {
    /// The budget of a search that began at `started` and ends when `interrupt` is set.
    pub(crate) fn budget(&self, started: Instant, interrupt: Arc<AtomicBool>) -> Budget {
        let time = self.time_limit.map(Duration::from_secs_f64);
        Budget {
            time,
            work: self.work_limit,
            // A moment too far to represent never comes.
            until: time.and_then(|time| started.checked_add(time)),
            memory: self.memory(),
            interrupt: Some(interrupt),
        }
    }

    /// How much memory there may be in use.
    pub(crate) fn memory(&self) -> Option<MemoryBudget> {
        self.memory_limit.map(|megabytes| MemoryBudget { bytes: megabytes.saturating_mul(MEGABYTE), used })
    }
}

/// Leaves a search half of its time; gives back what an explanation of what it finds has: all that is left of the time then,
/// and no limit of work, which is the search's.
pub(crate) fn for_explanation(search: &mut SearchOptions) -> Budget {
    let budget = Budget { work: None, time: None, ..search.budget.clone() };
    search.budget.time = search.budget.time.map(|time| time / 2);
    budget
}

/// Resident memory of the process in bytes; 0 where the system does not tell. What was read is good for some milliseconds, in
/// which a search takes a few megabytes.
fn used() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static USED: AtomicU64 = AtomicU64::new(0);
    let now = started().elapsed().as_millis() as u64;
    if now >= NEXT.load(Ordering::Relaxed) {
        NEXT.store(now + 2, Ordering::Relaxed);
        USED.store(memory_stats().map_or(0, |memory| memory.physical_mem as u64), Ordering::Relaxed);
    }
    USED.load(Ordering::Relaxed)
}
