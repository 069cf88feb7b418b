//! The sections of `docs/reports/trust.md`, each from a JSON file of `docs/reports/trust/`:
//!
//! ```json
//! {
//!   "title": "Fuzzing", "order": 20, "command": "cargo xtask trust --only fuzzing",
//!   "date": "2026-11-22", "machine": "2 cores of …",
//!   "text": ["A paragraph, in Markdown."],
//!   "tables": [{ "columns": ["target", "executions"], "rows": [["ttir", 1000000]] }],
//!   "findings": [{ "found": "What was wrong.", "mended": "How, and the test that would see it again." }]
//! }
//! ```
//!
//! Every such file has a section, in the place that `order` gives it.

use crate::here;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The results of one way to find defects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Sections come by ascending order.
    pub order: u32,
    /// The command that makes the figures anew.
    pub command: String,
    /// Day of the last figures, UTC.
    pub date: String,
    /// Where they were taken.
    pub machine: String,
    /// Paragraphs.
    #[serde(default)]
    pub text: Vec<String>,
    /// Figures.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// The findings, and how each was fixed.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Figures, a row for each thing that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Headings.
    pub columns: Vec<String>,
    /// Texts and numbers.
    pub rows: Vec<Vec<Value>>,
}

/// A defect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The defect.
    pub found: String,
    /// The fix.
    pub mended: String,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|c| (*c).to_owned()).collect(), rows: Vec::new() }
    }

    /// The number in the row that begins so, in this column; 0 where there is none.
    pub fn number(&self, row: &str, column: &str) -> f64 {
        let column = self.columns.iter().position(|c| c == column);
        let row = self.rows.iter().find(|cells| cells.first().is_some_and(|cell| cell == row));
        row.zip(column).and_then(|(row, column)| row.get(column)?.as_f64()).unwrap_or(0.0)
    }

    /// Puts a row in the place of the one that begins alike, or at the end.
    pub fn set(&mut self, row: Vec<Value>) {
        match self.rows.iter_mut().find(|cells| cells.first() == row.first()) {
            Some(before) => *before = row,
            None => self.rows.push(row),
        }
    }
}

impl Section {
    /// The section as it was left, or an empty one.
    pub fn read(root: &Path, name: &str) -> Result<Section, String> {
        let path = folder(root).join(format!("{name}.json"));
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Section::default()),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    /// Writes it, as of now and here.
    pub fn write(mut self, root: &Path, name: &str) -> Result<(), String> {
        (self.date, self.machine) = (here::date(), here::machine());
        let text = serde_json::to_string_pretty(&self).map_err(|e| e.to_string())?;
        let path = folder(root).join(format!("{name}.json"));
        std::fs::create_dir_all(folder(root)).map_err(|e| format!("{}: {e}", path.display()))?;
        std::fs::write(&path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))
    }

    fn markdown(&self) -> String {
        let mut text = format!("\n## {}\n", self.title);
        for paragraph in &self.text {
            text += &format!("\n{}\n", wrapped(paragraph));
        }
        for table in &self.tables {
            let rule: Vec<&str> =
                table.columns.iter().enumerate().map(|(i, _)| if i == 0 { "---" } else { "---:" }).collect();
            text += &format!("\n| {} |\n| {} |\n", table.columns.join(" | "), rule.join(" | "));
            for row in &table.rows {
                let cells: Vec<String> = row.iter().map(cell).collect();
                text += &format!("| {} |\n", cells.join(" | "));
            }
        }
        match self.findings.as_slice() {
            [] => text += "\nNothing was found.\n",
            findings => {
                text += "\n| found | mended |\n| --- | --- |\n";
                for finding in findings {
                    text += &format!("| {} | {} |\n", finding.found, finding.mended);
                }
            }
        }
        text + &format!("\n{}\n", wrapped(&format!("`{}`, {}, {}.", self.command, self.date, self.machine)))
    }
}

/// Numbers with their thousands apart, so that they can be read.
fn cell(value: &Value) -> String {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => thousands(whole),
            (None, Some(part)) => format!("{part:.1}"),
            (None, None) => number.to_string(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A paragraph in lines of at most 100 columns, unless a word or `code` is longer. `Code` stays on one line.
fn wrapped(paragraph: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    let mut unit = String::new();
    for word in paragraph.split_whitespace() {
        if !unit.is_empty() {
            unit.push(' ');
        }
        unit += word;
        if !unit.matches('`').count().is_multiple_of(2) {
            continue;
        }
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + unit.chars().count() <= WIDTH => {
                line.push(' ');
                *line += &unit;
                unit.clear();
            }
            _ => lines.push(std::mem::take(&mut unit)),
        }
    }
    lines.extend((!unit.is_empty()).then_some(unit));
    lines.join("\n")
}

fn folder(root: &Path) -> PathBuf {
    root.join("docs").join("reports").join("trust")
}

const HEAD: &str = "# How far it can be trusted

This page says what is tried to find Twill wrong, with what result. It is for readers who ask
whether an answer can be believed. `cargo xtask trust` tries all of it again and writes this page; a
part that it does not run keeps its last figures, with their day. Every defect that was found is
listed with what became of it; none is open.
";

/// Writes `docs/reports/trust.md` from the sections there are.
pub fn write_page(root: &Path) -> Result<(), String> {
    let page = root.join("docs").join("reports").join("trust.md");
    std::fs::write(&page, text(root)?).map_err(|e| format!("{}: {e}", page.display()))
}

fn text(root: &Path) -> Result<String, String> {
    let folder = folder(root);
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut sections = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "json")) {
            sections.push((name.to_owned(), Section::read(root, name)?));
        }
    }
    sections.sort_by_key(|(name, section)| (section.order, name.clone()));
    Ok(HEAD.to_owned() + &sections.iter().map(|(_, section)| section.markdown()).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_sections_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/reports/trust.md")).unwrap();
        assert_eq!(text(&root).unwrap(), page, "run `cargo xtask trust --only page`");
    }

    #[test]
    fn paragraphs_are_wrapped_outside_of_code() {
        let words = "word ".repeat(19);
        assert_eq!(wrapped(&format!("{words}end")), format!("{words}end"));
        assert_eq!(wrapped(&format!("{words}`a b` end")), format!("{words}`a b`\nend"));
        assert_eq!(wrapped(&format!("{words}`a b c d`")), format!("{}\n`a b c d`", words.trim_end()));
    }

    #[test]
    fn figures_are_kept_by_the_name_of_their_row() {
        let mut table = Table::new(&["what", "count"]);
        table.set(vec!["a".into(), 1.into()]);
        table.set(vec!["b".into(), 12_345_678.into()]);
        table.set(vec!["a".into(), 2.5.into()]);
        assert_eq!((table.number("a", "count"), table.number("c", "count"), table.rows.len()), (2.5, 0.0, 2));
        let section = Section { tables: vec![table], ..Section::default() };
        assert!(section.markdown().contains("\n| a | 2.5 |\n| b | 12 345 678 |\n"), "{}", section.markdown());
    }
}
