//! `cargo xtask playground`: reader, engine, explanation and page as one HTML file, `target/playground.html`.

use crate::{root, succeed, target};
use std::env;
use std::path::PathBuf;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
const PACKAGE: &str = "twill-playground";

/// Whether this Rust compiles to WebAssembly.
pub fn has_target() -> bool {
    let printed = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    printed.is_ok_and(|printed| PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim()).is_dir())
}

/// How to have it.
pub const HOW: &str = "rustup target add wasm32-unknown-unknown";

/// Compiles the engine and puts the page together.
///
/// # Errors
///
/// That this Rust does not compile to WebAssembly, or that something failed.
pub fn playground() -> Result<(), String> {
    if !has_target() {
        return Err(format!("this Rust does not compile to WebAssembly: {HOW}"));
    }
    let root = root()?;
    let target = target(&root);
    let cargo = || {
        let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        command.current_dir(&root);
        command
    };
    let build = ["build", "--locked", "--profile", "playground", "--target", TARGET, "--package", PACKAGE];
    succeed(cargo().args(build))?;
    let engine = target.join(TARGET).join("playground").join("twill_playground.wasm");
    let bundle = ["run", "--quiet", "--locked", "--package", PACKAGE, "--features", "bundle", "--bin", "bundle", "--"];
    succeed(cargo().args(bundle).arg(engine).arg(target.join("playground.html")))
}
