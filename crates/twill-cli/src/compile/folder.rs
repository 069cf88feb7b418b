//! The folder of a kernel, which appears whole or not at all.

use crate::error::Error;
use crate::{files, progress};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// All that is written, here and by tracing and reports; a folder with anything else in it is somebody's. What was measured and
/// drawn of a kernel goes with it: the folder is replaced as a whole.
const OURS: [&str; 21] = [
    "kernel.py",
    "kernel.cu",
    "kernel.h",
    "twill.cuh",
    "twill_tcgen05.cuh",
    "twill_scratch.cuh",
    "twill_cluster.cuh",
    "twill_wave_sync.cuh",
    "kernel.json",
    "schedule.json",
    "warp_program.txt",
    "launch.py",
    "plan.py",
    "assemble.py",
    "ptxas.py",
    "machine_code.py",
    "test_kernel.py",
    "trace.bin",
    "trace.bin.json",
    "trace.json",
    "report.html",
];

/// What Python leaves behind when a kernel is run.
const CACHES: [&str; 2] = ["__pycache__", ".pytest_cache"];

/// Where a kernel is to go.
pub(super) struct Target(PathBuf);

impl Target {
    /// A folder that does not exist, is empty, or holds a generated kernel and nothing else.
    pub(super) fn new(path: &Path) -> Result<Target, Error> {
        let failed = |error| Error::Write { path: path.to_owned(), error };
        let refused = |why: String| Err(Error::NotOurs { path: path.to_owned(), why });
        if path.file_name().is_none() {
            return refused("it names no folder of its own".into());
        }
        if fs::symlink_metadata(path).is_err() {
            return Ok(Target(path.to_owned()));
        }
        let path = &fs::canonicalize(path).map_err(failed)?;
        if !path.is_dir() {
            return refused("it is a file".into());
        }
        let mut names: Vec<OsString> = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        names.sort();
        let known = |name: &OsString| OURS.iter().chain(&CACHES).any(|n| name == *n);
        if let Some(other) = names.iter().find(|name| !known(name)) {
            return refused(format!("it holds {}", Path::new(other).display()));
        }
        if !names.is_empty() && !is_kernel(&path.join("kernel.json")) {
            return refused("its kernel.json is none of twill's".into());
        }
        Ok(Target(path.clone()))
    }

    /// A place next to it to prepare the files in.
    pub(super) fn stage(self) -> Result<Staged, Error> {
        let sibling = |what: &str| {
            let mut name = self.0.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.{what}", std::process::id()));
            self.0.with_file_name(name)
        };
        let (partial, old) = (sibling("partial"), sibling("old"));
        progress::remove_on_exit(&partial);
        let staged = Staged { target: self.0, partial, old };
        let failed = |error| Error::Write { path: staged.target.clone(), error };
        fs::create_dir_all(&staged.partial).map_err(failed)?;
        Ok(staged)
    }
}

fn is_kernel(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let read: Result<serde_json::Value, _> = serde_json::from_str(&text);
    read.is_ok_and(|kernel| kernel["format"] == "twill-kernel")
}

/// Files that are not yet in their place.
pub(super) struct Staged {
    target: PathBuf,
    partial: PathBuf,
    old: PathBuf,
}

impl Staged {
    /// Where they are.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Writes files, over those of the same name.
    pub(super) fn write(&self, all: &BTreeMap<String, String>) -> Result<(), Error> {
        for (name, text) in all {
            let path = self.partial.join(name);
            files::write(Some(&path), text).map_err(|error| match error {
                // Told of the place that is known.
                Error::Write { error, .. } => Error::Write { path: self.target.join(name), error },
                other => other,
            })?;
        }
        Ok(())
    }

    /// Puts the folder in its place.
    pub(super) fn finish(self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Write { path: self.target.clone(), error };
        let replaces = self.target.exists();
        if replaces {
            fs::rename(&self.target, &self.old).map_err(failed)?;
        }
        if let Err(error) = fs::rename(&self.partial, &self.target) {
            if replaces {
                // What was there comes back; the error that matters is the one at hand.
                let _ = fs::rename(&self.old, &self.target);
            }
            return Err(failed(error));
        }
        // The kernel is in its place; what is left of the old one harms nobody.
        let _ = fs::remove_dir_all(&self.old);
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Best effort; after `finish` there is nothing left.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
