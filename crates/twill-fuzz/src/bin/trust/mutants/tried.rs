//! Tests against defects: a program for each, until one fails.

use super::programs::Variant;
use super::schemata::VARIABLE;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What tests say of a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One failed, or did not end.
    Noticed,
    /// All passed.
    Missed,
}

/// Least time of a program, and how much more than without a defect it may take.
const LEAST: Duration = Duration::from_secs(20);
const LONGER: u32 = 5;

/// Most time of a program without a defect.
const LONGEST: Duration = Duration::from_secs(1800);

/// Kilobytes of memory: what takes more has noticed.
const MEMORY: u64 = 16 << 20;

/// Puts defects to tests; `note` has each outcome as it comes.
///
/// # Errors
/// A test that fails without a defect, or a program that does not begin.
pub fn each(
    root: &Path,
    package: &Path,
    variant: &Variant,
    tests: &[&str],
    wanted: impl Fn(&str) -> bool,
    note: impl Fn(&str, Outcome) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let mutants: VecDeque<&(u32, String)> = variant.mutants.iter().filter(|(_, name)| wanted(name)).collect();
    if mutants.is_empty() {
        return Ok(());
    }
    let programs: Vec<&PathBuf> =
        variant.programs.iter().filter(|(name, _)| tests.contains(&name.as_str())).map(|(_, path)| path).collect();
    let named: Vec<PathBuf> = programs.into_iter().map(|path| root.join(path)).collect();
    // How long they take without a defect; the quickest come first. Programs of one defect always have it.
    let mut limits: Vec<(Duration, &Path)> = named.iter().map(|path| (LEAST, path.as_path())).collect();
    if variant.mutants.len() > 1 {
        for (taken, path) in &mut limits {
            let start = Instant::now();
            if !passes(path, package, 0, LONGEST)? {
                return Err(format!("{} fails without a defect", path.display()));
            }
            *taken = start.elapsed();
        }
    }
    limits.sort_unstable();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let (all, done) = (mutants.len(), AtomicUsize::new(0));
    let left = Mutex::new(mutants);
    let next = || left.lock().ok()?.pop_front();
    let work = || {
        while let Some((number, name)) = next() {
            let mut outcome = Outcome::Missed;
            for (taken, path) in &limits {
                if !passes(path, package, *number, LEAST.max(*taken * LONGER))? {
                    outcome = Outcome::Noticed;
                    break;
                }
            }
            note(name, outcome)?;
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if outcome == Outcome::Missed || count.is_multiple_of(100) {
                let what = if outcome == Outcome::Missed { format!("not noticed: {name}") } else { String::new() };
                let _ = writeln!(std::io::stderr(), "trust: {count} of {all} defects {what}");
            }
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a thread failed".to_owned())?)
    })
}

/// Whether all tests of a program pass within a time; at the first that fails it is ended.
fn passes(path: &Path, package: &Path, defect: u32, long: Duration) -> Result<bool, String> {
    // What never ends must end where this command was killed, too; a test may have a few threads of its own.
    let processor = 4 * long.as_secs();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; ulimit -t {processor}; exec \"$0\" --test-threads=1")])
        .arg(path)
        .env(VARIABLE, defect.to_string())
        // Functions with many arms have large frames.
        .env("RUST_MIN_STACK", (64 << 20).to_string())
        .env("RUST_BACKTRACE", "0")
        // Snapshots are not written, and found without asking cargo.
        .env("INSTA_UPDATE", "no")
        .env("INSTA_WORKSPACE_ROOT", package.join("../.."))
        // Tests that have random inputs take many.
        .env("TWILL_LONG", "1")
        .current_dir(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let (failed, seen) = channel();
    let reader = child.stdout.take().map(|stdout| {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.ends_with("... FAILED") {
                    let _ = failed.send(());
                }
            }
        })
    });
    let early = ended(&seen, long);
    if early {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| format!("{}: {e}", path.display()))?;
    reader.map(std::thread::JoinHandle::join);
    Ok(!early && status.success())
}

/// Whether a test failed, or the time is over, before a program has closed what it says.
fn ended(seen: &Receiver<()>, long: Duration) -> bool {
    match seen.recv_timeout(long) {
        Ok(()) | Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => false,
    }
}
