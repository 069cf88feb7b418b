//! How long to search, and whether to keep what is found.

use super::{numbers, processor};
use memory_stats::memory_stats;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use twill_exact::{Budget, Clock, ExplainOptions, SearchOptions};
use twill_graph::{Cycles, MemoryBudget};
use web_time::Instant;

/// Seconds that a search may take when nothing is said.
pub const DEFAULT_SECONDS: f64 = 20.0;

/// Seconds for all searches for a kernel when nothing is said. A choice: with what is assembled after that, a kernel takes half a minute
/// on two cores.
const COMPILE_SECONDS: f64 = 25.0;

/// Bytes of a megabyte, as limits count them.
const MEGABYTE: u64 = 1_000_000;

/// How long to search, and whether to keep what is found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Search"))]
pub struct SearchLimits {
    /// Largest initiation interval to try, in cycles.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { 1 << 40 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "CYCLES", allow_negative_numbers = true, value_parser = numbers::whole::<1, { 1 << 40 }, i64>))]
    pub max_interval: Option<i64>,
    /// Stop after SECONDS with the best known.
    ///
    /// none sets no limit. The default is 20, or 25 for twill compile, which searches many times.
    #[serde(with = "numbers::time")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = numbers::seconds_or_none, allow_negative_numbers = true))]
    pub time_limit: Option<f64>,
    /// Have --time-limit count CPU time, of Twill and of compilers that it has run: what else a machine does changes nothing.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub processor_time: bool,
    /// Stop after UNITS of work, about a million a second; reproducible.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "UNITS"))]
    pub work_limit: Option<u64>,
    /// Stop when the process uses MEGABYTES (10^6 bytes) of memory.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "MEGABYTES", value_parser = numbers::whole::<1, { u64::MAX }, u64>))]
    pub memory_limit: Option<u64>,
    /// Neither read nor write the cache, as TWILL_CACHE=off.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_cache: bool,
}

impl SearchLimits {
    /// How to search from `started` until `interrupt` is set.
    pub fn search(&self, started: Instant, interrupt: Arc<AtomicBool>) -> SearchOptions {
        SearchOptions {
            budget: self.budget(started, interrupt),
            largest_interval: self.max_interval.map(Cycles),
            ..SearchOptions::default()
        }
    }

    /// How to search for code where nothing is said of time: it is searched for many times, within limits of work, and must not
    /// depend on how fast the machine is.
    #[must_use]
    pub fn patient(&self) -> SearchLimits {
        SearchLimits { time_limit: self.time_limit.or(Some(COMPILE_SECONDS)), ..self.clone() }
    }

    /// The budget of a search that began at `started` and ends when `interrupt` is set.
    pub fn budget(&self, started: Instant, interrupt: Arc<AtomicBool>) -> Budget {
        let time = self.seconds().map(Duration::from_secs_f64);
        let clock = if self.processor_time { Clock(processor::now) } else { Clock::default() };
        let begun = if self.processor_time { clock.now() } else { started };
        Budget {
            clock,
            time,
            work: self.work_limit,
            // A moment too far to represent never comes.
            until: time.and_then(|time| begun.checked_add(time)),
            memory: self.memory(),
            interrupt: Some(interrupt),
        }
    }

    /// Seconds that there are; `None` without a limit.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.time_limit.unwrap_or(DEFAULT_SECONDS)).filter(|seconds| seconds.is_finite())
    }

    /// How much memory there may be in use.
    pub fn memory(&self) -> Option<MemoryBudget> {
        memory(self.memory_limit)
    }
}

/// How much memory there may be in use, of a limit in megabytes.
pub(super) fn memory(limit: Option<u64>) -> Option<MemoryBudget> {
    limit.map(|megabytes| MemoryBudget { bytes: megabytes.saturating_mul(MEGABYTE), used })
}

/// How hard to explain what a search finds. The search keeps half of its time, and the explanation has all that is left then; the
/// limit of work is the search's. `effort` is the work of each question about a conflict.
pub fn explain_options(search: &mut SearchOptions, effort: u64, what_ifs: bool) -> ExplainOptions {
    let budget = Budget { work: None, time: None, ..search.budget.clone() };
    search.budget.time = search.budget.time.map(|time| time / 2);
    ExplainOptions {
        budget,
        question_work: effort,
        what_if_work: effort.saturating_mul(4),
        what_ifs,
        largest_interval: search.largest_interval,
    }
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
