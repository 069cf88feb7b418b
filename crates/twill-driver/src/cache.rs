//! What was proved and generated before, on disk.
//!
//! Entries are found by a hash of everything that they depend on: the problem without places in the source, the machine,
//! options, budgets, and the build of Twill. Each is a file that begins with the hash of its content and takes its name when it
//! is whole, so that writers may be many and may be killed. An entry is a claim like any other: what is read is replayed by
//! `twill-check`, and thrown away where it fails.
//!
//! Kernels are executed, so folders and entries count only if they are this user's and nobody else may write to them. The
//! hash in an entry is of its key too: an entry that somebody moved to the place of another one is none.

use crate::owner;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where entries are, below the folder of a cache: nothing else is ever touched.
const ENTRIES: &str = "twill-cache-v1";

/// The build that entries belong to: another one may find something else.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("TWILL_SOURCES"));

/// How often to remove what was thrown away while others still write into it.
const REMOVALS: usize = 100;

/// A cache on disk; it need not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    entries: PathBuf,
}

/// How much a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheInfo {
    /// Schedules of loops, and of kernels with several.
    pub schedules: usize,
    /// Generated kernels.
    pub kernels: usize,
    /// Verdicts on configurations of a sweep.
    pub configurations: usize,
    /// Bytes of all entries.
    pub bytes: u64,
}

/// Why a cache cannot be used.
#[derive(Debug, Error)]
#[error("the cache in {folder}: {error}", folder = folder.display())]
pub struct CacheError {
    folder: PathBuf,
    error: io::Error,
}

/// What kind of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Schedule,
    Kernel,
    Configuration,
    /// Cycles of an iteration of a kernel's machine code, by loop.
    Estimate,
}

impl EntryKind {
    const ALL: [EntryKind; 4] = [EntryKind::Schedule, EntryKind::Kernel, EntryKind::Configuration, EntryKind::Estimate];

    fn name(self) -> &'static str {
        match self {
            EntryKind::Schedule => "schedule",
            EntryKind::Kernel => "kernel",
            EntryKind::Configuration => "configuration",
            EntryKind::Estimate => "estimate",
        }
    }
}

/// What an entry depends on, as a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    kind: EntryKind,
    hash: String,
}

impl Key {
    /// The key of what depends on `parts` and nothing else. Places in the source and descriptions play no part.
    pub(crate) fn new(kind: EntryKind, parts: &impl Serialize) -> Key {
        // Plain data always serialises.
        let mut value = serde_json::to_value(parts).unwrap_or_default();
        forget_places(&mut value);
        Key { kind, hash: hash(&format!("{BUILD}\n{value}")) }
    }

    /// The hash of an entry of this key.
    fn digest(&self, text: &str) -> String {
        hash(&format!("{}/{}\n{text}", self.kind.name(), self.hash))
    }
}

fn hash(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

fn forget_places(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|key, _| key != "source" && key != "description");
            entries.values_mut().for_each(forget_places);
        }
        Value::Array(each) => each.iter_mut().for_each(forget_places),
        _ => {}
    }
}

impl Cache {
    /// The cache in a folder.
    pub fn at(folder: &Path) -> Cache {
        Cache { entries: folder.join(ENTRIES) }
    }

    /// The cache that the environment names: `TWILL_CACHE` is a folder or `off`; otherwise it is `twill` in
    /// `XDG_CACHE_HOME` or `~/.cache`. `None` where it is off or there is no place for it.
    pub fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Cache> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let folder = match set("TWILL_CACHE") {
            Some(off) if off == "off" => return None,
            Some(folder) => PathBuf::from(folder),
            None => match (set("XDG_CACHE_HOME"), set("HOME")) {
                (Some(folder), _) => Path::new(&folder).join("twill"),
                (None, Some(home)) => Path::new(&home).join(".cache").join("twill"),
                (None, None) => return None,
            },
        };
        Some(Cache::at(&folder))
    }

    /// Where its entries are.
    pub fn folder(&self) -> &Path {
        &self.entries
    }

    /// How much it holds.
    ///
    /// # Errors
    /// When it does not read.
    pub fn info(&self) -> Result<CacheInfo, CacheError> {
        self.count().map_err(|error| self.failed(error))
    }

    fn count(&self) -> io::Result<CacheInfo> {
        let mut info = CacheInfo::default();
        match owner::trusted_folder(&self.entries) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for kind in EntryKind::ALL {
            let folder = self.entries.join(kind.name());
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                // What has no name yet is no entry; what another process removes meanwhile is none any more.
                let Ok(metadata) = entry.metadata() else { continue };
                if entry.file_name().to_string_lossy().starts_with('.') {
                    continue;
                }
                info.bytes += metadata.len();
                match kind {
                    EntryKind::Schedule => info.schedules += 1,
                    EntryKind::Kernel => info.kernels += 1,
                    EntryKind::Configuration => info.configurations += 1,
                    // Part of what is known of a kernel.
                    EntryKind::Estimate => {}
                }
            }
        }
        Ok(info)
    }

    /// Throws everything away; says what there was.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn clear(&self) -> Result<CacheInfo, CacheError> {
        let info = self.info()?;
        match self.throw_away() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(info),
        }
    }

    /// Takes all entries out of the way at once: what others write meanwhile is not in the way of removing them.
    fn throw_away(&self) -> io::Result<()> {
        let parent = self.entries.parent().unwrap_or(Path::new("."));
        let bin = tempfile::Builder::new().prefix(".").tempdir_in(parent)?;
        fs::rename(&self.entries, bin.path().join(ENTRIES))?;
        // A writer whose path was resolved before the rename still makes its file below the bin, if only once.
        for _ in 1..REMOVALS {
            match fs::remove_dir_all(bin.path()) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => std::thread::yield_now(),
                removed => return removed,
            }
        }
        bin.close()
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.entries.join(key.kind.name()).join(&key.hash)
    }

    /// That the folders of an entry are this user's alone.
    fn trusted(&self, key: &Key) -> io::Result<()> {
        owner::trusted_folder(&self.entries)?;
        owner::trusted_folder(&self.entries.join(key.kind.name()))
    }

    /// An entry's text; one that is not what this user wrote is absent.
    fn read(&self, key: &Key) -> Option<String> {
        self.trusted(key).ok()?;
        let path = self.path(key);
        // Opening a pipe would wait for its writer.
        owner::trusted_file(&fs::symlink_metadata(&path).ok()?).ok()?;
        let mut file = File::open(&path).ok()?;
        // It may have been replaced in between.
        owner::trusted_file(&file.metadata().ok()?).ok()?;
        let mut whole = String::new();
        file.read_to_string(&mut whole).ok()?;
        let (digest, text) = whole.split_once('\n')?;
        (digest == key.digest(text)).then(|| text.to_owned())
    }

    /// Keeps a text. That it cannot be kept is no failure: it is found again.
    pub(crate) fn write(&self, key: &Key, text: &str) {
        let _ = self.try_write(key, text);
    }

    fn try_write(&self, key: &Key, text: &str) -> io::Result<()> {
        let folder = self.entries.join(key.kind.name());
        owner::create_folder(&folder)?;
        self.trusted(key)?;
        let mut file = tempfile::Builder::new().prefix(".").tempfile_in(folder)?;
        writeln!(file, "{}", key.digest(text))?;
        file.write_all(text.as_bytes())?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Forgets an entry that failed its check.
    fn remove(&self, key: &Key) {
        if self.trusted(key).is_ok() {
            let _ = fs::remove_file(self.path(key));
        }
    }

    /// What an entry says, if there is one and `check` accepts it; what it does not accept is forgotten.
    pub(crate) fn find<T>(&self, key: &Key, check: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = self.read(key).and_then(|text| check(&text));
        if found.is_none() {
            self.remove(key);
        }
        found
    }

    fn failed(&self, error: io::Error) -> CacheError {
        CacheError { folder: self.entries.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(of: &str) -> Key {
        Key::new(EntryKind::Schedule, &of)
    }

    #[test]
    fn what_was_kept_is_found_and_counted_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(cache.info().unwrap(), CacheInfo::default());
        cache.write(&key("a"), "line\nline");
        assert_eq!(cache.find(&key("a"), |text| Some(text.to_owned())).as_deref(), Some("line\nline"));
        assert_eq!(cache.find(&key("b"), |_| Some(())), None);
        assert_eq!(cache.info().unwrap().schedules, 1);
        fs::write(folder.path().join("mine"), "").unwrap();
        assert_eq!(cache.clear().unwrap().schedules, 1);
        assert_eq!(cache.info().unwrap(), CacheInfo::default());
        assert!(folder.path().join("mine").exists());
    }

    #[test]
    fn what_is_broken_or_not_accepted_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        cache.write(&key("a"), "text");
        let path = cache.path(&key("a"));
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(cache.find(&key("a"), |_| Some(())), None);
        assert!(!path.exists());
        cache.write(&key("a"), "text");
        assert_eq!(cache.find(&key("a"), |_| None::<()>), None);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn what_others_may_have_written_is_absent() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let found = |of: &str| cache.find(&key(of), |text| Some(text.to_owned()));
        cache.write(&key("a"), "text");
        for (path, usual) in [
            (cache.folder().to_owned(), 0o700),
            (cache.folder().join("schedule"), 0o700),
            (cache.path(&key("a")), 0o600),
        ] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, usual);
            assert_eq!(found("a").as_deref(), Some("text"));
            mode(&path, 0o777);
            assert_eq!(cache.read(&key("a")), None, "{}", path.display());
            mode(&path, usual);
        }
        mode(cache.folder(), 0o770);
        assert!(cache.info().unwrap_err().to_string().contains("others may write"));
        cache.write(&key("b"), "text");
        mode(cache.folder(), 0o700);
        assert_eq!((found("a").as_deref(), found("b")), (Some("text"), None));

        // Under the name of another one, by a link, by a pipe.
        fs::copy(cache.path(&key("a")), cache.path(&key("b"))).unwrap();
        assert_eq!(cache.read(&key("b")), None);
        fs::rename(cache.path(&key("a")), folder.path().join("moved")).unwrap();
        symlink(folder.path().join("moved"), cache.path(&key("a"))).unwrap();
        assert_eq!(cache.read(&key("a")), None);
        fs::remove_file(cache.path(&key("a"))).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(cache.path(&key("a"))).status();
        assert!(pipe.is_err() || cache.read(&key("a")).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_a_link_is_not_used() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Cache::at(other.path()).write(&key("a"), "text");
        std::os::unix::fs::symlink(other.path().join(ENTRIES), folder.path().join(ENTRIES)).unwrap();
        assert_eq!(Cache::at(folder.path()).read(&key("a")), None);
    }

    #[test]
    fn many_writers_leave_whole_entries() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..50 {
                        let text = format!("{writer} {round} ").repeat(1 + 97 * writer);
                        cache.write(&key("a"), &text);
                        let whole = |text: &str| text.split(' ').count() % 2 == 1;
                        assert_eq!(cache.find(&key("a"), |text| Some(whole(text))), Some(true));
                    }
                });
            }
        });
        assert_eq!(cache.info().unwrap().schedules, 1);
    }

    #[test]
    fn places_in_the_source_play_no_part() {
        let with = |line: u32| serde_json::json!({"name": "qk", "source": {"file": "a.py", "line": line}});
        assert_eq!(Key::new(EntryKind::Schedule, &with(1)), Key::new(EntryKind::Schedule, &with(2)));
        assert_ne!(
            Key::new(EntryKind::Schedule, &with(1)),
            Key::new(EntryKind::Schedule, &serde_json::json!({"name": "pv"}))
        );
        assert_ne!(Key::new(EntryKind::Schedule, &1), Key::new(EntryKind::Schedule, &2));
    }

    #[test]
    fn the_environment_names_it_or_turns_it_off() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<(String, OsString)> = set.iter().map(|(k, v)| ((*k).into(), v.into())).collect();
            Cache::of_environment(|name| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(of(&[("TWILL_CACHE", "off"), ("HOME", "/h")]), None);
        assert_eq!(of(&[("TWILL_CACHE", "/c"), ("HOME", "/h")]), Some(Cache::at(Path::new("/c"))));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some(Cache::at(Path::new("/x/twill"))));
        assert_eq!(of(&[("HOME", "/h"), ("TWILL_CACHE", "")]), Some(Cache::at(Path::new("/h/.cache/twill"))));
        assert_eq!(of(&[]), None);
    }
}
