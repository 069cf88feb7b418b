//! Project automation: `cargo xtask test` sets up and runs the tests of every change, with `--all` every test there is;
//! `cargo xtask trust` looks for defects for hours, and writes docs/reports/trust.md; `cargo xtask sbom` writes a bill of materials;
//! `cargo xtask wheel` makes the wheel of the Python package, installs it in a new environment and tries it;
//! `cargo xtask playground` makes the playground, one HTML file;
//! `cargo xtask gallery` writes docs/gallery.md and its pictures;
//! `cargo xtask minute` types the README's commands on a clean machine with a wheel, and writes docs/minute.md;
//! `cargo xtask release --dry-run` checks what has to hold of a release, and makes its files;
//! `cargo xtask same-code BASE` compares the machine code of generated kernels with that of another commit.

mod environment;
mod playground;
mod release;
mod same_code;
mod steps;
mod test;
mod wheel;

use environment::{Environment, has_cargo, system_python};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use test::Part;

fn main() -> ExitCode {
    let task = env::args().nth(1);
    let result = match task.as_deref() {
        Some("test") => Part::of(&env::args().skip(2).collect::<Vec<_>>()).and_then(test::test),
        Some("sbom") => sbom(),
        Some("release") => release::release(&env::args().skip(2).collect::<Vec<_>>()),
        Some("same-code") => same_code::same_code(env::args().skip(2)),
        Some("wheel") => wheel::wheel(&env::args().skip(2).collect::<Vec<_>>()),
        Some("playground") => playground::playground(),
        Some("gallery") => gallery(),
        Some("minute") => minute(env::args().skip(2)),
        Some("trust") => trust(env::args().skip(2)),
        _ => Err("usage: cargo xtask test [--all], cargo xtask trust [--help], cargo xtask same-code BASE, cargo xtask wheel, cargo xtask playground, cargo xtask gallery, cargo xtask minute [WHEEL], cargo xtask release --dry-run, or cargo xtask sbom".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A bill of materials in the format of CycloneDX, in `target/dist`.
fn sbom() -> Result<(), String> {
    let root = root()?;
    let (path, count) = release::bill(&root, &target(&root).join("dist"))?;
    println!("{count} components in {}", path.display());
    Ok(())
}

/// The page and its pictures, written by the test that compares them with the code.
fn gallery() -> Result<(), String> {
    let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["test", "--quiet", "--locked", "--package", "twill-driver", "--test", "gallery"]);
    succeed(command.current_dir(root()?).env("TWILL_WRITE", "1"))?;
    println!("written to docs/gallery.md and docs/pictures/gallery");
    Ok(())
}

/// A newcomer's first minute, with the wheel that is named or that of `cargo xtask wheel`.
fn minute(wheel: impl Iterator<Item = String>) -> Result<(), String> {
    let mut command = Command::new(system_python()?);
    succeed(command.arg("tests/newcomer/minute.py").args(wheel).current_dir(root()?))
}

/// Fuzzing and comparisons, as long as the arguments say, and the page of their figures: the program `trust` of twill-fuzz.
fn trust(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let root = root()?;
    let arguments: Vec<String> = arguments.collect();
    let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["run", "--quiet", "--release", "--locked", "--package", "twill-fuzz", "--bin", "trust", "--"]);
    command.args(&arguments).arg("--root").arg(&root).current_dir(&root);
    // Z3 and what looks at the command from outside need the environment.
    let named = |part: &&str| arguments.iter().any(|a| a.split([',', '=']).any(|word| word == *part));
    let all = !arguments.iter().any(|a| a.starts_with("--only") || a == "--help");
    if all || ["z3", "budgets", "kills", "hostile", "interleavings", "supply"].iter().any(named) {
        command.arg("--python").arg(Environment::new(&root)?.interpreter());
    }
    succeed(&mut command)
}

fn root() -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).ok_or_else(|| "xtask stands at the top of the file system".into())
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs a command that has to succeed.
fn succeed(command: &mut Command) -> Result<(), String> {
    eprintln!("xtask: {command:?}");
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
