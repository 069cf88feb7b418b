//! Reading inputs and writing outputs whole.

use crate::error::Error;
use crate::kind::STANDARD_INPUT;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest input in bytes; what is longer may be a device without end.
const LONGEST: u64 = 1 << 29;

/// Whether there is something to read: a file, a folder, or standard input, which is `-`.
pub(crate) fn exists(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || path.exists()
}

/// What pipes held: it can be read once, and is asked for more than once.
static PIPES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// A command begins, in a process that may have run others.
pub(crate) fn begin() {
    PIPES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// The text of a file, or of standard input, which is `-`.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let is_standard_input = path == Path::new(STANDARD_INPUT);
    let is_pipe = is_standard_input || fs::metadata(path).is_ok_and(|of| !of.is_file() && !of.is_dir());
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = pipes.get(path).filter(|_| is_pipe) {
        return Ok(before.clone());
    }
    let read = if is_standard_input {
        text(Path::new("standard input"), io::stdin().lock())?
    } else {
        text(path, File::open(path).map_err(|error| Error::Read { path: path.to_owned(), error })?)?
    };
    if is_pipe {
        pipes.insert(path.to_owned(), read.clone());
    }
    Ok(read)
}

fn text(path: &Path, from: impl Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::Read { path: path.to_owned(), error })?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::TooLong { path: path.to_owned(), limit: LONGEST });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Error::NotText { path: path.display().to_string(), offset }
    })?;
    // Some editors begin a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Writes to a file, or to standard output, which is also `-`. A file appears whole or not at all.
pub(crate) fn write(path: Option<&Path>, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Error> {
    let bytes = text.as_ref();
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        let mut out = io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return match written {
            // A reader that has seen enough is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(Error::Output),
        };
    };
    let failed = |error| Error::Write { path: path.to_owned(), error };
    // A link keeps pointing where it does; a device or a pipe takes the text as it is.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return fs::write(&target, bytes).map_err(failed);
    }
    let Some(name) = target.file_name() else {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it names no file")));
    };
    let mut partial = name.to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial: PathBuf = target.with_file_name(partial);
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, &target));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&partial);
    }
    written.map_err(failed)
}
