//! Bad input of every kind: what is said about it, and that nothing else comes out.

mod command_line;
mod graphs;
mod kernels;
mod machines;

use crate::common::{root, stderr, stdout, twill};
use std::fs;
use tempfile::TempDir;
use twill_graph::format::ScheduleFile;

/// Writes a file for the command to stumble over, and gives its path.
fn file(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(name)).unwrap()
}

/// The text with one thing changed.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// The 1-based line in which `part` stands first.
fn line_of(text: &str, part: &str) -> usize {
    1 + text.lines().position(|line| line.contains(part)).unwrap()
}

fn assert_says(error: &str, says: &[&str]) {
    assert!(error.starts_with("error: ") && error.ends_with('\n'), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    for part in says {
        assert!(error.contains(part), "{part}:\n{error}");
    }
}

/// The command fails with one line that contains `says`, and leaves nothing: no text, no file.
fn refused(arguments: &[&str], says: &[&str]) {
    let output = twill(arguments);
    let error = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}: {error}");
    assert_says(&error, says);
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// As [`refused`], for `twill schedule`, with and without an output file.
fn unscheduled(arguments: &[&str], says: &[&str]) {
    let arguments = [&["schedule"], arguments].concat();
    refused(&arguments, says);
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer.json");
    refused(&[&arguments[..], &["--format", "json", "--output", answer.to_str().unwrap()]].concat(), says);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
}

fn scheduled(arguments: &[&str]) -> ScheduleFile {
    let output = twill(&[&["schedule", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    ScheduleFile::from_json(&stdout(&output), "stdout").unwrap()
}
