//! Defects in the checker, and in the engine's constraints, one at a time: tests have to notice.
//!
//! cargo-mutants lists them ([`listed`]), one build has them all ([`schemata`], [`programs`]), and tests run with each ([`tried`]).
//! What an earlier run noticed is not tried again, as long as its line has not moved.

mod listed;
mod outcomes;
mod programs;
mod schemata;
mod tried;

use crate::Arguments;
use crate::section::{Section, Table};
use outcomes::Outcomes;
use programs::Built;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tried::Outcome;

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
    /// The package with the defects, and others whose tests see them.
    packages: &'static [&'static str],
    groups: &'static [Group],
}

/// Files, and the tests that have to notice what is wrong in them: others would only take time.
struct Group {
    name: &'static str,
    files: &'static [&'static str],
    /// Programs of tests; `lib` has the unit tests.
    tests: &'static [&'static str],
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "mutants",
        title: "Defects put into the checker",
        order: 14,
        text: CHECKER,
        packages: &["twill-check"],
        groups: &[
            Group {
                name: "certificate",
                files: &["src/certificate.rs", "src/certificate/*.rs"],
                tests: &["lib", "certificates"],
            },
            Group { name: "dataflow", files: &["src/dataflow.rs"], tests: &["lib", "dataflow"] },
            Group { name: "protocol", files: &["src/protocol/*.rs"], tests: &["lib", "protocol"] },
            Group { name: "replay", files: &["src/*.rs"], tests: &["lib", "replay", "multipliers"] },
        ],
    },
    Subject {
        name: "mutants-constraints",
        title: "Defects put into the engine's constraints",
        order: 14,
        text: CONSTRAINTS,
        packages: &["twill-exact", "twill-fuzz"],
        groups: &[Group {
            name: "constraints",
            files: &["src/constraints/*.rs"],
            tests: &["lib", "search", "modulo", "alternatives", "explain", "engine"],
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
    let mut before = Section::read(&arguments.root, subject.name)?;
    let groups: Vec<&Group> = subject
        .groups
        .iter()
        .filter(|group| arguments.targets.is_empty() || arguments.targets.iter().any(|name| name == group.name))
        .collect();
    if groups.is_empty() {
        return Ok(());
    }
    let root = std::path::absolute(&arguments.root).map_err(|e| format!("{}: {e}", arguments.root.display()))?;
    let folder = root.join("target").join("mutants").join(subject.name);
    let outcomes = Outcomes::open(&folder, arguments.fresh)?;
    let built = built(&root, &folder, subject, arguments.built)?;
    let package = folder.join("tree").join("crates").join(subject.packages[0]);
    // What earlier runs wrote of files that are no more goes.
    let every = || built.variants.iter().flat_map(|variant| &variant.mutants).map(|(_, name)| file(name));
    let is_of = |row: &[Value], name: &str| {
        row.first().and_then(Value::as_str).is_some_and(|cell| cell == name || cell.starts_with(&format!("`{name}`:")))
    };
    for table in &mut before.tables {
        table.rows.retain(|row| every().any(|name| is_of(row, name)));
    }
    let explained = before.tables.get(1).cloned().unwrap_or_default();
    let (mut lists, mut failed) = (Lists::default(), Ok(()));
    for group in &groups {
        for variant in &built.variants {
            let wanted = |name: &str| subject.group(name) == Some(group.name) && !outcomes.noticed(name);
            let note = |name: &str, outcome| outcomes.add(name, outcome);
            failed = failed.and_then(|()| tried::each(&root, &package, variant, group.tests, wanted, note));
        }
    }
    // Results until the stop are kept.
    for (_, name) in built.variants.iter().flat_map(|variant| &variant.mutants) {
        match outcomes.of(name) {
            Some(Outcome::Noticed) => lists.noticed.push(name.clone()),
            Some(Outcome::Missed) => lists.missed.push(name.clone()),
            None => {}
        }
    }
    // Files of other groups keep their rows, unless an earlier run tried them.
    let chosen = |name: &str| groups.iter().any(|group| subject.group(name) == Some(group.name));
    let tried = |name: &str| lists.names().any(|other| file(other) == file(name));
    lists.unviable = built.unviable.iter().filter(|name| chosen(name) || tried(name)).cloned().collect();
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

impl Subject {
    /// The group of a defect's file: the first that has it.
    fn group(&self, mutant: &str) -> Option<&'static str> {
        let of = |pattern: &str| match pattern.strip_prefix("src/").unwrap_or(pattern).rsplit_once('/') {
            Some((folder, "*.rs")) => file(mutant).rsplit_once('/').is_some_and(|(within, _)| within == folder),
            None if pattern.ends_with("*.rs") => !file(mutant).contains('/'),
            _ => pattern.ends_with(file(mutant)),
        };
        Some(self.groups.iter().find(|group| group.files.iter().any(|pattern| of(pattern)))?.name)
    }
}

/// The programs with the defects of a subject: of this run, or of an earlier one, where there is no compiler.
fn built(root: &Path, folder: &Path, subject: &Subject, earlier: bool) -> Result<Built, String> {
    let plan = folder.join("built.json");
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", plan.display());
    if earlier {
        let text = std::fs::read_to_string(&plan).map_err(|e| failed(&e))?;
        return serde_json::from_str(&text).map_err(|e| failed(&e));
    }
    let files: Vec<&str> = subject.groups.iter().flat_map(|group| group.files).copied().collect();
    let mutants = listed::list(root, subject.packages[0], &files)?;
    let built = programs::build(root, folder, subject.packages, &mutants)?;
    std::fs::write(&plan, serde_json::to_string_pretty(&built).map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
    Ok(built)
}

/// Names of defects, by what became of them.
#[derive(Debug, Default)]
struct Lists {
    noticed: Vec<String>,
    missed: Vec<String>,
    unviable: Vec<String>,
}

impl Lists {
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

const CONSTRAINTS: &str = "The same with [`twill-exact/src/constraints`](../../crates/twill-exact/src/constraints/mod.rs), which tells the solver what a schedule must satisfy, and the tests of `twill-exact`, which put every schedule and every proof to the checker, with those of `twill-fuzz` that compare the engine with brute force. Where nothing is explained, it is not known yet whether the defect changes anything: many clauses only make a search shorter.";

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
    fn defects_are_of_the_first_group_that_has_their_file() {
        let [checker, constraints] = &SUBJECTS;
        let of = |file: &str| checker.group(&format!("crates/twill-check/src/{file}:1:1: replace a with b"));
        let files = ["certificate.rs", "certificate/atoms.rs", "dataflow.rs", "protocol/uses.rs", "rings.rs", "lib.rs"];
        let groups = ["certificate", "certificate", "dataflow", "protocol", "replay", "replay"];
        assert_eq!(files.map(of), groups.map(Some));
        assert_eq!(of("other/rings.rs"), None);
        assert_eq!(constraints.group("crates/twill-exact/src/constraints/mod.rs:1:1: delete !"), Some("constraints"));
    }
}
