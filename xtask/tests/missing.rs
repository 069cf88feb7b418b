//! What is missing is said before anything runs.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A folder that is the path, with a cargo that has no subcommands and notes what it was asked.
#[test]
fn what_is_missing_is_named_with_what_brings_it_and_nothing_runs() {
    let folder = std::env::temp_dir().join(format!("xtask-missing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (cargo, asked) = (folder.join("cargo"), folder.join("asked"));
    std::fs::write(&cargo, format!("#!/bin/sh\necho \"$@\" >>'{}'\nexit 1\n", asked.display())).unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["test", "--all"])
        .env("PATH", &folder)
        .env("CARGO", &cargo)
        .env_remove("CHROMIUM")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for line in [
        "formatting: skipped: rustup component add rustfmt",
        "lints: skipped: rustup component add clippy",
        "licences and sources: skipped: cargo install cargo-deny --locked",
        "no Python 3.11 or newer with venv was found; install it (Debian: python3-venv)",
    ] {
        assert!(said.contains(line), "no {line:?} in {said}");
    }
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.lines().all(|line| line.ends_with(" --version")), "{asked}");
    std::fs::remove_dir_all(folder).unwrap();
}
