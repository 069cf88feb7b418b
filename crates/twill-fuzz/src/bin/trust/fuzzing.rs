//! The targets of `fuzz/`, one after the other, by libFuzzer.

use crate::Arguments;
use crate::here;
use crate::section::{Section, Table};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use twill_fuzz::{TARGETS, Target, input};

const NAME: &str = "fuzzing";
const COLUMNS: [&str; 7] =
    ["target", "tries", "executions", "CPU minutes", "executions a second", "edges covered", "inputs kept"];

/// First inputs of a target that has none yet.
const SEEDS: u64 = 64;

/// Most seconds of one run of libFuzzer: the loss where it is stopped.
const LONGEST: f64 = 300.0;

/// The report of one run of libFuzzer.
#[derive(Debug, Default, PartialEq)]
struct Run {
    executions: u64,
    edges: u64,
    corpus: u64,
}

/// Runs every target until it has had its time.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let root = &arguments.root;
    if arguments.fresh {
        Section { tables: Vec::new(), ..Section::read(root, NAME)? }.write(root, NAME)?;
    }
    let programs = build(root)?;
    let mut found = Vec::new();
    for target in
        TARGETS.iter().filter(|t| arguments.targets.is_empty() || arguments.targets.iter().any(|n| n == t.name))
    {
        loop {
            let minutes = kept(root)?.1.number(target.name, "CPU minutes");
            let left = (arguments.minutes - minutes) * 60.0;
            if left < 1.0 {
                break;
            }
            let (run, seconds) = match fuzz(root, &programs, target, left.min(LONGEST).ceil() as u64) {
                Ok(figures) => figures,
                Err(why) => {
                    eprintln!("trust: {why}");
                    found.push(target.name);
                    break;
                }
            };
            // Results of another process with other targets stay.
            let (section, mut table) = kept(root)?;
            table.set(row(&table, target, &run, seconds));
            let section = Section {
                title: "Fuzzing".into(),
                order: 20,
                command: "cargo xtask trust --only fuzzing".into(),
                text: vec![TEXT.into()],
                tables: vec![table],
                ..section
            };
            section.write(root, NAME)?;
        }
    }
    if found.is_empty() { Ok(()) } else { Err(format!("found something: {}", found.join(", "))) }
}

/// The results of earlier runs.
fn kept(root: &Path) -> Result<(Section, Table), String> {
    let section = Section::read(root, NAME)?;
    let table = section.tables.first().cloned().unwrap_or_else(|| Table::new(&COLUMNS));
    Ok((section, table))
}

/// The figures of a target with those of another run.
fn row(table: &Table, target: &Target, found: &Run, seconds: f64) -> Vec<Value> {
    let before = |column: &str| table.number(target.name, column);
    let executions = before("executions") as u64 + found.executions;
    let minutes = before("CPU minutes") + seconds / 60.0;
    let per_second = executions as f64 / (minutes * 60.0).max(1.0);
    vec![
        target.name.into(),
        target.tries.into(),
        executions.into(),
        ((minutes * 100.0).round() / 100.0).into(),
        (per_second.round() as u64).into(),
        found.edges.max(before("edges covered") as u64).into(),
        found.corpus.into(),
    ]
}

/// Builds all targets; the folder with their programs.
fn build(root: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("FUZZ_TARGET_DIR").map_or_else(|| root.join("fuzz").join("target"), PathBuf::from);
    // Twill has no unsafe code for a sanitizer to look at, and without one the compiler need not be nightly.
    let status = Command::new("cargo")
        .args(["fuzz", "build", "--sanitizer", "none", "--target-dir"])
        .arg(&target)
        .current_dir(root)
        .status()
        .map_err(|e| format!("cargo fuzz: {e}"))?;
    if !status.success() {
        return Err("cargo fuzz build failed; `cargo install cargo-fuzz` if there is no such command".into());
    }
    let built = std::fs::read_dir(&target).map_err(|e| format!("{}: {e}", target.display()))?;
    let mut release = built.filter_map(|entry| Some(entry.ok()?.path().join("release")));
    release
        .find(|path| path.join(TARGETS[0].name).is_file())
        .ok_or_else(|| format!("{} has no programs", target.display()))
}

/// Runs libFuzzer for a time; returns its report, and its CPU seconds.
fn fuzz(root: &Path, programs: &Path, target: &Target, seconds: u64) -> Result<(Run, f64), String> {
    let folder = root.join("fuzz");
    let corpus = folder.join("corpus").join(target.name);
    let artifacts = folder.join("artifacts").join(target.name);
    for path in [&corpus, &artifacts] {
        std::fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let empty = std::fs::read_dir(&corpus).map_err(|e| e.to_string())?.next().is_none();
    for seed in (0..SEEDS).filter(|_| empty) {
        let path = corpus.join(format!("seed-{seed}"));
        std::fs::write(&path, input(seed, target.bytes)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    eprintln!("trust: {} for {seconds} s", target.name);
    let (before, start) = (here::seconds_of_children(), Instant::now());
    let output = Command::new(programs.join(target.name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={}", 2 * target.bytes))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        // An input that takes longer, or more memory, is a finding.
        .args(["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(&corpus)
        .output()
        .map_err(|e| format!("{}: {e}", target.name))?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let last: Vec<&str> = printed.lines().rev().take(60).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Err(format!("{} found something: {}\n{}", target.name, artifacts.display(), last.join("\n")));
    }
    let taken = here::seconds_of_children().zip(before).map_or(start.elapsed().as_secs_f64(), |(now, then)| now - then);
    Ok((read(&printed), taken))
}

/// `#123 DONE   cov: 45 ft: 67 corp: 8/90b lim: 120 exec/s: 11 rss: 22Mb`.
fn read(printed: &str) -> Run {
    let line = printed.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: ")).unwrap_or_default();
    let after = |key: &str| line.split_once(key).map_or("", |(_, rest)| rest.trim_start());
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    Run { executions: digits(after("#")), edges: digits(after("cov:")), corpus: digits(after("corp:")) }
}

const TEXT: &str = "Each target makes an input of libFuzzer's bytes, asks Twill, and compares the answer with code that shares nothing with the target ([`twill-fuzz`](../../crates/twill-fuzz/src/lib.rs) says \
     with what; the programs in `fuzz/` are three lines each). A panic, an overflow, more than 20 seconds or more than 2 GB is a finding as well. Edges are those of the control flow that libFuzzer's instrumentation \
     (`sanitizer-coverage`) saw, of Twill and what it is built on. The normal tests run every target on fixed inputs.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_libfuzzer_is_read() {
        let printed = "INFO: Seed: 1\n#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb\n#8192\tDONE   cov: 2345 ft: 9999 \
                       corp: 678/12Kb lim: 120 exec/s: 4096 rss: 64Mb\nDone 8192 runs in 2 second(s)\n";
        assert_eq!(read(printed), Run { executions: 8192, edges: 2345, corpus: 678 });
        assert_eq!(read("nothing"), Run::default());
    }

    #[test]
    fn figures_add_up() {
        let mut table = Table::new(&COLUMNS);
        for (executions, edges) in [(600, 40), (1200, 30)] {
            table.set(row(&table, &TARGETS[0], &Run { executions, edges, corpus: 5 }, 60.0));
        }
        assert_eq!(table.rows.len(), 1);
        let number = |column| table.number(TARGETS[0].name, column);
        assert_eq!([number("executions"), number("CPU minutes"), number("executions a second")], [1800.0, 2.0, 15.0]);
        assert_eq!(number("edges covered"), 40.0);
    }
}
