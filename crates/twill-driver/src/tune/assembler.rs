//! What the assembler makes of a generated kernel, through `assemble.py` of its folder.

use crate::Error;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use twill_backend::package::Assembly;

/// The interpreter when none is given.
const PYTHON: &str = "python3";

/// A Python that can assemble kernels, as far as is known.
#[derive(Clone, Debug)]
pub struct Assembler {
    python: PathBuf,
    /// Whether somebody asked for this one, so that it has to work.
    requested: bool,
    folder: PathBuf,
    /// What machine code depends on in addition to the kernel, as far as the caller knows: versions of Triton and of the assembler.
    toolchain: String,
}

/// What came of running it.
pub(super) enum Assembled {
    /// Machine code, and what it is like.
    Report(Assembly),
    /// It cannot be done here, for this reason.
    Impossible(String),
}

impl Assembler {
    /// An assembler that prepares its files in a folder, which must exist. Without an interpreter it is `python3`, and
    /// does without where that has no Triton.
    pub fn new(python: Option<PathBuf>, folder: PathBuf) -> Assembler {
        let requested = python.is_some();
        Assembler { python: python.unwrap_or_else(|| PYTHON.into()), requested, folder, toolchain: String::new() }
    }

    /// The same, with what is known of its toolchain.
    #[must_use]
    pub fn of(self, toolchain: String) -> Assembler {
        Assembler { toolchain, ..self }
    }

    /// What its answers depend on: an interpreter, and with it a Triton and an assembler.
    pub(super) fn depends(&self) -> String {
        format!("{} {}", self.python.display(), self.toolchain)
    }

    /// Assembles a kernel.
    pub(super) fn run(&self, files: &[(&'static str, String)], input: &str) -> Result<Assembled, Error> {
        for (name, text) in files {
            let path = self.folder.join(name);
            std::fs::write(&path, text).map_err(|error| Error::Scratch { path: path.display().to_string(), error })?;
        }
        let python = || self.python.display().to_string();
        let failed = |why: String| Err(Error::Assembler { input: input.to_owned(), python: python(), why });
        let mut command = Command::new(&self.python);
        // No caches of Python in the folder.
        command.args(["-B", "assemble.py", "--json"]).current_dir(&self.folder).stdin(Stdio::null());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if !self.requested && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Assembled::Impossible(format!("there is no {}", python())));
            }
            Err(error) => return failed(error.to_string()),
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let last = complaint.trim_end().lines().last().unwrap_or_default();
            let in_cuda = files.iter().any(|(name, _)| *name == "kernel.cu");
            let needed = if in_cuda { "NVRTC" } else { "Triton 3.6" };
            let lacks = ["ModuleNotFoundError", "ImportError"].iter().any(|kind| last.starts_with(kind));
            return match (lacks, self.requested) {
                (true, false) => Ok(Assembled::Impossible(format!("{} has no {needed} ({last})", python()))),
                (true, true) => failed(format!("it has no {needed} ({last})")),
                (false, _) => failed(complaint.trim_end().to_owned()),
            };
        }
        match serde_json::from_slice(&output.stdout) {
            Ok(assembly) => Ok(Assembled::Report(assembly)),
            Err(error) => failed(format!("its report does not read: {error}")),
        }
    }
}
