//! `twill machine diff`: two machines beside each other.

use serde_json::{Value, json};
use twill_machine::{Difference, Machine, Row, differences};

/// What stands for a number that there is not.
const NONE: &str = "none";

/// A line for each difference, and where the new numbers come from.
pub(crate) fn text(old: &Machine, new: &Machine) -> String {
    let found = differences(old, new);
    if found.is_empty() {
        return format!("{} and {} agree in every number\n", old.name(), new.name());
    }
    let rows: Vec<[String; 6]> = found.iter().map(cells).collect();
    let head = ["number", "old", "new", "change", "unit", "provenance"].map(str::to_owned);
    let all = || std::iter::once(&head).chain(&rows);
    let widths: [usize; 6] =
        std::array::from_fn(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = format!("{} -> {}, different: {}\n\n", old.name(), new.name(), found.len());
    for row in all() {
        let [key, before, after, change, unit, provenance] = row;
        let [k, b, a, c, u, _] = widths;
        let line = format!("{key:k$}  {before:>b$}  {after:>a$}  {change:>c$}  {unit:u$}  {provenance}");
        text += line.trim_end();
        text.push('\n');
    }
    let sources = found.iter().filter_map(|one| match one {
        Difference::Number { new: Some(row), .. } => Some(format!("  {}: {}\n", row.key, row.source)),
        Difference::Number { .. } | Difference::Words { .. } => None,
    });
    let sources: String = sources.collect();
    if !sources.is_empty() {
        text += &format!("\nSources of {}\n{sources}", new.name());
    }
    text
}

/// Key, old, new, percent, unit and provenance of a difference.
fn cells(one: &Difference) -> [String; 6] {
    let none = || NONE.to_owned();
    match one {
        Difference::Number { old, new } => {
            let number = |row: &Option<Row>| row.as_ref().map_or_else(none, Row::number);
            let provenance = |row: &Option<Row>| row.as_ref().map(|row| row.provenance.to_string());
            let (from, to) = (provenance(old), provenance(new));
            let both = if from == to {
                to.unwrap_or_default()
            } else {
                [from, to].map(|p| p.unwrap_or_else(none)).join(" -> ")
            };
            let unit = new.as_ref().or(old.as_ref()).map_or("", |row| row.unit);
            let change = one.percent().map(|percent| format!("{percent:+.1} %")).unwrap_or_default();
            [one.key().to_owned(), number(old), number(new), change, unit.to_owned(), both]
        }
        Difference::Words { key, old, new } => {
            let word = |word: &Option<String>| word.clone().unwrap_or_else(none);
            [key.clone(), word(old), word(new), String::new(), String::new(), String::new()]
        }
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
