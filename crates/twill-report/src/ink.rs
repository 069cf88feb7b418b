//! Lines of coloured characters, measured in terminal columns.

use unicode_width::UnicodeWidthChar;

/// How a character is drawn when colours are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The terminal's own colour.
    #[default]
    Plain,
    /// Headings.
    Bold,
    /// Text for orientation only.
    Dim,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// One of a few colours to tell things apart; any number.
    Hue(usize),
}

impl Ink {
    /// Parameters of the ANSI escape sequence that selects it.
    fn code(self) -> &'static str {
        const HUES: [&str; 6] = ["36", "33", "35", "32", "34", "31"];
        match self {
            Ink::Plain => "0",
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Hue(n) => HUES[n % HUES.len()],
        }
    }
}

/// A line of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    characters: Vec<(char, Ink)>,
}

impl Line {
    /// An empty line.
    pub(crate) fn new() -> Line {
        Line::default()
    }

    /// A line of one ink.
    pub(crate) fn of(text: &str, ink: Ink) -> Line {
        Line::new().and(text, ink)
    }

    /// The line with more text after it.
    pub(crate) fn and(mut self, text: &str, ink: Ink) -> Line {
        self.push(text, ink);
        self
    }

    /// Appends text to the line. Characters without a place on a terminal are left out.
    pub(crate) fn push(&mut self, text: &str, ink: Ink) {
        self.characters.extend(text.chars().filter(|c| columns_of(*c) > 0).map(|c| (c, ink)));
    }

    /// Appends another line to this one.
    pub(crate) fn append(&mut self, other: Line) {
        self.characters.extend(other.characters);
    }

    /// Fills the line with blanks up to a column.
    pub(crate) fn pad(&mut self, column: usize) {
        let missing = column.saturating_sub(self.columns());
        self.characters.extend(std::iter::repeat_n((' ', Ink::Plain), missing));
    }

    /// Width in terminal columns.
    pub(crate) fn columns(&self) -> usize {
        self.characters.iter().map(|(c, _)| columns_of(*c)).sum()
    }
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Width of a text in terminal columns.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The longest beginning of a text that fits into `limit` columns.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    let mut used = 0;
    text.chars()
        .filter(|c| columns_of(*c) > 0)
        .take_while(|c| {
            used += columns_of(*c);
            used <= limit
        })
        .collect()
}

/// A text in at most `limit` columns, with `…` where something was left out.
pub(crate) fn elide(text: &str, limit: usize) -> String {
    if columns(text) <= limit { cut(text, limit) } else { cut(text, limit.saturating_sub(1)) + "…" }
}

/// Words on lines of at most `width` columns; a longer word is broken.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, 0, 0)
}

/// Words on lines of at most `width` columns, the first and the others indented by this many blanks.
fn hanging(text: &str, width: usize, first: usize, others: usize) -> Vec<String> {
    let others = if others + LEAST_ROOM > width { 0 } else { others };
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(first.min(width.saturating_sub(1)));
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && columns(&line) + 1 + columns(word) > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(others)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        let mut rest = word;
        while columns(&line) + columns(rest) > width {
            let part = cut(rest, width.saturating_sub(columns(&line)).max(1));
            if part.is_empty() {
                break;
            }
            line.push_str(&part);
            lines.push(std::mem::replace(&mut line, " ".repeat(others)));
            // Characters without a place on a terminal are not in `part`.
            let taken: usize = rest
                .char_indices()
                .filter(|(_, c)| columns_of(*c) > 0)
                .nth(part.chars().count())
                .map_or(rest.len(), |(at, _)| at);
            rest = &rest[taken..];
        }
        line.push_str(rest);
        empty = false;
    }
    lines.push(line);
    lines
}

/// Lines that go on have at least this much room, or no blanks before them.
const LEAST_ROOM: usize = 8;

/// A text whose lines are at most `width` columns wide: what is longer goes on below, four blanks further to the right.
pub fn folded(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if columns(line) <= width {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        // Columns of the first line stay where they are.
        let head = line.char_indices().rfind(|(at, c)| *c == ' ' && *at > indent && columns(&line[..*at]) <= width);
        let (head, rest) = head.map_or(("", line), |(at, _)| line.split_at(at));
        if !head.is_empty() {
            out.push_str(head.trim_end());
            out.push('\n');
        }
        for line in hanging(rest, width, if head.is_empty() { indent } else { indent + 4 }, indent + 4) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// A report being written.
#[derive(Debug)]
pub(crate) struct Page {
    width: usize,
    color: bool,
    out: String,
}

impl Page {
    /// An empty page of this width.
    pub(crate) fn new(width: usize, color: bool) -> Page {
        Page { width, color, out: String::new() }
    }

    /// Columns of the page.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes a line, cut to the page's width, without blanks at its end.
    pub(crate) fn line(&mut self, line: &Line) {
        let mut used = 0;
        let mut shown: Vec<(char, Ink)> = Vec::new();
        for &(c, ink) in &line.characters {
            used += columns_of(c);
            if used > self.width {
                break;
            }
            shown.push((c, ink));
        }
        while shown.last().is_some_and(|(c, _)| *c == ' ') {
            shown.pop();
        }
        let mut current = Ink::Plain;
        for (c, ink) in shown {
            if self.color && ink != current {
                if current != Ink::Plain {
                    self.out.push_str("\x1b[0m");
                }
                if ink != Ink::Plain {
                    self.out.push_str("\x1b[");
                    self.out.push_str(ink.code());
                    self.out.push('m');
                }
                current = ink;
            }
            self.out.push(c);
        }
        if current != Ink::Plain {
            self.out.push_str("\x1b[0m");
        }
        self.out.push('\n');
    }

    /// Begins a section.
    pub(crate) fn heading(&mut self, title: &str) {
        self.out.push('\n');
        self.line(&Line::of(title, Ink::Bold));
    }

    /// Writes words, broken where the page ends; lines after the first are indented.
    pub(crate) fn paragraph(&mut self, indent: usize, text: &str, ink: Ink) {
        for line in hanging(text, self.width, indent, indent + 2) {
            self.line(&Line::of(&line, ink));
        }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}
