//! Defects in the checker, and in the engine's constraints, one at a time, by cargo-mutants: tests have to notice.
//!
//! A mutant that an earlier run noticed is not tried again (`--iterate`), as long as its line has not moved.

use crate::Arguments;
use crate::section::{Section, Table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const COLUMNS: [&str; 6] = ["file", "defects", "noticed", "noticed, %", "not noticed", "no code"];
const ALL: &str = "all";

/// The outcome of the defects of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    noticed: u64,
    missed: u64,
    /// Those that do not compile.
    unviable: u64,
}

/// The code that gets defects: a page's section.
struct Subject {
    name: &'static str,
    title: &'static str,
    order: u32,
    text: &'static str,
    package: &'static str,
    groups: &'static [Group],
}

/// Files, and the tests that have to notice what is wrong in them: others would only take time.
struct Group {
    name: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
    /// Tests that take long are built with optimisations.
    optimised: bool,
    quick: Quick,
}

/// A quick test before all of a group's tests, where they take long: the others need not see what it notices.
enum Quick {
    Nothing,
    /// Tests of these names.
    Named(&'static [&'static str]),
    /// Other programs of tests.
    Programs(&'static [&'static str]),
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "mutants",
        title: "Defects put into the checker",
        order: 14,
        text: CHECKER,
        package: "twill-check",
        groups: &[
            Group {
                name: "certificate",
                files: &["src/certificate.rs", "src/certificate/*.rs"],
                tests: &["--lib", "--test=certificates"],
                optimised: false,
                quick: Quick::Nothing,
            },
            Group {
                name: "dataflow",
                files: &["src/dataflow.rs"],
                tests: &["--lib", "--test=dataflow"],
                optimised: false,
                quick: Quick::Nothing,
            },
            Group {
                name: "protocol",
                files: &["src/protocol/*.rs"],
                tests: &["--lib", "--test=protocol"],
                optimised: true,
                quick: Quick::Named(&[
                    "faults",
                    "mutations::nothing",
                    "order",
                    "proofs",
                    "systems",
                    "cases",
                    "verdicts",
                ]),
            },
            Group {
                name: "replay",
                files: &["src/*.rs"],
                tests: &["--lib", "--test=replay", "--test=multipliers"],
                optimised: true,
                quick: Quick::Nothing,
            },
        ],
    },
    Subject {
        name: "mutants-constraints",
        title: "Defects put into the engine's constraints",
        order: 14,
        text: CONSTRAINTS,
        package: "twill-exact",
        groups: &[Group {
            name: "constraints",
            files: &["src/constraints/*.rs"],
            tests: &["--lib", "--tests"],
            optimised: false,
            quick: Quick::Programs(&["--test=search", "--test=modulo", "--test=alternatives", "--test=explain"]),
        }],
    },
];

/// Tries all defects that earlier runs have not noticed, and explains what is left with the words that were found before.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    // The others are tried even if one has an unexplained mutant.
    let each: Vec<Result<(), String>> = SUBJECTS.iter().map(|subject| put_into(arguments, subject)).collect();
    each.into_iter().collect()
}

fn put_into(arguments: &Arguments, subject: &Subject) -> Result<(), String> {
    let before = Section::read(&arguments.root, subject.name)?;
    let explained = before.tables.get(1).cloned().unwrap_or_default();
    let (mut lists, mut failed) = (Lists::default(), Ok(()));
    for (at, group) in subject.groups.iter().enumerate() {
        let folder = arguments.root.join("target").join("mutants").join(group.name);
        // Files of the groups before are theirs.
        let others: Vec<&str> = subject.groups[..at].iter().flat_map(|group| group.files).copied().collect();
        if arguments.targets.is_empty() || arguments.targets.iter().any(|name| name == group.name) {
            if arguments.fresh {
                let _ = std::fs::remove_dir_all(&folder);
            }
            std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            let mut tries = |tests, named| {
                if failed.is_ok() {
                    failed = tried(arguments, &folder, subject.package, group, &others, tests, named);
                }
            };
            match group.quick {
                Quick::Nothing => {}
                Quick::Named(names) => tries(group.tests, names),
                Quick::Programs(tests) => tries(tests, &[]),
            }
            tries(group.tests, &[]);
        }
        // Results until the stop are kept.
        lists.add(Lists::read(&folder)?);
    }
    let left: Vec<&String> = lists.missed.iter().filter(|name| explanation(&explained, name).is_none()).collect();
    for name in &left {
        eprintln!("trust: not noticed, and not explained: {name}");
    }
    let section = Section {
        title: subject.title.into(),
        order: subject.order,
        command: "cargo xtask trust --only mutants".into(),
        text: vec![subject.text.into()],
        tables: vec![lists.table(before.tables.first()), lists.explained(&explained)],
        ..before
    };
    section.write(&arguments.root, subject.name)?;
    failed?;
    if left.is_empty() { Ok(()) } else { Err(format!("{} defects are neither noticed nor explained", left.len())) }
}

/// Puts what was not noticed before to these of the group's tests, or to those of these names.
fn tried(
    arguments: &Arguments,
    folder: &Path,
    package: &str,
    group: &Group,
    others: &[&str],
    tests: &[&str],
    names: &[&str],
) -> Result<(), String> {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["mutants", "--package", package, "--iterate", "--no-shuffle", "--jobs", "2", "--output"]);
    command.arg(folder);
    for file in group.files {
        command.args(["--file", &format!("crates/{package}/{file}")]);
    }
    for file in others {
        command.args(["--exclude", &format!("crates/{package}/{file}")]);
    }
    command.args(tests.iter().map(|test| format!("--cargo-arg={test}")));
    if group.optimised {
        command.arg(format!("--cargo-arg=--config=profile.mutants.package.{package}.opt-level=2"));
    }
    if !names.is_empty() {
        command.args(["--", "--"]).args(names);
    }
    // It tells by its exit code that some were not noticed (2) or took too long (3); that is for the page to say.
    let status = command.current_dir(&arguments.root).status().map_err(|e| format!("cargo mutants: {e}"))?;
    if matches!(status.code(), Some(0 | 2 | 3)) {
        return unviable(folder).map(|_| ());
    }
    Err("cargo mutants failed; `cargo install cargo-mutants --locked` if there is no such command".into())
}

/// The files that cargo-mutants leaves: names of defects, a line each.
#[derive(Debug, Default)]
struct Lists {
    noticed: Vec<String>,
    missed: Vec<String>,
    unviable: Vec<String>,
}

impl Lists {
    /// The lists of a group.
    fn read(folder: &Path) -> Result<Lists, String> {
        let of_run = |name: &str| lines(&folder.join("mutants.out").join(name));
        let unviable = unviable(folder)?;
        // A test that does not end has noticed.
        let mut noticed = [of_run("caught.txt")?, of_run("previously_caught.txt")?, of_run("timeout.txt")?].concat();
        noticed.retain(|name| !unviable.contains(name));
        Ok(Lists { noticed, missed: of_run("missed.txt")?, unviable })
    }

    fn add(&mut self, more: Lists) {
        self.noticed.extend(more.noticed);
        self.missed.extend(more.missed);
        self.unviable.extend(more.unviable);
    }

    /// A row for each file, and one for all; files that were not tried here keep theirs.
    fn table(&self, before: Option<&Table>) -> Table {
        let mut files: BTreeMap<String, Figures> = BTreeMap::new();
        for row in before.into_iter().flat_map(|table| &table.rows) {
            let [Value::String(name), _, noticed, _, missed, unviable] = row.as_slice() else { continue };
            let [noticed, missed, unviable] = [noticed, missed, unviable].map(|cell| cell.as_u64().unwrap_or(0));
            if name != ALL && !self.names().any(|tried| file(tried) == name) {
                files.insert(name.clone(), Figures { noticed, missed, unviable });
            }
        }
        let mut count = |names: &[String], add: fn(&mut Figures)| {
            names.iter().for_each(|name| add(files.entry(file(name).to_owned()).or_default()));
        };
        count(&self.noticed, |f| f.noticed += 1);
        count(&self.missed, |f| f.missed += 1);
        count(&self.unviable, |f| f.unviable += 1);
        let sum = |part: fn(&Figures) -> u64| files.values().map(part).sum();
        let all = Figures { noticed: sum(|f| f.noticed), missed: sum(|f| f.missed), unviable: sum(|f| f.unviable) };
        let mut table = Table::new(&COLUMNS);
        for (name, Figures { noticed, missed, unviable }) in files.into_iter().chain([(ALL.to_owned(), all)]) {
            let viable = noticed + missed;
            let share = 100.0 * noticed as f64 / viable.max(1) as f64;
            let row = [viable.into(), noticed.into(), share.into(), missed.into(), unviable.into()];
            table.set(std::iter::once(Value::from(name)).chain(row).collect());
        }
        table
    }

    /// Everything that was tried.
    fn names(&self) -> impl Iterator<Item = &String> {
        [&self.noticed, &self.missed, &self.unviable].into_iter().flatten()
    }

    /// The unnoticed mutants, with explanations; those of files that were not tried here stay.
    fn explained(&self, before: &Table) -> Table {
        let mut table = Table::new(&["not noticed", "why"]);
        let of = |row: &[Value], name: &String| {
            row.first().and_then(Value::as_str).is_some_and(|text| text.starts_with(&format!("`{}`:", file(name))))
        };
        table.rows = before.rows.iter().filter(|row| !self.names().any(|name| of(row, name))).cloned().collect();
        for name in &self.missed {
            let why = explanation(before, name).unwrap_or(UNEXPLAINED);
            table.set(vec![unplaced(name).into(), why.into()]);
        }
        table
    }
}

const UNEXPLAINED: &str = "not explained";

/// The lines of a file, none where it is not there.
fn lines(path: &Path) -> Result<Vec<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

/// The mutants that do not compile, of all runs: from the second on cargo-mutants has it among what was noticed before,
/// so it is kept in a list next to its own.
fn unviable(folder: &Path) -> Result<Vec<String>, String> {
    let kept = folder.join("unviable.txt");
    let all = [lines(&kept)?, lines(&folder.join("mutants.out").join("unviable.txt"))?].concat();
    let all: BTreeSet<String> = all.into_iter().collect();
    if !all.is_empty() {
        let text: String = all.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(&kept, text).map_err(|e| format!("{}: {e}", kept.display()))?;
    }
    Ok(all.into_iter().collect())
}

/// The words for a defect, wherever its line is now.
fn explanation<'t>(table: &'t Table, name: &str) -> Option<&'t str> {
    let row = table.rows.iter().find(|row| row.first().is_some_and(|cell| *cell == unplaced(name)))?;
    row.get(1)?.as_str().filter(|why| *why != UNEXPLAINED)
}

/// `crates/twill-check/src/rings.rs:12:5: replace …` is of `rings.rs`.
fn file(name: &str) -> &str {
    let path = name.split(':').next().unwrap_or(name);
    path.split_once("/src/").map_or(path, |(_, file)| file)
}

/// Without line and column, as text in a table: nothing in it is a column or a tag.
fn unplaced(name: &str) -> String {
    let what = name.splitn(4, ':').nth(3).unwrap_or_default();
    let is_tag = |at: usize| what[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic());
    let shown = what.char_indices().map(|(at, c)| match c {
        '|' => "\\|".to_owned(),
        '<' if is_tag(at) => "\\<".to_owned(),
        other => other.to_string(),
    });
    format!("`{}`:{}", file(name), shown.collect::<String>())
}

const CHECKER: &str = "[cargo-mutants](https://mutants.rs) changes the checker in one place at a time: another operator, a condition that always or never holds, a function that does nothing. The tests of `twill-check` alone have to notice, \
     without the engine: what they know of its proofs is in files ([`tests/certificates`](../../crates/twill-check/tests/certificates/main.rs)). What does not compile does not count; what never ends is noticed.";

const CONSTRAINTS: &str = "The same with [`twill-exact/src/constraints`](../../crates/twill-exact/src/constraints/mod.rs), which tells the solver what a schedule must satisfy, and the tests of `twill-exact`, which put every schedule and every proof to the checker.";

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = [
        "crates/twill-check/src/rings.rs:12:5: replace broken -> bool with true",
        "crates/twill-check/src/certificate/atoms.rs:9:20: replace || with && in Atoms::new",
    ];

    #[test]
    fn defects_are_counted_by_file_and_explained_wherever_they_are() {
        let names = |which: &[usize]| which.iter().map(|k| NAMES[*k].to_owned()).collect::<Vec<_>>();
        let lists = Lists { noticed: names(&[0, 0, 0]), missed: names(&[1]), unviable: names(&[0]) };
        let table = lists.table(None);
        let figures = |row: &str| COLUMNS[1..].iter().map(|c| table.number(row, c)).collect::<Vec<_>>();
        assert_eq!(figures("rings.rs"), [3.0, 3.0, 100.0, 0.0, 1.0]);
        assert_eq!(figures("certificate/atoms.rs"), [1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(figures(ALL), [4.0, 3.0, 75.0, 1.0, 1.0]);
        assert_eq!(table.rows.last().and_then(|row| row[0].as_str()), Some(ALL));
        // Another file, tried elsewhere.
        let other = Lists { noticed: vec![NAMES[0].replace("rings", "lives")], ..Lists::default() };
        let both = other.table(Some(&table));
        assert_eq!([both.number("lives.rs", "noticed"), both.number("rings.rs", "noticed")], [1.0, 3.0]);
        assert_eq!([both.number(ALL, "defects"), both.number(ALL, "not noticed")], [5.0, 1.0]);
        let mut words = lists.explained(&Table::default());
        assert_eq!(explanation(&words, NAMES[1]), None);
        words.rows[0][1] = "the same".into();
        let moved = NAMES[1].replace(":9:20:", ":19:2:");
        assert_eq!(explanation(&words, &moved), Some("the same"));
        assert_eq!(words.rows[0][0], "`certificate/atoms.rs`: replace \\|\\| with && in Atoms::new");
        let tags = unplaced("crates/twill-check/src/rings.rs:1:5: replace f<'a> -> Vec<usize> with vec![a < b]");
        assert_eq!(tags, "`rings.rs`: replace f<'a> -> Vec\\<usize> with vec![a < b]");
    }

    #[test]
    fn what_did_not_compile_in_an_earlier_run_is_not_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("mutants.out");
        std::fs::create_dir(&run).unwrap();
        let write = |file: &str, text: &str| std::fs::write(run.join(file), text).unwrap();
        write("caught.txt", "a\nb\n");
        write("unviable.txt", "c\n");
        write("timeout.txt", "d\n");
        let first = Lists::read(folder.path()).unwrap();
        assert_eq!((first.noticed.join(" "), first.unviable.join(" ")), ("a b d".into(), "c".into()));
        // The next run is about what is left.
        write("previously_caught.txt", "a\nb\nc\n");
        write("caught.txt", "");
        write("unviable.txt", "e\n");
        write("missed.txt", "f\n");
        let next = Lists::read(folder.path()).unwrap();
        assert_eq!((next.noticed.join(" "), next.unviable.join(" ")), ("a b d".into(), "c e".into()));
        assert_eq!(next.missed, ["f"]);
    }
}
