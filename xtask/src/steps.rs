//! Commands of a task, timed: one at a time, or in two lanes.
//!
//! Everything runs in the terminal's group of processes, so that Ctrl-C ends what runs.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Commands at a time, where they may run side by side.
const LANES: usize = 2;

/// Runs a command with its output as it comes, and says how long it took.
///
/// # Errors
///
/// The command, where it fails or cannot be started.
pub fn run(command: &mut Command) -> Result<(), String> {
    eprintln!("xtask: {command:?}");
    let start = Instant::now();
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    eprintln!("xtask: {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Runs commands in lanes, in their order. What one prints is shown when it ends, and stays in a file of `logs`. After
/// a failure none is started.
///
/// # Errors
///
/// What failed commands printed, and which they are, the first one first.
pub fn side_by_side(commands: Vec<Command>, logs: &Path) -> Result<(), String> {
    std::fs::create_dir_all(logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let queue = Mutex::new(commands.into_iter().enumerate().collect::<VecDeque<_>>());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let next = locked(&queue).pop_front();
                    let Some((number, mut command)) = next else { break };
                    if let Err(why) = captured(&mut command, logs.join(format!("{number}.log"))) {
                        locked(&queue).clear();
                        locked(&failures).push(why);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Runs a command with its output in a file. A pipe would be held open by what outlives the command.
fn captured(command: &mut Command, log: PathBuf) -> Result<(), String> {
    let at = |e: std::io::Error| format!("{}: {e}", log.display());
    let file = File::create(&log).map_err(at)?;
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(at)?).stderr(file);
    eprintln!("xtask: beside another: {command:?}");
    let start = Instant::now();
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    let seconds = start.elapsed().as_secs_f64();
    let printed = String::from_utf8_lossy(&std::fs::read(&log).map_err(at)?).into_owned();
    if status.success() {
        eprintln!("{printed}xtask: {seconds:.0} s: {command:?}");
        return Ok(());
    }
    eprintln!("xtask: failed after {seconds:.0} s, its output comes when the other lane ends: {command:?}");
    Err(format!("{command:?}: {status}\n{printed}"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_failure_shows_what_was_printed_and_ends_the_queue() {
        let logs = env::temp_dir().join(format!("xtask-{}", std::process::id()));
        assert_eq!(side_by_side(vec![shell("echo fine"), shell("true"), shell("true")], &logs), Ok(()));
        let late = logs.join("late");
        // The second lane goes on only when the first has failed.
        let wait = format!("while [ ! -e '{0}/failed' ]; do sleep 0.01; done; sleep 0.3", logs.display());
        let fail = format!("echo out; echo err >&2; touch '{0}/failed'; exit 3", logs.display());
        let touch = format!("touch '{}'", late.display());
        let why = side_by_side(vec![shell(&wait), shell(&fail), shell(&touch)], &logs).unwrap_err();
        assert!(why.contains("out\nerr\n") && why.contains("exit status: 3"), "{why}");
        assert!(!late.exists());
        std::fs::remove_dir_all(logs).unwrap();
    }
}
