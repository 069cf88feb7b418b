//! Running the command as a user does.

pub mod answers;

use std::path::PathBuf;
use std::process::{Command, Output};

/// The top of the checkout.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, which keeps nothing: what other runs have left in a cache changes no test.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twill"));
    command.env("TWILL_CACHE", "off");
    command
}

/// Runs `twill` at the top of the checkout.
pub fn twill(arguments: &[&str]) -> Output {
    command().args(arguments).current_dir(root()).output().unwrap()
}

/// What it printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it complained of, without lines of progress, which depend on how long it took.
pub fn stderr(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let is_progress =
        |line: &&str| line.trim_start().split_once(" s  ").is_some_and(|(time, _)| time.parse::<f64>().is_ok());
    text.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}
