//! Tables that shrink to the page: texts are wrapped, then the least important columns go, which is said below.

use crate::ink::{Ink, Line, Page, columns, wrap};

/// Side to which a column's entries are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug)]
struct Column {
    title: String,
    align: Align,
    /// Columns of higher rank are dropped first; rank 0 never is.
    rank: u32,
}

/// A table being filled.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

const GAP: usize = 2;
const LEAST_TEXT: usize = 6;

impl Table {
    /// A table without columns.
    pub fn new() -> Table {
        Table::default()
    }

    /// The table with one more column. Where the page is too narrow, columns of the highest rank are left out first.
    #[must_use]
    pub fn column(mut self, title: impl Into<String>, align: Align, rank: u32) -> Table {
        self.columns.push(Column { title: title.into(), align, rank });
        self
    }

    /// Adds a row; missing entries are empty.
    pub fn row(&mut self, entries: Vec<String>) {
        self.rows.push(entries);
    }

    /// The table as plain text on lines of at most this many columns.
    pub fn text(&self, width: usize) -> String {
        let mut page = Page::new(width, false);
        self.write(&mut page);
        page.finish()
    }

    /// Writes the table.
    pub(crate) fn write(&self, page: &mut Page) {
        let natural = self.widths(columns);
        let longest_word = |text: &str| text.split_whitespace().map(columns).max().unwrap_or(0);
        let words = self.widths(longest_word);
        // A column in which nothing stands says nothing.
        let filled = |c: &usize| self.rows.iter().any(|row| !entry(row, *c).is_empty());
        let all: Vec<usize> = (0..self.columns.len()).filter(filled).collect();
        let mut shown = all.clone();
        let widths = loop {
            if let Some(widths) = self.fit(page.width(), &shown, &natural, &words) {
                break widths;
            }
            let worst = shown.iter().copied().max_by_key(|&c| (self.columns[c].rank, c));
            match worst.filter(|&c| self.columns[c].rank > 0) {
                Some(worst) => shown.retain(|&c| c != worst),
                None => {
                    // Words are broken, names in the first column last, and the page cuts what is left.
                    let broken: Vec<usize> = words.iter().map(|&word| word.min(LEAST_TEXT)).collect();
                    let but_first: Vec<usize> = words.iter().take(1).chain(broken.iter().skip(1)).copied().collect();
                    let fit = |least: &[usize]| self.fit(page.width(), &shown, &natural, least);
                    let cut = || shown.iter().map(|&c| natural[c].min(page.width() / 2)).collect();
                    break fit(&but_first).or_else(|| fit(&broken)).unwrap_or_else(cut);
                }
            }
        };
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        self.line(page, &shown, &widths, &titles, Ink::Dim);
        for entries in &self.rows {
            self.line(page, &shown, &widths, entries, Ink::Plain);
        }
        let dropped = all.iter().filter(|c| !shown.contains(c)).map(|&c| self.columns[c].title.as_str());
        let dropped: Vec<&str> = dropped.filter(|title| !title.is_empty()).collect();
        if !dropped.is_empty() {
            let least: usize = all.iter().map(|&c| GAP + if self.is_text(c) { words[c] } else { natural[c] }).sum();
            page.paragraph(GAP, &format!("Not shown: {} (--width {least}).", dropped.join(", ")), Ink::Dim);
        }
    }

    /// The width of each column: the largest of its title and entries.
    fn widths(&self, of: impl Fn(&str) -> usize) -> Vec<usize> {
        let entries = |c: usize| self.rows.iter().map(|row| of(entry(row, c))).max().unwrap_or(0);
        (0..self.columns.len()).map(|c| entries(c).max(of(&self.columns[c].title))).collect()
    }

    /// Returns whether a column may be wrapped: bars have no title, and numbers are to the right.
    fn is_text(&self, column: usize) -> bool {
        let Column { title, align, .. } = &self.columns[column];
        *align == Align::Left && !title.is_empty()
    }

    /// Widths with which the columns fit, or none: texts give way, the widest first, as far as to `least`.
    fn fit(&self, width: usize, shown: &[usize], natural: &[usize], least: &[usize]) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> = shown.iter().map(|&c| natural[c]).collect();
        loop {
            let total: usize = GAP * shown.len().max(1) + widths.iter().sum::<usize>();
            if total <= width {
                return Some(widths);
            }
            let may_shrink = |k: &usize| self.is_text(shown[*k]) && widths[*k] > least[shown[*k]].max(1);
            let widest = (0..shown.len()).filter(may_shrink).max_by_key(|&k| widths[k])?;
            // A little at a time, so that two long texts share the loss.
            let room = widths[widest] - least[shown[widest]].max(1);
            widths[widest] -= (total - width).min(room).min(1 + widths[widest] / 8);
        }
    }

    /// Writes a row, on as many lines as its longest text takes.
    fn line(&self, page: &mut Page, shown: &[usize], widths: &[usize], entries: &[String], ink: Ink) {
        let cells: Vec<Vec<String>> =
            shown.iter().zip(widths).map(|(&c, &width)| wrap(entry(entries, c), width)).collect();
        for k in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = Line::of(&" ".repeat(GAP), ink);
            for ((&c, &width), cell) in shown.iter().zip(widths).zip(&cells) {
                let start = line.columns();
                let text = cell.get(k).map_or("", String::as_str);
                if self.columns[c].align == Align::Right {
                    line.pad(start + width - columns(text).min(width));
                }
                line.push(text, ink);
                line.pad(start + width + GAP);
            }
            page.line(&line);
        }
    }
}

fn entry(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .column("name", Align::Left, 0)
            .column("value", Align::Right, 0)
            .column("unit", Align::Left, 1)
            .column("source", Align::Left, 0);
        table.row(["latency.handoff", "61", "cycles", "measured on a board that nobody has"].map(String::from).into());
        table
    }

    #[test]
    fn texts_are_wrapped_before_columns_are_left_out() {
        let whole = "  name             value  unit    source\n  latency.handoff     61  cycles  measured on a board that nobody has\n";
        assert_eq!(table().text(80), whole);
        let narrow = "  name             value  unit    source\n  latency.handoff     61  cycles  measured on\n                                  a board that\n                                  nobody has\n";
        assert_eq!(table().text(46), narrow);
        let text = table().text(35);
        assert!(text.contains("nobody") && !text.contains("cycles"), "{text}");
        assert!(text.ends_with("Not shown: unit (--width 42).\n"), "{text}");
        assert!(table().text(42).contains("cycles"));
    }

    #[test]
    fn what_stays_is_never_cut() {
        for width in 24..80 {
            let text = table().text(width);
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
            let row: String = text.lines().skip(1).take_while(|line| !line.contains("Not shown")).collect();
            let without_unit = "latency.handoff61measuredonaboardthatnobodyhas".len();
            assert!(letters(&row) >= without_unit, "{width}: {text}");
            assert!(text.lines().all(|line| columns(line) <= width), "{width}: {text}");
        }
    }
}
