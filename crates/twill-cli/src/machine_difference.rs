//! `twill machine diff`: two machines compared.

use serde_json::{Value, json};
use twill_machine::{Difference, Machine, Row, differences};
use twill_report::{Align, Table};

/// What stands for a number that there is not.
const NONE: &str = "none";

/// A line for each value that differs, by its name; how many differ in nothing but their provenance.
pub(crate) fn text(old: &Machine, new: &Machine, columns: usize) -> String {
    let (mut found, same): (Vec<_>, Vec<_>) = differences(old, new).into_iter().partition(Difference::is_of_value);
    found.sort_by(|a, b| a.key().cmp(b.key()));
    let (from, to) = (old.name(), new.name());
    let mut text = match found.len() {
        0 => format!("{from} and {to} agree in every value\n"),
        1 => format!("{from} -> {to}: 1 value differs\n"),
        n => format!("{from} -> {to}: {n} values differ\n"),
    };
    let mut numbers = Table::new().column("number", Align::Left, 0).column(from, Align::Right, 0);
    numbers = numbers.column(to, Align::Right, 0).column("change", Align::Right, 1).column("unit", Align::Left, 2);
    numbers = numbers.column("provenance", Align::Left, 3);
    let mut words = Table::new().column("words", Align::Left, 0).column(from, Align::Left, 0);
    words = words.column(to, Align::Left, 0);
    let (mut any_number, mut any_words) = (false, false);
    for one in &found {
        match one {
            Difference::Number { old, new } => {
                any_number = true;
                let number = |row: &Option<Row>| row.as_ref().map_or_else(|| NONE.to_owned(), Row::number);
                let change = one.percent().map_or_else(String::new, |percent| format!("{percent:+.1} %"));
                let unit = new.as_ref().or(old.as_ref()).map_or("", |row| row.unit);
                let provenance = provenance(old.as_ref(), new.as_ref());
                numbers.row(vec![one.key().to_owned(), number(old), number(new), change, unit.to_owned(), provenance]);
            }
            Difference::Words { key, old, new } => {
                any_words = true;
                let word = |word: &Option<String>| word.as_deref().unwrap_or(NONE).replace('"', "");
                words.row(vec![key.clone(), word(old), word(new)]);
            }
        }
    }
    for (table, is_filled) in [(numbers, any_number), (words, any_words)] {
        if is_filled {
            text = text + "\n" + &table.text(columns);
        }
    }
    let known = match same.len() {
        0 => String::new(),
        1 => "1 number has the same value and another provenance.".into(),
        n => format!("{n} numbers have the same value and another provenance."),
    };
    if !(known.is_empty() && found.is_empty()) {
        let sources = "--format json has their sources.".to_owned();
        let known = if known.is_empty() { sources } else { format!("{known} {sources}") };
        text = text + "\n" + &known + "\n";
    }
    twill_report::folded(&text, columns)
}

/// How both numbers are known, where that is not the same.
fn provenance(old: Option<&Row>, new: Option<&Row>) -> String {
    match (old.map(|row| row.provenance), new.map(|row| row.provenance)) {
        (Some(old), Some(new)) if old == new => String::new(),
        (Some(old), Some(new)) => format!("{old} -> {new}"),
        (one, other) => one.or(other).map_or_else(String::new, |known| known.to_string()),
    }
}

/// An array with an object for each difference.
pub(crate) fn json(old: &Machine, new: &Machine) -> String {
    let row = |row: &Option<Row>| {
        row.as_ref().map(|row| json!({"value": row.value, "provenance": row.provenance.key(), "source": row.source}))
    };
    let all: Vec<Value> = differences(old, new)
        .iter()
        .map(|one| match one {
            Difference::Number { old, new } => {
                let unit = new.as_ref().or(old.as_ref()).map(|row| row.unit);
                json!({"key": one.key(), "unit": unit, "old": row(old), "new": row(new), "percent": one.percent()})
            }
            Difference::Words { key, old, new } => json!({"key": key, "old": old, "new": new}),
        })
        .collect();
    format!("{:#}\n", Value::Array(all))
}
