//! Commands of the Python package, to which `twill` hands their words over.

use crate::error::Error;
use crate::exit::Exit;
use std::ffi::OsString;
use std::process::Command;

/// The interpreter when `TWILL_PYTHON` names none.
const PYTHON: &str = "python3";

/// A command of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// `twill sweep`: tiles of another shape need Triton's front end.
    Sweep,
    /// `twill machine calibrate`: it compiles and runs kernels.
    Calibrate,
}

impl Module {
    /// What is run with `python -m`.
    fn name(self) -> &'static str {
        match self {
            Module::Sweep => "twill_gpu.sweeping",
            Module::Calibrate => "twill_gpu.calibration",
        }
    }

    /// What was asked for, and why in Python.
    fn requested(self) -> (&'static str, &'static str) {
        match self {
            Module::Sweep => ("twill sweep", "for Triton's front end"),
            Module::Calibrate => ("twill machine calibrate", "for CUDA's driver and NVRTC"),
        }
    }
}

/// Runs a command with these words.
pub(crate) fn run(module: Module, words: &[OsString]) -> Result<Exit, Error> {
    let python = std::env::var_os("TWILL_PYTHON").unwrap_or_else(|| OsString::from(PYTHON));
    let (command, purpose) = module.requested();
    let refused = |why: String| Error::Python { command, purpose, python: python.to_string_lossy().into_owned(), why };
    // Ctrl-C is for the package, which ends with what is there.
    crate::progress::interrupt();
    let has_package = Command::new(&python).args(["-c", "import twill_gpu"]).output();
    match has_package {
        Err(error) => return Err(refused(error.to_string())),
        Ok(output) if !output.status.success() => return Err(refused("it has no package twill_gpu".into())),
        Ok(_) => {}
    }
    let status = Command::new(&python).args(["-m", module.name()]).args(words).status();
    match status.map_err(|error| refused(error.to_string()))?.code() {
        Some(0) => Ok(Exit::Done),
        Some(3) => Ok(Exit::Stopped),
        // What went wrong has been said.
        _ => Ok(Exit::Error),
    }
}
