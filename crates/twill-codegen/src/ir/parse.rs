//! Reads the text of a warp program ([`print`](super::print)).

mod expression;
mod group;
mod op;
mod program;
mod tokens;

use super::{Variable, WarpProgram};
use std::collections::HashMap;
use std::str::FromStr;
use thiserror::Error;

/// What is wrong with the text of a warp program.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

type Read<T> = Result<T, ReadError>;

impl FromStr for WarpProgram {
    type Err = ReadError;

    fn from_str(text: &str) -> Read<WarpProgram> {
        let mut reader = Reader { text, at: 0, names: HashMap::new(), variables: Vec::new() };
        let program = reader.program()?;
        reader.blank();
        if reader.at < text.len() { Err(reader.error("nothing follows a program")) } else { Ok(program) }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum NameKind {
    Buffer,
    Barrier,
    Descriptor,
    Named,
    Variable,
    Cursor,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    names: HashMap<(NameKind, String), u32>,
    /// Of the group that is read.
    variables: Vec<Variable>,
}
