//! Reading what is named: a file, standard input, or a built-in graph.

use crate::kind::{InputKind, STANDARD_INPUT};
use crate::{Error, Input};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use thiserror::Error as ThisError;
use twill_graph::builtin;

/// Longest input in bytes; what is longer may be a device without end.
const LONGEST: u64 = 1 << 29;

/// Why a text was not read.
#[derive(Debug, ThisError)]
pub enum FileError {
    /// The system does not read it.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is too long.
    #[error("cannot read {}: it has more than {} bytes", path.display(), twill_graph::grouped(*.limit))]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Bytes that are read.
        limit: u64,
    },
    /// It is no text.
    #[error("{path}: not text: byte {offset} is not UTF-8; Twill reads TTIR (.ttir) and loop graphs (.json)")]
    NotText {
        /// The file.
        path: String,
        /// Where it is none.
        offset: usize,
    },
    /// There is neither such a file nor such a graph.
    #[error("`{input}` is neither a file nor a built-in graph; built-in graphs: {known}")]
    UnknownInput {
        /// What was named.
        input: String,
        /// The built-in graphs.
        known: String,
    },
    /// It is no loop graph.
    #[error(transparent)]
    Graph(Box<Error>),
}

/// Whether there is a file of this name, or it is standard input, which is `-`.
pub fn exists(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || path.exists()
}

/// What pipes held: it can be read once, and is asked for more than once.
static PIPES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// A command begins, in a process that may have run others.
pub fn begin() {
    PIPES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The text of a file, or of standard input, which is `-`.
pub fn read(path: &Path) -> Result<String, FileError> {
    let is_standard_input = path == Path::new(STANDARD_INPUT);
    let is_pipe = is_standard_input || fs::metadata(path).is_ok_and(|of| !of.is_file() && !of.is_dir());
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = pipes.get(path).filter(|_| is_pipe) {
        return Ok(before.clone());
    }
    let read = if is_standard_input {
        text(Path::new("standard input"), io::stdin().lock())?
    } else {
        text(path, File::open(path).map_err(|error| FileError::Read { path: path.to_owned(), error })?)?
    };
    if is_pipe {
        pipes.insert(path.to_owned(), read.clone());
    }
    Ok(read)
}

fn text(path: &Path, from: impl Read) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    let read = from.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| FileError::Read { path: path.to_owned(), error })?;
    if bytes.len() as u64 > LONGEST {
        return Err(FileError::TooLong { path: path.to_owned(), limit: LONGEST });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        FileError::NotText { path: path.display().to_string(), offset }
    })?;
    // Some editors begin a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Names of the built-in graphs.
pub fn known() -> String {
    builtin::names().collect::<Vec<_>>().join(", ")
}

/// The kernel or loop graph of this name: a file, standard input, or a built-in graph.
///
/// # Errors
/// When there is none, or it does not read.
pub fn named(name: &str) -> Result<Input, FileError> {
    let path = Path::new(name);
    if !exists(path) {
        if let Some(input) = Input::builtin(name) {
            return Ok(input);
        }
        if path.extension().is_none() && path.components().count() <= 1 {
            return Err(FileError::UnknownInput { input: name.to_owned(), known: known() });
        }
        // It looks like a path: reading it says why it cannot be read.
    }
    let text = read(path)?;
    match InputKind::of(path, &text) {
        InputKind::LoopGraph => Input::graph(name, &text).map_err(|error| FileError::Graph(Box::new(error))),
        _ => Ok(Input::kernel(name, text)),
    }
}
