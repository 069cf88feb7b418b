//! From a file to a listing: text as it is, a cubin through nvdisasm.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// How an ELF file, and so a cubin, begins.
const ELF: [u8; 4] = *b"\x7fELF";
/// The machine of an ELF file that is for NVIDIA's GPUs (`EM_CUDA`).
const CUDA: u16 = 190;

/// Why a file gives no listing.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is for another processor.
    #[error("{}: it is an ELF file, but no cubin", path.display())]
    NoCubin {
        /// The file.
        path: PathBuf,
    },
    /// There is no disassembler.
    #[error(
        "{}: a cubin is read through nvdisasm, and there is none ({tried}); name it with --nvdisasm, install Triton or the CUDA toolkit, or give the text that nvdisasm -c -g prints", path.display()
    )]
    NoDisassembler {
        /// The file.
        path: PathBuf,
        /// What was tried.
        tried: String,
    },
    /// The disassembler refused it.
    #[error("{}: {} failed: {why}", path.display(), program.display())]
    Disassembler {
        /// The file.
        path: PathBuf,
        /// The disassembler.
        program: PathBuf,
        /// What it said.
        why: String,
    },
}

/// The listing of a file: of a cubin through the first of these disassemblers that there is.
///
/// # Errors
/// [`ReadError`].
pub fn listing(path: &Path, disassemblers: &[PathBuf]) -> Result<String, ReadError> {
    let bytes = std::fs::read(path).map_err(|error| ReadError::File { path: path.to_owned(), error })?;
    if !bytes.starts_with(&ELF) {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let machine = bytes.get(18..20).map(|word| u16::from_le_bytes([word[0], word[1]]));
    if machine != Some(CUDA) {
        return Err(ReadError::NoCubin { path: path.to_owned() });
    }
    for program in disassemblers {
        let output = Command::new(program).args(["-c", "-g"]).arg(path).stdin(Stdio::null()).output();
        let output = match output {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Err(error.to_string()),
            Ok(output) if !output.status.success() => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Ok(output) => Ok(output),
        };
        let refused = |why| ReadError::Disassembler { path: path.to_owned(), program: program.clone(), why };
        return output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).map_err(refused);
    }
    let tried: Vec<String> = disassemblers.iter().map(|program| program.display().to_string()).collect();
    Err(ReadError::NoDisassembler { path: path.to_owned(), tried: tried.join(", ") })
}

/// The files to check of a path: itself, or of a folder every `.cubin` and `.sass` at any depth, in order.
///
/// # Errors
/// [`ReadError::File`] of a folder that cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| ReadError::File { path, error }
    };
    let (mut found, mut todo) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let kind = entry.file_type().map_err(failed(&entry.path()))?;
            let path = entry.path();
            if kind.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "cubin" || extension == "sass") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_cubins_are_told_from_those_that_need_a_disassembler() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cubin");
        let mut elf = [0u8; 64];
        elf[..4].copy_from_slice(&ELF);
        std::fs::write(&path, elf).unwrap();
        assert!(matches!(listing(&path, &[]), Err(ReadError::NoCubin { .. })));
        elf[18] = 190;
        std::fs::write(&path, elf).unwrap();
        let absent = folder.path().join("no-such-nvdisasm");
        let error = listing(&path, std::slice::from_ref(&absent)).unwrap_err().to_string();
        assert!(error.contains("--nvdisasm") && error.contains(&absent.display().to_string()), "{error}");
        assert!(matches!(listing(&absent, &[]), Err(ReadError::File { .. })));
    }

    #[test]
    fn folders_are_searched_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        for name in ["b.sass", "in/a.cubin", "c.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = files(folder.path()).unwrap();
        assert_eq!(found, [folder.path().join("b.sass"), folder.path().join("in/a.cubin")]);
    }
}
