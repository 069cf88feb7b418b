//! The exact engine against brute force, on problems that are numbered from 0.

use crate::Arguments;
use crate::campaign::numbered;
use crate::section::{Section, Table};
use std::collections::BTreeMap;
use twill_fuzz::optimum::{Compared, check};
use twill_fuzz::{input, target};

const NAME: &str = "instances";

/// The comparison, as the page says it.
const KINDS: [(Compared, &str); 5] = [
    (Compared::Objectives, "least interval and all six objectives"),
    (Compared::Interval, "least interval (too much to try for the objectives)"),
    (Compared::Impossible, "no schedule at any interval"),
    (Compared::Infeasible, "no schedule up to 10 cycles"),
    (Compared::TooMuch, "not compared: too much to try"),
];

/// Compares until this many were.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut section = Section::read(&arguments.root, NAME)?;
    if arguments.fresh {
        section.tables.clear();
    }
    let before = section.tables.first().cloned().unwrap_or_default();
    let count = |row: &str| before.number(row, "problems") as u64;
    let mut counts: BTreeMap<Compared, u64> = KINDS.iter().map(|(kind, row)| (*kind, count(row))).collect();
    let compared = |counts: &BTreeMap<Compared, u64>| -> u64 {
        counts.iter().filter(|(kind, _)| !matches!(kind, Compared::TooMuch | Compared::Nothing)).map(|(_, n)| n).sum()
    };
    if compared(&counts) >= arguments.instances {
        return Ok(());
    }
    let bytes = target(NAME_OF_TARGET).map_or(0, |target| target.bytes);
    let mut seconds = before.number("seconds", "problems");
    numbered(
        &mut counts,
        count("numbers tried"),
        |counts, number| {
            *counts.entry(check(&input(number, bytes))).or_insert(0) += 1;
            compared(counts) >= arguments.instances
        },
        |counts, next, passed| {
            seconds += passed;
            eprintln!("trust: {} problems compared", compared(counts));
            let mut table = Table::new(&["what both agree on", "problems"]);
            for (kind, row) in KINDS {
                table.set(vec![row.into(), counts.get(&kind).copied().unwrap_or(0).into()]);
            }
            table.set(vec!["all that were compared".into(), compared(counts).into()]);
            table.set(vec!["disagreements".into(), 0.into()]);
            table.set(vec!["numbers tried".into(), next.into()]);
            table.set(vec!["seconds".into(), (seconds.round() as u64).into()]);
            written(arguments, &section, table)
        },
    )
}

const NAME_OF_TARGET: &str = "optimum";

fn written(arguments: &Arguments, before: &Section, table: Table) -> Result<(), String> {
    let section = Section {
        title: "The exact engine and brute force".into(),
        order: 10,
        command: "cargo xtask trust --only instances".into(),
        text: vec![TEXT.into()],
        tables: vec![table],
        ..before.clone()
    };
    section.write(&arguments.root, NAME)
}

const TEXT: &str = "Random problems of 2 to 5 operations, with everything that a problem may have: loads and rings, handoffs, an issue group, \
     registers and memories that are short, reservations that begin late, sub-tiles, and the model variants but the paper's liveness \
     and stages. [Brute force](../../crates/twill-fuzz/src/brute.rs) tries every group, slot and stage of every operation at every interval from 1 on; its constraints were written down \
     for it alone. The engine has to give the same least interval, the same value of every objective, and a schedule that the checker accepts. \
     A number that makes no problem (a graph that depends on itself) is passed over. A disagreement would stop the command.";
