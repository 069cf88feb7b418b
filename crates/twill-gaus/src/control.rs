//! When to stop, and who is told how it goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use twill_graph::MemoryBudget;

/// How long a search may take. The answer is the best schedule found by then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control<'c> {
    /// Time, if it is limited. With a limit, the answer may depend on the machine.
    pub time: Option<Duration>,
    /// Set from elsewhere to stop as soon as possible.
    pub interrupt: Option<&'c AtomicBool>,
    /// Memory, if it is limited.
    pub memory: Option<MemoryBudget>,
}

/// A control, running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock<'c> {
    started: Instant,
    until: Option<Instant>,
    interrupt: Option<&'c AtomicBool>,
    memory: Option<MemoryBudget>,
}

impl<'c> Clock<'c> {
    pub fn start(control: Control<'c>) -> Self {
        let started = Instant::now();
        let until = control.time.and_then(|time| started.checked_add(time));
        Self { started, until, interrupt: control.interrupt, memory: control.memory }
    }

    /// A clock for a part of what is left: over after `share` of the remaining time.
    pub fn share(&self, share: f64) -> Self {
        let now = Instant::now();
        let until = self.until.map(|until| now + until.saturating_duration_since(now).mul_f64(share.clamp(0.0, 1.0)));
        Self { until, ..*self }
    }

    /// How much of the time of this clock is gone, from 0 to 1; 0 where time is not limited.
    pub fn gone(&self, since: Instant) -> f64 {
        let Some(until) = self.until else { return 0.0 };
        let all = until.saturating_duration_since(since).as_secs_f64();
        if all > 0.0 { (since.elapsed().as_secs_f64() / all).min(1.0) } else { 1.0 }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn is_over(&self) -> bool {
        self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until)
            || self.memory.is_some_and(|memory| memory.is_used_up())
    }
}
