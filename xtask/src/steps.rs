//! Steps of a task: commands that run one at a time or in two lanes, and what became of each.
//!
//! Everything runs in the terminal's group of processes, so that Ctrl-C ends what runs.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often lanes say what runs in them.
const EVERY: Duration = Duration::from_secs(30);

/// A command with the name that reports call it by.
pub struct Step {
    /// The suite or the part of the workspace that it tests.
    pub name: String,
    /// What is run.
    pub command: Command,
}

impl Step {
    /// A command with a name.
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command }
    }
}

/// Runs steps, goes on after those that fail, and counts.
pub struct Steps {
    logs: PathBuf,
    start: Instant,
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Steps {
    /// None yet; what lanes print is kept in files of `logs`.
    pub fn new(logs: PathBuf) -> Self {
        Self { logs, start: Instant::now(), passed: 0, failed: Vec::new(), skipped: Vec::new() }
    }

    /// Runs a step with its output as it comes; whether it passed.
    pub fn run(&mut self, step: Step) -> bool {
        let Step { name, mut command } = step;
        eprintln!("xtask: {name}: {command:?}");
        let (start, before) = (Instant::now(), cpu_seconds());
        let result = match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(e) => Err(e.to_string()),
        };
        let cpu = before.zip(cpu_seconds()).map_or(String::new(), |(a, b)| format!(", {:.0} s of CPU time", b - a));
        let took = format!("{:.0} s{cpu}", start.elapsed().as_secs_f64());
        self.count(&name, result, &took)
    }

    /// Runs steps in so many lanes, in their order. What one prints is shown when it ends, and stays in a file; meanwhile a
    /// line says what runs.
    pub fn side_by_side(&mut self, steps: Vec<Step>, lanes: usize) {
        if let Err(e) = std::fs::create_dir_all(&self.logs) {
            self.failed.push(format!("{}: {e}", self.logs.display()));
            return;
        }
        let (mut left, logs, start) = (steps.len(), self.logs.clone(), Instant::now());
        let queue = Mutex::new(steps.into_iter().collect::<VecDeque<_>>());
        let mut running: Vec<(String, Instant)> = Vec::new();
        thread::scope(|scope| {
            let (sender, events) = mpsc::channel();
            for _ in 0..lanes {
                let (sender, queue, logs) = (sender.clone(), &queue, &logs);
                scope.spawn(move || {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(Step { name, command }) = next else { break };
                        // Nobody listens only where the main thread is gone.
                        let _ = sender.send(Event::Started(name.clone(), format!("{command:?}")));
                        let times = logs.join(format!("{}.times", file_name(&name)));
                        let result =
                            captured(&mut timed(&command, &times), &logs.join(format!("{}.log", file_name(&name))));
                        let _ = sender.send(Event::Ended(name, result, cpu_seconds_in(&times)));
                    }
                });
            }
            drop(sender);
            loop {
                match events.recv_timeout(EVERY) {
                    Ok(Event::Started(name, command)) => {
                        eprintln!("xtask: {name} begins: {command}");
                        running.push((name, Instant::now()));
                    }
                    Ok(Event::Ended(name, (result, printed), cpu)) => {
                        left -= 1;
                        let began = running.iter().position(|(one, _)| *one == name).map(|at| running.remove(at).1);
                        let cpu = cpu.map_or(String::new(), |s| format!(", {s:.0} s of CPU time"));
                        let took = format!("{:.0} s{cpu}", began.unwrap_or(start).elapsed().as_secs_f64());
                        eprint!("{printed}");
                        self.count(&name, result, &took);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let since =
                            |(name, began): &(String, Instant)| format!("{name} for {} s", began.elapsed().as_secs());
                        let names: Vec<String> = running.iter().map(since).collect();
                        eprintln!("xtask: running: {}; {left} to end", names.join(", "));
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
    }

    /// Counts what was no command; what came of it, where it passed.
    pub fn attempt<T>(&mut self, name: &str, result: Result<T, String>) -> Option<T> {
        let (value, result) = match result {
            Ok(value) => (Some(value), Ok(())),
            Err(why) => (None, Err(why)),
        };
        self.count(name, result, "while tests were built");
        value
    }

    /// A step that is not run, and what would bring what it needs.
    pub fn skip(&mut self, name: &str, why: &str) {
        eprintln!("xtask: {name}: skipped: {why}");
        self.skipped.push(format!("{name}: {why}"));
    }

    /// Counts a step that ended.
    pub fn count(&mut self, name: &str, result: Result<(), String>, took: &str) -> bool {
        match result {
            Ok(()) => {
                self.passed += 1;
                eprintln!("xtask: {name}: passed, {took}");
                true
            }
            Err(why) => {
                eprintln!("xtask: {name}: FAILED: {why}, {took}; what does not need it goes on");
                self.failed.push(format!("{name}: {why}"));
                false
            }
        }
    }

    /// Prints what failed, what was skipped and what it took, as the test runner of Rust closes.
    ///
    /// # Errors
    ///
    /// That steps failed, where some did.
    pub fn close(self) -> Result<(), String> {
        for one in &self.skipped {
            eprintln!("xtask: skipped: {one}");
        }
        for one in &self.failed {
            eprintln!("xtask: FAILED: {one}");
        }
        let (wall, cpu) = (self.start.elapsed().as_secs_f64(), cpu_seconds());
        let cpu = cpu.map_or(String::new(), |s| format!(", {:.1} CPU minutes with all that was built", s / 60.0));
        eprintln!("xtask: {:.1} minutes{cpu}; each step is one test below", wall / 60.0);
        println!(
            "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in {wall:.2}s",
            if self.failed.is_empty() { "ok" } else { "FAILED" },
            self.passed,
            self.failed.len(),
            self.skipped.len(),
        );
        match self.failed.len() {
            0 => Ok(()),
            count => Err(format!("{count} steps failed")),
        }
    }
}

enum Event {
    Started(String, String),
    /// With its CPU time.
    Ended(String, (Result<(), String>, String), Option<f64>),
}

/// A step's name without what file names do not have.
fn file_name(step: &str) -> String {
    step.replace(['/', '*', '!'], "-")
}

/// The command in a shell that writes its CPU time to a file: what ran in the other lane is not in it.
fn timed(command: &Command, times: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#""$@"; code=$?; times >"$0"; exit $code"#]).arg(times);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// The CPU time of the processes that a shell has waited for, as its `times` prints it.
fn cpu_seconds_in(times: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(times).ok()?;
    // The second line, after the shell's own: user and system, each as 1m2.34s.
    let one = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    text.lines().nth(1)?.split_whitespace().map(one).sum()
}

/// Runs a command with its output in a file, and reads that. A pipe would be held open by what outlives the command.
fn captured(command: &mut Command, log: &Path) -> (Result<(), String>, String) {
    let mut run = || {
        let file = File::create(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status()
    };
    let result = match run() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}, see {}", log.display())),
        Err(e) => Err(e.to_string()),
    };
    let printed = std::fs::read(log).unwrap_or_default();
    (result, String::from_utf8_lossy(&printed).into_owned())
}

/// CPU time of this process and of the processes that it has waited for; `None` where there is no /proc.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in brackets: utime, stime, cutime and cstime, in hundredths of a second.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    fn shell(name: &str, line: &str) -> Step {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Step::new(name, command)
    }

    fn steps(name: &str) -> Steps {
        Steps::new(env::temp_dir().join(format!("xtask-{name}-{}", std::process::id())))
    }

    #[test]
    fn after_a_failure_the_rest_runs_and_the_end_says_what_failed() {
        let mut steps = steps("failure");
        let logs = steps.logs.clone();
        std::fs::create_dir_all(&logs).unwrap();
        let late = format!("touch '{}'", logs.join("late").display());
        steps
            .side_by_side(vec![shell("fine", "true"), shell("tests/bad", "echo why; exit 3"), shell("late", &late)], 2);
        assert!(logs.join("late").exists());
        assert_eq!(std::fs::read_to_string(logs.join("tests-bad.log")).unwrap(), "why\n");
        assert!(!steps.run(shell("worse", "exit 4")));
        assert!(steps.run(shell("good", "true")));
        steps.skip("browser", "no browser");
        assert_eq!((steps.passed, steps.skipped.len()), (3, 1));
        assert!(steps.failed[0].starts_with("tests/bad: exit status: 3"), "{:?}", steps.failed);
        assert!(steps.failed[1].starts_with("worse: exit status: 4"), "{:?}", steps.failed);
        assert_eq!(steps.close(), Err("2 steps failed".to_owned()));
        std::fs::remove_dir_all(logs).unwrap();
    }

    #[test]
    fn a_command_that_does_not_exist_fails_and_is_named() {
        let mut steps = steps("missing");
        assert!(!steps.run(Step::new("nothing", Command::new("no-such-command"))));
        steps.side_by_side(vec![Step::new("no such command", Command::new("no-such-command"))], 2);
        assert_eq!(steps.failed.len(), 2);
        assert!(steps.failed[1].starts_with("no such command: "), "{:?}", steps.failed);
        std::fs::remove_dir_all(&steps.logs).unwrap();
    }

    /// A step that another waits for is told of at once: here the other lane ends only when it was told of.
    #[test]
    fn a_failing_lane_says_why_while_the_other_runs() {
        if let Ok(told) = env::var("XTASK_TOLD") {
            let mut steps = steps("lane");
            let wait =
                format!(r#"until case "$(cat '{told}')" in *"bad: FAILED"*) ;; *) false ;; esac; do sleep 0.01; done"#);
            steps.side_by_side(vec![shell("waits", &wait), shell("bad", "echo the reason; exit 3")], 2);
            std::fs::remove_dir_all(&steps.logs).unwrap();
            return;
        }
        let told = env::temp_dir().join(format!("xtask-told-{}", std::process::id()));
        let this = "steps::tests::a_failing_lane_says_why_while_the_other_runs";
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", this, "--nocapture"]).env("XTASK_TOLD", &told);
        command.stdout(Stdio::null()).stderr(File::create(&told).unwrap());
        assert!(command.status().unwrap().success());
        let printed = std::fs::read_to_string(&told).unwrap();
        let at = |text: &str| printed.find(text).unwrap_or_else(|| panic!("no {text:?} in {printed}"));
        assert!(at("the reason") < at("bad: FAILED: exit status: 3") && at("bad: FAILED") < at("waits: passed"));
        std::fs::remove_file(told).unwrap();
    }

    #[test]
    fn cpu_time_of_children_is_counted() {
        let Some(before) = cpu_seconds() else { return };
        let mut steps = steps("cpu");
        assert!(steps.run(shell("busy", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")));
        assert!(cpu_seconds().unwrap() > before);
        let times = steps.logs.with_extension("times");
        let busy = shell("busy", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3");
        assert_eq!(timed(&busy.command, &times).status().unwrap().code(), Some(3));
        assert!(cpu_seconds_in(&times).unwrap() > 0.0);
        std::fs::write(&times, "0m0.01s 0m0.00s\n1m2.50s 0m3.25s\n").unwrap();
        assert_eq!(cpu_seconds_in(&times), Some(65.75));
        std::fs::remove_file(times).unwrap();
    }
}
