//! The checker on schedules of the engine, whole and changed.

use crate::Arguments;
use crate::campaign::numbered;
use crate::section::{Section, Table};
use std::collections::BTreeMap;
use twill_fuzz::replay::check;
use twill_fuzz::{input, target};

const NAME: &str = "schedules";
const WHOLE: &str = "schedules of the engine, accepted";
const BROKEN: &str = "changed, broken: rejected, for what they break";
const HOLDING: &str = "changed, still schedules: accepted";
const NUMBERS: &str = "problems tried";

#[derive(Default)]
struct Counts {
    whole: u64,
    broken: u64,
    holding: u64,
    /// Broken schedules by constraint.
    constraints: BTreeMap<String, u64>,
}

/// Changes schedules until this many were broken.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut section = Section::read(&arguments.root, NAME)?;
    if arguments.fresh {
        section.tables.clear();
    }
    let before = section.tables.first().cloned().unwrap_or_default();
    let count = |row: &str| before.number(row, "schedules") as u64;
    let mut counts =
        Counts { whole: count(WHOLE), broken: count(BROKEN), holding: count(HOLDING), ..Counts::default() };
    for row in section.tables.get(1).map_or(&[][..], |table| &table.rows) {
        if let [name, number] = row.as_slice() {
            counts.constraints.insert(name.as_str().unwrap_or_default().into(), number.as_u64().unwrap_or(0));
        }
    }
    if counts.broken >= arguments.schedules {
        return Ok(());
    }
    let bytes = target("replay").map_or(0, |target| target.bytes);
    numbered(
        &mut counts,
        count(NUMBERS),
        |counts, number| {
            let replayed = check(&input(number, bytes));
            counts.whole += replayed.whole;
            counts.holding += replayed.holding;
            counts.broken += replayed.broken.len() as u64;
            for constraint in replayed.broken.into_iter().flatten() {
                *counts.constraints.entry(format!("{constraint:?}")).or_insert(0) += 1;
            }
            counts.broken >= arguments.schedules
        },
        |counts, next, _| {
            let mut all = Table::new(&["what", "schedules"]);
            for (row, number) in
                [(WHOLE, counts.whole), (BROKEN, counts.broken), (HOLDING, counts.holding), (NUMBERS, next)]
            {
                all.set(vec![row.into(), number.into()]);
            }
            all.set(vec!["disagreements".into(), 0.into()]);
            let mut by_constraint = Table::new(&["broken constraint", "schedules"]);
            for (constraint, number) in &counts.constraints {
                by_constraint.set(vec![constraint.clone().into(), (*number).into()]);
            }
            written(arguments, &section, vec![all, by_constraint])
        },
    )
}

fn written(arguments: &Arguments, before: &Section, tables: Vec<Table>) -> Result<(), String> {
    let section = Section {
        title: "The checker and broken schedules".into(),
        order: 11,
        command: "cargo xtask trust --only schedules".into(),
        text: vec![TEXT.into()],
        tables,
        ..before.clone()
    };
    section.write(&arguments.root, NAME)
}

const TEXT: &str = "Schedules of the engine for random small problems are changed, one decision or one statement at a time: cycles, groups, \
     intervals, registers, lengths, channels, rings. Whether the result breaks the model, and by which constraints, is decided by a \
     [word-by-word implementation of model.md](../../crates/twill-reference/src/literal.rs). It counts every slot and shares \
     nothing with the checker; both have to name the same constraints. One schedule may break several.";
