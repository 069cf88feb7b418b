//! A clock of CPU time: that of this process, and of those that it has waited for.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use web_time::Instant;

/// Milliseconds for which a reading is good.
const GOOD: u64 = 5;
/// Milliseconds of a tick, in which Linux counts: `_SC_CLK_TCK` is 100 on all its processors.
const TICK: u64 = 10;

/// The moment by this clock, which begins with the first look at it. Where the system does not say, it is wall-clock time.
pub(super) fn now() -> Instant {
    static FIRST: OnceLock<(Instant, u32, Option<u64>)> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let (first, process, before) = *FIRST.get_or_init(|| (Instant::now(), std::process::id(), milliseconds()));
    // A forked process counts from 0 anew.
    let Some(before) = before.filter(|_| process == std::process::id()) else { return Instant::now() };
    let wall = u64::try_from(first.elapsed().as_millis()).unwrap_or(u64::MAX);
    if wall >= NEXT.load(Ordering::Relaxed) {
        NEXT.store(wall.saturating_add(GOOD), Ordering::Relaxed);
        // Where it cannot be read any more, the limit ends all the same.
        let passed = milliseconds().map_or(wall, |now| now.saturating_sub(before));
        // Another thread may have read it later.
        PASSED.fetch_max(passed, Ordering::Relaxed);
    }
    first + Duration::from_millis(PASSED.load(Ordering::Relaxed))
}

/// CPU time since this process began, in milliseconds; `None` without Linux's /proc.
fn milliseconds() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // After the name in brackets, which may hold anything: utime, stime, cutime and cstime are the 12th to 15th (proc_pid_stat(5)).
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn it_goes_on_while_a_process_or_its_child_is_at_work() {
        let until = now() + Duration::from_millis(60);
        while now() < until {}
        let shell = |line: &str| std::process::Command::new("sh").args(["-c", line]).status().unwrap();
        let before = milliseconds().unwrap();
        shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        assert!(milliseconds().unwrap() > before, "children count once they have ended");
    }
}
