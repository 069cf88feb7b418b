//! Writing outputs whole, and reading inputs.

use crate::collected::Collected;
use crate::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use twill_driver::files::{begin, exists};

/// The text of a file, or of standard input, which is `-`.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    Ok(twill_driver::files::read(path)?)
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

/// The files that are named, and the TTIR of the folders, in the order of their names.
pub(crate) fn kernels(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut all = Vec::new();
    for path in inputs {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let failed = |error| Error::Folder { path: path.clone(), error };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            found.push(entry.map_err(failed)?.path());
        }
        found.retain(|file| file.extension().is_some_and(|kind| kind == "ttir"));
        found.sort();
        // Of collected kernels, those first that took most time.
        let time = |file: &PathBuf| Collected::of(file).and_then(|one| one.milliseconds).unwrap_or(0.0);
        found.sort_by(|one, other| time(other).total_cmp(&time(one)));
        if found.is_empty() {
            return Err(Error::NoKernels { path: path.clone() });
        }
        all.extend(found);
    }
    Ok(all)
}
