//! The defects that cargo-mutants knows for a file, and where they are in it.

use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// A defect: text in the place of other text.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// File, line, column, and what is replaced by what: `crates/twill-check/src/rings.rs:12:5: replace …`.
    pub name: String,
    /// From the top of the checkout.
    pub file: String,
    pub function: Option<Function>,
    /// What kind of defect; [`BODY`] replaces all of a function.
    pub genre: String,
    pub span: Span,
    pub replacement: String,
}

/// The genre of defects in whose place a function's whole body was.
pub const BODY: &str = "FnValue";

/// The function around a defect.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Function {
    /// From its attributes or its first word to its last brace.
    pub span: Span,
}

/// Text from one place up to another.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: Place,
    pub end: Place,
}

/// Line and column, in characters, from 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    line: usize,
    column: usize,
}

impl Place {
    /// Bytes before it; the whole text where it is beyond the end.
    pub fn offset(self, text: &str) -> usize {
        let before: usize = text.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        let line = &text[before..];
        before + line.char_indices().nth(self.column - 1).map_or(line.len(), |(at, _)| at)
    }
}

/// All defects of these files of a package.
pub fn list(root: &Path, package: &str, files: &[&str]) -> Result<Vec<Mutant>, String> {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["mutants", "--list", "--json", "--package", package]);
    for file in files {
        command.args(["--file", &format!("crates/{package}/{file}")]);
    }
    let output = command.current_dir(root).output().map_err(|e| format!("cargo mutants: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("cargo mutants failed; `cargo install cargo-mutants --locked` brings it: {said}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo mutants --list --json: {e}"))
}
