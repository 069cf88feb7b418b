//! Reading inputs and writing outputs whole.

use crate::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|error| Error::Read { path: path.to_owned(), error })?;
    String::from_utf8(bytes)
        .map_err(|error| Error::NotText { path: path.display().to_string(), offset: error.utf8_error().valid_up_to() })
}

/// Writes to a file, or to standard output. A file appears whole or not at all.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), Error> {
    let Some(path) = path else {
        let mut out = io::stdout().lock();
        return out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output);
    };
    let failed = |error| Error::Write { path: path.to_owned(), error };
    let Some(name) = path.file_name() else {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it names no file")));
    };
    let mut partial = name.to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial: PathBuf = path.with_file_name(partial);
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&partial);
    }
    written.map_err(failed)
}
