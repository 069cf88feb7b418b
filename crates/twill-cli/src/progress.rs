//! Progress of a long search, for a person at a terminal.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use twill_driver::Observer;
use twill_exact::Progress;

/// Searches that end sooner say nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Prints what the search is doing to standard error, on one line that is written over.
pub(crate) struct Ticker {
    started: Instant,
    shown: bool,
    enabled: bool,
    quiet: bool,
}

impl Ticker {
    pub(crate) fn new(quiet: bool) -> Ticker {
        let enabled = !quiet && std::io::stderr().is_terminal();
        Ticker { started: Instant::now(), shown: false, enabled, quiet }
    }

    /// Shows what is going on.
    pub(crate) fn say(&mut self, what: &str) {
        if !self.enabled || self.started.elapsed() < PATIENCE {
            return;
        }
        self.shown = true;
        // Nobody is hurt when progress cannot be shown.
        let _ = write!(std::io::stderr(), "\r\x1b[2K{:6.1} s  {what}", self.started.elapsed().as_secs_f64());
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Observer for Ticker {
    fn progress(&mut self, progress: &Progress) {
        self.say(&progress.to_string());
    }

    fn note(&mut self, text: &str) {
        self.wipe();
        if !self.quiet {
            eprintln!("{text}");
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Folders that must not stay when the program is ended.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes a folder when the second Ctrl-C ends the program.
pub(crate) fn remove_on_exit(folder: &Path) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        unfinished.push(folder.to_owned());
    }
}

/// What Ctrl-C sets, once somebody asked.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that Ctrl-C sets; the second Ctrl-C ends the program. There is one of it, whoever asks.
pub(crate) fn interrupt() -> Arc<AtomicBool> {
    Arc::clone(INTERRUPTED.get_or_init(handled))
}

fn handled() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    // Without a handler Ctrl-C simply ends the program.
    let _ = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            for folder in UNFINISHED.lock().iter().flat_map(|unfinished| unfinished.iter()) {
                // Best effort on the way out.
                let _ = std::fs::remove_dir_all(folder);
            }
            std::process::exit(130);
        }
    });
    flag
}
