//! Counterexamples as tables.

use super::fault::FaultKind;
use std::fmt;

/// One step of a [`Counterexample`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its column; asynchronous units have the last one.
    pub column: usize,
    /// The operation.
    pub text: String,
    /// It is among the last, or among the last that touch the slot or barrier at fault.
    pub matters: bool,
}

/// A way from the start to something that must not happen. [`Display`](fmt::Display) makes a table, one row a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The fault.
    pub kind: FaultKind,
    /// The same in a sentence.
    pub fault: String,
    /// Trip counts.
    pub case: String,
    /// The names of the warp groups, and `asynchronous`.
    pub columns: Vec<String>,
    /// The steps; the last one leads to the fault.
    pub steps: Vec<Moment>,
    /// No fault takes fewer steps with these trip counts, satisfied waits for MMAs and stores and arrivals not counted:
    /// all shorter ways were tried. Otherwise, no step of this one can be left out.
    pub shortest: bool,
}

/// This many last steps always matter.
pub(super) const LAST: usize = 6;

/// Columns are at most so wide; longer texts take several lines.
const WIDTH: usize = 28;

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.fault)?;
        let how = if self.shortest { "shortest way" } else { "a way, not the shortest" };
        writeln!(
            f,
            "with {}; {how}, {} step{}:",
            self.case,
            self.steps.len(),
            if self.steps.len() == 1 { "" } else { "s" }
        )?;
        let shown = |step: &&Moment| step.matters || self.steps.len() <= 4 * LAST;
        let width = |column: usize| {
            let texts = self.steps.iter().filter(shown).filter(|s| s.column == column).map(|s| s.text.len());
            texts.max().unwrap_or(0).min(WIDTH).max(self.columns[column].len())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let row = |f: &mut fmt::Formatter<'_>, number: &str, column: usize, text: &str| {
            let indent: usize = widths[..column].iter().map(|w| w + 2).sum();
            writeln!(f, "{number:>4}  {:indent$}{text}", "")
        };
        let names = self.columns.iter().zip(&widths).map(|(name, &width)| format!("  {name:width$}"));
        writeln!(f, "step{}", names.collect::<String>().trim_end())?;
        let mut hidden = 0;
        for (at, step) in self.steps.iter().enumerate() {
            if !shown(&step) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                row(f, "...", 0, &format!("({hidden} other{})", if hidden == 1 { "" } else { "s" }))?;
                hidden = 0;
            }
            for (line, text) in wrapped(&step.text).iter().enumerate() {
                let number = if line == 0 { (at + 1).to_string() } else { String::new() };
                row(f, &number, step.column, text)?;
            }
        }
        Ok(())
    }
}

/// Lines of at most [`WIDTH`] characters, if words allow.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
