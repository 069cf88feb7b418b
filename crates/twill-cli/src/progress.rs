//! Progress of a long search, for a person who waits; and what ends it early.

use crate::printable;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use twill_driver::Observer;
use twill_exact::Progress;

/// Searches that end sooner say nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// A terminal's line is drawn again so often.
const REDRAWN: Duration = Duration::from_secs(1);
/// Elsewhere a line is written so often.
const WRITTEN: Duration = Duration::from_secs(5);

/// Tells on standard error what a search is doing: on a terminal one line that is written over, elsewhere a line now and then.
pub(crate) struct Ticker {
    line: Arc<Mutex<ProgressLine>>,
    quiet: bool,
    /// Ends the clock when it is dropped, and the clock itself.
    clock: Option<(Sender<()>, JoinHandle<()>)>,
}

struct ProgressLine {
    started: Instant,
    what: String,
    is_terminal: bool,
    is_shown: bool,
}

impl ProgressLine {
    fn draw(&mut self) {
        if self.what.is_empty() || self.started.elapsed() < PATIENCE {
            return;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        // Nobody is hurt when progress cannot be shown.
        let _ = if self.is_terminal {
            self.is_shown = true;

            // A line that wraps could not be wiped.
            let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
            let line: String =
                format!("{seconds:6.1} s  {}", self.what).chars().take(columns.saturating_sub(1)).collect();
            write!(std::io::stderr(), "\r\x1b[2K{line}")
        } else {
            writeln!(std::io::stderr(), "{seconds:6.1} s  {}", self.what)
        };
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Ticker {
    pub(crate) fn new(quiet: bool) -> Ticker {
        let is_terminal = std::io::stderr().is_terminal();
        let line = ProgressLine { started: Instant::now(), what: String::new(), is_terminal, is_shown: false };
        let line = Arc::new(Mutex::new(line));
        let clock = (!quiet).then(|| clock(Arc::clone(&line), if is_terminal { REDRAWN } else { WRITTEN }));
        Ticker { line, quiet, clock: clock.flatten() }
    }

    /// Shows what is going on.
    fn show(&mut self, what: &str) {
        if self.quiet {
            return;
        }
        let mut line = locked(&self.line);
        what.clone_into(&mut line.what);
        if line.is_terminal {
            line.draw();
        }
    }
}

/// Draws the line again and again, until its sender is dropped.
fn clock(line: Arc<Mutex<ProgressLine>>, pause: Duration) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (sender, ended) = mpsc::channel::<()>();
    let draw = move || {
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            locked(&line).draw();
        }
    };
    // Without a thread the line is drawn when something happens.
    let thread = std::thread::Builder::new().name("progress".into()).spawn(draw).ok()?;
    Some((sender, thread))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Ticker {
    fn progress(&mut self, progress: &Progress) {
        self.show(&progress.to_string());
    }

    fn say(&mut self, what: &str) {
        self.show(what);
    }

    fn note(&mut self, text: &str) {
        locked(&self.line).wipe();
        if !self.quiet {
            eprintln!("{}", printable(text));
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.clock.take() {
            drop(sender);
            let _ = thread.join();
        }
        locked(&self.line).wipe();
    }
}

/// Folders that must not stay when the program is ended.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes a folder when the second signal ends the program. From here on the first does not end it.
pub(crate) fn remove_on_exit(folder: &Path) {
    interrupt();
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        unfinished.push(folder.to_owned());
    }
}

/// What Ctrl-C and SIGTERM set, once somebody requested.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A command begins, in a process that may have run others: nobody has interrupted it yet.
pub(crate) fn begin() {
    if let Some(flag) = INTERRUPTED.get() {
        flag.store(false, Ordering::Relaxed);
    }
}

/// Whether somebody asked to stop.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set; the second of them ends the program. There is one of it, whoever asks.
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
