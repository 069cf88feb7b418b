//! What a command may take: time since it began, work, memory of the process.

use crate::arguments::BudgetArguments;
use crate::{Exit, progress};
use memory_stats::memory_stats;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use twill_exact::{Budget, SearchOptions};
use twill_graph::MemoryBudget;

/// Bytes of a megabyte, as limits count them.
const MEGABYTE: u64 = 1_000_000;

/// Seconds that a search may take when nothing is said.
pub(crate) const DEFAULT_SECONDS: f64 = 20.0;

thread_local! {
    /// When the command that this thread runs was called: one process may run many, one after the other.
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A command begins.
pub(crate) fn begin() {
    STARTED.set(Some(Instant::now()));
}

/// When the command began; now, where none did.
pub(crate) fn started() -> Instant {
    STARTED.get().unwrap_or_else(Instant::now)
}

impl BudgetArguments {
    /// The budget of a search that began at `started` and ends when `interrupt` is set.
    pub(crate) fn budget(&self, started: Instant, interrupt: Arc<AtomicBool>) -> Budget {
        let time = self.seconds().map(Duration::from_secs_f64);
        Budget {
            time,
            work: self.work_limit,
            // A moment too far to represent never comes.
            until: time.and_then(|time| started.checked_add(time)),
            memory: self.memory(),
            interrupt: Some(interrupt),
        }
    }

    /// Seconds that there are; `None` without a limit.
    pub(crate) fn seconds(&self) -> Option<f64> {
        Some(self.time_limit.unwrap_or(DEFAULT_SECONDS)).filter(|seconds| seconds.is_finite())
    }

    /// Says on standard error why a search was stopped, and how it goes on.
    pub(crate) fn explain_stop(&self, quiet: bool, exit: Exit) -> Exit {
        if exit != Exit::Stopped || quiet {
            return exit;
        }
        let known = "what is known by now is shown, with its bound";
        if progress::is_interrupted() {
            eprintln!("interrupted: {known}");
        } else if self.work_limit.is_some() || self.memory_limit.is_some() {
            eprintln!("stopped by a limit of time, work or memory: {known}");
        } else if let Some(seconds) = self.seconds() {
            let which = if self.time_limit.is_none() { "the default time limit" } else { "--time-limit" };
            eprintln!("stopped by {which} of {seconds} s: {known} (--time-limit none goes on)");
        }
        exit
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
    static FIRST: OnceLock<Instant> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static USED: AtomicU64 = AtomicU64::new(0);
    let now = FIRST.get_or_init(Instant::now).elapsed().as_millis() as u64;
    if now >= NEXT.load(Ordering::Relaxed) {
        NEXT.store(now + 2, Ordering::Relaxed);
        USED.store(memory_stats().map_or(0, |memory| memory.physical_mem as u64), Ordering::Relaxed);
    }
    USED.load(Ordering::Relaxed)
}
