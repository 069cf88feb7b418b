//! The book of outcomes: what tests said of defects, in this run and in earlier ones.

use super::tried::Outcome;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

/// A line for each defect, written as it comes; the last one counts.
pub struct Outcomes {
    file: Mutex<std::fs::File>,
    known: Mutex<BTreeMap<String, Outcome>>,
}

impl Outcomes {
    pub fn open(folder: &Path, fresh: bool) -> Result<Outcomes, String> {
        let path = folder.join("outcomes.txt");
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(folder).map_err(failed)?;
        if fresh {
            let _ = std::fs::remove_file(&path);
        }
        let file = std::fs::File::options().create(true).append(true).open(&path).map_err(failed)?;
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        Ok(Outcomes { file: Mutex::new(file), known: Mutex::new(text.lines().filter_map(Outcome::read).collect()) })
    }

    pub fn of(&self, name: &str) -> Option<Outcome> {
        self.known.lock().ok()?.get(name).copied()
    }

    /// Returns whether an earlier run saw it noticed. What was not is tried again: tests may be new.
    pub fn noticed(&self, name: &str) -> bool {
        self.of(name) == Some(Outcome::Noticed)
    }

    pub fn add(&self, name: &str, outcome: Outcome) -> Result<(), String> {
        let poisoned = |_| "a thread failed".to_owned();
        let mut file = self.file.lock().map_err(|_| poisoned(()))?;
        file.write_all(outcome.line(name).as_bytes()).map_err(|e| format!("outcomes.txt: {e}"))?;
        self.known.lock().map_err(|_| poisoned(()))?.insert(name.to_owned(), outcome);
        Ok(())
    }
}

impl Outcome {
    fn line(self, name: &str) -> String {
        format!("{} {name}\n", if self == Outcome::Noticed { "noticed" } else { "missed" })
    }

    fn read(line: &str) -> Option<(String, Outcome)> {
        match line.split_once(' ')? {
            ("noticed", name) => Some((name.to_owned(), Outcome::Noticed)),
            ("missed", name) => Some((name.to_owned(), Outcome::Missed)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["crates/a/src/b.rs:1:5: replace c with d", "crates/a/src/e.rs:9:20: replace || with &&"];

    #[test]
    fn what_an_earlier_run_noticed_is_known_and_the_last_word_counts() {
        let folder = tempfile::tempdir().unwrap();
        let outcomes = Outcomes::open(folder.path(), false).unwrap();
        outcomes.add(NAMES[0], Outcome::Missed).unwrap();
        outcomes.add(NAMES[1], Outcome::Missed).unwrap();
        outcomes.add(NAMES[0], Outcome::Noticed).unwrap();
        let again = Outcomes::open(folder.path(), false).unwrap();
        assert_eq!(NAMES.map(|name| again.of(name)), [Some(Outcome::Noticed), Some(Outcome::Missed)]);
        assert!(Outcomes::open(folder.path(), true).unwrap().of(NAMES[0]).is_none());
    }
}
