//! `twill sweep`: handed over to the Python package, since tiles of another shape need Triton's front end.

use crate::Exit;
use crate::arguments::SweepArguments;
use crate::error::Error;
use std::ffi::OsString;
use std::process::Command;

/// The interpreter when `TWILL_PYTHON` names none.
const PYTHON: &str = "python3";
/// What the package's command is.
const MODULE: &str = "twill_gpu.sweeping";

pub(crate) fn run(arguments: &SweepArguments) -> Result<Exit, Error> {
    let python = std::env::var_os("TWILL_PYTHON").unwrap_or_else(|| OsString::from(PYTHON));
    let refused = |why: String| Error::Sweep { python: python.to_string_lossy().into_owned(), why };
    // Ctrl-C is for the package, which ends with what is there.
    crate::progress::interrupt();
    let has_package = Command::new(&python).args(["-c", "import twill_gpu"]).output();
    match has_package {
        Err(error) => return Err(refused(error.to_string())),
        Ok(output) if !output.status.success() => return Err(refused("it has no package twill_gpu".into())),
        Ok(_) => {}
    }
    let status = Command::new(&python).args(["-m", MODULE]).args(&arguments.words).status();
    match status.map_err(|error| refused(error.to_string()))?.code() {
        Some(0) => Ok(Exit::Done),
        Some(3) => Ok(Exit::Stopped),
        // What went wrong has been said.
        _ => Ok(Exit::Error),
    }
}
