//! Tables that shrink to the page: texts are elided, then the least important columns go.

use crate::ink::{Ink, Line, Page, columns, elide};

/// Side to which a column's entries are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug)]
struct Column {
    title: &'static str,
    align: Align,
    /// Columns of higher rank are dropped first; rank 0 never is.
    rank: u32,
}

/// A table being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

const GAP: usize = 2;
const LEAST_TEXT: usize = 6;

impl Table {
    /// A table without columns.
    pub(crate) fn new() -> Table {
        Table::default()
    }

    /// The table with one more column.
    pub(crate) fn column(mut self, title: &'static str, align: Align, rank: u32) -> Table {
        self.columns.push(Column { title, align, rank });
        self
    }

    /// Adds a row; missing entries are empty.
    pub(crate) fn row(&mut self, entries: Vec<String>) {
        self.rows.push(entries);
    }

    /// Writes the table.
    pub(crate) fn write(&self, page: &mut Page) {
        let entry = |row: &[String], c: usize| row.get(c).map_or("", String::as_str).to_owned();
        let natural: Vec<usize> = (0..self.columns.len())
            .map(|c| {
                let entries = self.rows.iter().map(|r| columns(&entry(r, c))).max().unwrap_or(0);
                entries.max(columns(self.columns[c].title))
            })
            .collect();
        // A column in which nothing stands says nothing.
        let filled = |c: &usize| self.rows.iter().any(|r| !entry(r, *c).is_empty());
        let mut shown: Vec<usize> = (0..self.columns.len()).filter(filled).collect();
        let widths = loop {
            match self.fit(page.width(), &shown, &natural) {
                Some(widths) => break widths,
                None => {
                    let worst = shown.iter().copied().max_by_key(|&c| (self.columns[c].rank, c));
                    match worst.filter(|&c| self.columns[c].rank > 0) {
                        Some(worst) => shown.retain(|&c| c != worst),
                        // The page cuts what is left.
                        None => break shown.iter().map(|&c| natural[c].min(page.width() / 2)).collect(),
                    }
                }
            }
        };
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.to_owned()).collect();
        self.line(page, &shown, &widths, &titles, Ink::Dim);
        for entries in &self.rows {
            self.line(page, &shown, &widths, entries, Ink::Plain);
        }
    }

    /// Widths with which the columns fit, or none: texts give way, the widest first.
    fn fit(&self, width: usize, shown: &[usize], natural: &[usize]) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> = shown.iter().map(|&c| natural[c]).collect();
        loop {
            let total: usize = GAP + widths.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1);
            if total <= width {
                return Some(widths);
            }
            let widest = (0..shown.len())
                .filter(|&k| self.columns[shown[k]].align == Align::Left && !self.columns[shown[k]].title.is_empty())
                .filter(|&k| widths[k] > LEAST_TEXT.max(columns(self.columns[shown[k]].title)))
                .max_by_key(|&k| widths[k])?;
            // A little at a time, so that two long texts share the loss.
            let least = LEAST_TEXT.max(columns(self.columns[shown[widest]].title));
            widths[widest] -= (total - width).min(widths[widest] - least).min(1 + widths[widest] / 8);
        }
    }

    fn line(&self, page: &mut Page, shown: &[usize], widths: &[usize], entries: &[String], ink: Ink) {
        let mut line = Line::of(&" ".repeat(GAP), ink);
        for (&c, &width) in shown.iter().zip(widths) {
            let start = line.columns();
            let text = elide(entries.get(c).map_or("", String::as_str), width);
            if self.columns[c].align == Align::Right {
                line.pad(start + width - columns(&text).min(width));
            }
            line.push(&text, ink);
            line.pad(start + width + GAP);
        }
        page.line(&line);
    }
}
