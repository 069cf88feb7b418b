//! What a command may take: time since it began, work, memory of the process.

use crate::exit::Exit;
use crate::progress;
use std::cell::Cell;
use std::time::Instant;
use twill_driver::options::SearchLimits;

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

/// Says on standard error why a search was stopped, and how it goes on.
pub(crate) fn explain_stop(limits: &SearchLimits, quiet: bool, exit: Exit) -> Exit {
    if exit != Exit::Stopped || quiet {
        return exit;
    }
    let known = "what is known by now is shown, with its bound";
    if progress::is_interrupted() {
        eprintln!("interrupted: {known}");
    } else if limits.work_limit.is_some() || limits.memory_limit.is_some() {
        eprintln!("stopped by a limit of time, work or memory: {known}");
    } else if let Some(seconds) = limits.seconds() {
        let which = if limits.time_limit.is_none() { "the default time limit" } else { "--time-limit" };
        eprintln!("stopped by {which} of {seconds} s: {known} (--time-limit none goes on)");
    }
    exit
}
