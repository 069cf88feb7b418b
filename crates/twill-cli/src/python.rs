//! Commands of the Python package, to which `twill` hands their words over.

use crate::error::Error;
use crate::exit::Exit;
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// The interpreter when `TWILL_PYTHON` names none.
const PYTHON: &str = "python3";

/// A command of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// `twill sweep`: tiles of another shape need Triton's front end.
    Sweep,
    /// `twill collect`: it runs a Python program and records what its Triton compiles.
    Collect,
    /// The TTIR of a function in Python source.
    Ttir,
    /// `twill machine calibrate`: it compiles and runs kernels.
    Calibrate,
}

impl Module {
    /// What is run with `python -m`.
    fn name(self) -> &'static str {
        match self {
            Module::Sweep => "twill_gpu.sweeping",
            Module::Collect => "twill_gpu.collecting",
            Module::Ttir => "twill_gpu.ttir",
            Module::Calibrate => "twill_gpu.calibration",
        }
    }

    /// What was asked for, and why in Python.
    fn requested(self) -> (&'static str, &'static str) {
        match self {
            Module::Sweep => ("twill sweep", "for Triton's front end"),
            Module::Collect => ("twill collect", "for the Triton of your program"),
            Module::Ttir => ("FILE.py::KERNEL", "for Triton's front end"),
            Module::Calibrate => ("twill machine calibrate", "for CUDA's driver and NVRTC"),
        }
    }
}

/// The interpreter, which has the package.
fn interpreter(module: Module) -> Result<OsString, Error> {
    let python = std::env::var_os("TWILL_PYTHON").unwrap_or_else(|| OsString::from(PYTHON));
    let has_package = Command::new(&python).args(["-c", "import twill_gpu"]).output();
    match has_package {
        Err(error) => Err(refused(module, &python, error.to_string())),
        Ok(output) if !output.status.success() => Err(refused(module, &python, "it has no package twill_gpu".into())),
        Ok(_) => Ok(python),
    }
}

fn refused(module: Module, python: &OsStr, why: String) -> Error {
    let (command, purpose) = module.requested();
    Error::Python { command, purpose, python: python.to_string_lossy().into_owned(), why }
}

/// What a module prints for an input; where it fails, its last line is why.
pub(crate) fn output(module: Module, input: &str, words: &[String]) -> Result<String, Error> {
    let python = interpreter(module)?;
    let ran = Command::new(&python).args(["-m", module.name()]).args(words).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| refused(module, &python, error.to_string()))?;
    let told = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        let why = told.trim().strip_prefix("error: ").unwrap_or(told.trim());
        let why = why.strip_prefix(&format!("{input}: ")).unwrap_or(why).to_owned();
        return Err(Error::Ttir { input: input.to_owned(), why });
    }
    eprint!("{}", crate::printable(&told) + if told.is_empty() { "" } else { "\n" });
    String::from_utf8(ran.stdout).map_err(|error| refused(module, &python, error.to_string()))
}

/// Runs a command with these words.
pub(crate) fn run(module: Module, words: &[OsString]) -> Result<Exit, Error> {
    // Ctrl-C is for the package, which ends with what is there.
    crate::progress::interrupt();
    let python = interpreter(module)?;
    let refused = |why: String| refused(module, &python, why);
    let status = Command::new(&python).args(["-m", module.name()]).args(words).status();
    match status.map_err(|error| refused(error.to_string()))?.code() {
        Some(0) => Ok(Exit::Done),
        Some(3) => Ok(Exit::Stopped),
        // What went wrong has been said.
        _ => Ok(Exit::Error),
    }
}
