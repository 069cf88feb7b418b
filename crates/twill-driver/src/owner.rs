//! What is this user's alone: what is executed may have been written by nobody else.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

/// That a folder is this user's own, no link, and that nobody else may write to it.
///
/// # Errors
/// What it is instead.
pub(crate) fn trusted_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        return Err(refused("it is no folder"));
    }
    trusted(&found)
}

/// The same of a file.
///
/// # Errors
/// What it is instead.
pub(crate) fn trusted_file(found: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        return Err(refused("it is no file"));
    }
    trusted(found)
}

/// Makes a folder and those above it, this user's alone whatever the umask.
///
/// # Errors
/// Why it cannot be made.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(unix)]
fn trusted(found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused("others may write to it: chmod go-w"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn trusted(_: &Metadata) -> io::Result<()> {
    Ok(())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
