//! Parts that look at the command from outside, in Python: `tests/hostile`. Each writes its own section.

use crate::Arguments;
use std::process::Command;

/// Runs a script of `tests/hostile` with these arguments; its figures go to the section of that name.
pub fn run(arguments: &Arguments, script: &str, section: &str, words: &[&str]) -> Result<(), String> {
    let Some(python) = &arguments.python else { return Err(format!("{script} needs Python: run `cargo xtask trust`")) };
    build(arguments)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| arguments.root.join("target"), Into::into);
    let figures = arguments.root.join("docs").join("reports").join("trust").join(format!("{section}.json"));
    eprintln!("trust: tests/hostile/{script}");
    let status = Command::new(python)
        .arg(arguments.root.join("tests").join("hostile").join(script))
        .args(words)
        .arg("--json")
        .arg(figures)
        .env("TWILL_COMMAND", target.join("release").join("twill"))
        .current_dir(&arguments.root)
        .status()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    if status.success() { Ok(()) } else { Err(format!("{script} found something")) }
}

/// The command that the scripts run.
fn build(arguments: &Arguments) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["build", "--quiet", "--release", "--locked", "--package", "twill-cli"];
    let status = Command::new(cargo).args(words).current_dir(&arguments.root).status();
    if status.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err("cargo build --package twill-cli failed".into())
    }
}
