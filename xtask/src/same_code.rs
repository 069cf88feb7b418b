//! `cargo xtask same-code BASE [options]`: builds the command of a commit and of the working tree, and compares the machine code
//! of the kernels that both generate (tests/same_code/compare.py, whose options follow BASE).

use crate::environment::Environment;
use crate::{root, succeed, target};
use std::env;
use std::path::Path;
use std::process::Command;

/// Builds both and compares.
///
/// # Errors
///
/// That a commit does not build, or that a kernel's machine code differs.
pub fn same_code(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let base = arguments.next().filter(|base| !base.starts_with('-'));
    let base = base.ok_or("usage: cargo xtask same-code BASE [options of tests/same_code/compare.py]")?;
    let root = root()?;
    let folder = target(&root).join("same-code");
    let checkout = folder.join("base");
    let git = |arguments: &[&str], path: &Path| {
        let mut command = Command::new("git");
        command.args(arguments).arg(path).current_dir(&root);
        command
    };
    if checkout.exists() {
        succeed(&mut git(&["worktree", "remove", "--force"], &checkout))?;
    }
    succeed(git(&["worktree", "add", "--force", "--detach"], &checkout).arg(&base))?;
    build(&checkout, &folder.join("target"))?;
    succeed(&mut git(&["worktree", "remove", "--force"], &checkout))?;
    build(&root, &target(&root))?;
    let binary = |target: &Path| target.join("release").join("twill");
    let mut compare = Environment::new(&root)?.python(&["tests/same_code/compare.py"]);
    compare.arg(binary(&folder.join("target"))).arg(binary(&target(&root))).args(arguments);
    succeed(&mut compare)
}

fn build(checkout: &Path, target: &Path) -> Result<(), String> {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", "twill-cli", "--target-dir"]).arg(target);
    succeed(cargo.current_dir(checkout))
}
