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
    /// Set from elsewhere when there is nothing better to find.
    pub enough: Option<&'c AtomicBool>,
    /// Memory, if it is limited.
    pub memory: Option<MemoryBudget>,
}

/// A control, running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock<'c> {
    started: Instant,
    until: Option<Instant>,
    interrupt: Option<&'c AtomicBool>,
    enough: Option<&'c AtomicBool>,
    memory: Option<MemoryBudget>,
}

impl<'c> Clock<'c> {
    pub fn start(control: Control<'c>) -> Self {
        let started = Instant::now();
        let until = control.time.and_then(|time| started.checked_add(time));
        Self { started, until, interrupt: control.interrupt, enough: control.enough, memory: control.memory }
    }

    /// A clock for a part of what is left: over after `share` of the remaining time.
    pub fn share(&self, share: f64) -> Self {
        let now = Instant::now();
        let until = self.until.map(|until| now + until.saturating_duration_since(now).mul_f64(share.clamp(0.0, 1.0)));
        Self { until, ..*self }
    }

    /// What is left, as the control of another call.
    pub fn rest(&self) -> Control<'c> {
        let time = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        Control { time, interrupt: self.interrupt, enough: self.enough, memory: self.memory }
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
        [self.interrupt, self.enough].into_iter().flatten().any(|flag| flag.load(Ordering::Relaxed))
            || self.until.is_some_and(|until| Instant::now() >= until)
            || self.memory.is_some_and(|memory| memory.is_used_up())
    }
}

/// Looks at a clock once in a while: to read it costs as much as tens of steps of an inner loop.
#[derive(Clone, Debug)]
pub(crate) struct Paced<'c> {
    clock: Clock<'c>,
    left: u64,
    over: bool,
}

impl<'c> Paced<'c> {
    /// Work between two looks, in units of some nanoseconds: about a millisecond.
    const PACE: u64 = 1 << 17;

    pub fn new(clock: &Clock<'c>) -> Self {
        Self { clock: *clock, left: Self::PACE, over: clock.is_over() }
    }

    /// Counts `work` as done; whether the time is over, as far as is known.
    pub fn is_over_after(&mut self, work: u64) -> bool {
        if work < self.left {
            self.left -= work;
        } else {
            self.left = Self::PACE;
            self.over = self.over || self.clock.is_over();
        }
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_look_comes_after_its_work_and_stays() {
        let flag = AtomicBool::new(false);
        let clock = Clock::start(Control { interrupt: Some(&flag), ..Control::default() });
        let mut paced = Paced::new(&clock);
        flag.store(true, Ordering::Relaxed);
        assert!(!paced.is_over_after(1), "too early to look");
        assert!(paced.is_over_after(Paced::PACE));
        flag.store(false, Ordering::Relaxed);
        assert!(paced.is_over_after(1), "what is over stays over");
    }
}
