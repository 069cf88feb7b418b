//! The exact engine against Z3: `tests/cross_check`. Its problems are numbered from 0, so more of them are the same and more.

use crate::Arguments;
use crate::section::{Section, Table};
use std::process::Command;

const NAME: &str = "z3";

/// Compares until this many were, in parts.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Some(python) = &arguments.python else { return Err("Z3 needs Python: run `cargo xtask trust`".into()) };
    let mut section = Section::read(&arguments.root, NAME)?;
    if arguments.fresh {
        section.tables.clear();
    }
    let done = section.tables.first().map_or(0.0, |table| table.number("problems, seed 100", "count")) as u64;
    if done >= arguments.z3 {
        return Ok(());
    }
    // As `cargo xtask test` builds it.
    let build = ["build", "--locked", "--package", "twill-cli"];
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo).args(build).current_dir(&arguments.root).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("cargo build --package twill-cli failed".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| arguments.root.join("target"), Into::into);
    let count = arguments.z3.to_string();
    let output = Command::new(python)
        .args(["tests/cross_check/cross_check.py", "--seed", "100", "--jobs", "2", "--count", &count, "--twill"])
        .arg(target.join("debug").join("twill"))
        .current_dir(&arguments.root)
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    eprint!("{printed}");
    let passed = printed.lines().rev().find_map(|line| line.split_once(" passed, ")?.0.parse::<u64>().ok());
    let (Some(passed), true) = (passed, output.status.success()) else {
        return Err(format!("the comparison with Z3 failed: {}", String::from_utf8_lossy(&output.stderr)));
    };
    let mut table = Table::new(&["what", "count"]);
    table.set(vec!["problems, seed 100".into(), passed.into()]);
    table.set(vec!["disagreements".into(), 0.into()]);
    let section = Section {
        title: "The exact engine and Z3".into(),
        order: 12,
        command: "cargo xtask trust --only z3".into(),
        text: vec![TEXT.into()],
        tables: vec![table],
        ..section
    };
    section.write(&arguments.root, NAME)
}

const TEXT: &str = "Larger random problems, of 3 to 8 operations: Z3 optimises its own formulation of the model (`tests/cross_check`, in Python) up to 12 cycles. Feasibility, the least \
     interval, every objective, and the interval and length of phase 1 have to be the same, and a replay in Python accepts the engine's schedule. `cargo xtask test --all` does this for some, \
     under four model variants.";
