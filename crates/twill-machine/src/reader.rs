//! Reads typed values out of a document and collects everything that is wrong on the way.
//!
//! The calls of [`crate::read`] are the schema: a key that no call requested is unknown.

use crate::document::{Content, Node};
use crate::error::{FileLine, MachineError};
use crate::nearest::nearest;
use crate::provenance::{Provenance, Row};
use std::fmt;
use std::sync::Arc;
use twill_graph::is_shown;

/// Which numbers a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Allowed {
    /// Whole numbers in a range.
    Whole(u64, u64),
    /// More than 0.
    Positive,
    /// 0 or more.
    NotNegative,
}

/// Beyond this no rate and no amount of a machine makes sense.
const LARGEST: f64 = 1e15;

impl Allowed {
    fn contains(self, value: f64) -> bool {
        match self {
            Allowed::Whole(low, high) => value.fract() == 0.0 && value >= low as f64 && value <= high as f64,
            Allowed::Positive => value > 0.0 && value <= LARGEST,
            Allowed::NotNegative => (0.0..=LARGEST).contains(&value),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Whole(low, high) => write!(f, "a whole number from {low} to {high}"),
            Allowed::Positive => f.write_str("a number greater than 0, and at most 1e15"),
            Allowed::NotNegative => f.write_str("0 or a greater number, and at most 1e15"),
        }
    }
}

/// A table that is being read.
pub(crate) struct Section<'a> {
    path: String,
    place: &'a FileLine,
    entries: &'a [(String, Node)],
    requested: Vec<String>,
}

impl<'a> Section<'a> {
    /// The whole document, from which `extends` has been taken.
    pub fn root(document: &'a Node) -> Section<'a> {
        let entries: &[_] = if let Content::Table(entries) = &document.content { entries } else { &[] };
        Section { path: String::new(), place: &document.place, entries, requested: vec!["extends".into()] }
    }

    /// All keys that are present, for tables whose keys are the user's.
    pub fn present(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.entries.iter().filter(|(_, node)| node.content != Content::Flag(false)).map(|(key, _)| key.as_str())
    }

    /// The full key of an entry.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An entry; `false` stands for none, so that a file can take away what it inherits.
    fn get(&mut self, key: &str) -> Option<&'a Node> {
        if !self.requested.iter().any(|k| k == key) {
            self.requested.push(key.to_owned());
        }
        let (_, node) = self.entries.iter().find(|(k, _)| k == key)?;
        (node.content != Content::Flag(false)).then_some(node)
    }

    /// Where an entry stands, or the table if there is none.
    pub fn place_of(&self, key: &str) -> FileLine {
        self.entries.iter().find(|(k, _)| k == key).map_or(self.place, |(_, node)| &node.place).clone()
    }
}

/// Collects numbers and errors.
#[derive(Default)]
pub(crate) struct Reader {
    pub errors: Vec<MachineError>,
    pub rows: Vec<Row>,
}

impl Reader {
    fn missing<T>(&mut self, section: &Section<'_>, key: &str, expected: String) -> Option<T> {
        self.errors.push(MachineError::Missing { place: section.place.clone(), key: section.key(key), expected });
        None
    }

    fn wrong<T>(&mut self, node: &Node, key: String, expected: String) -> Option<T> {
        self.errors.push(MachineError::Value { place: node.place.clone(), key, found: node.found(), expected });
        None
    }

    /// A table that may be absent.
    pub fn optional_section<'a>(&mut self, parent: &mut Section<'a>, key: &str) -> Option<Section<'a>> {
        let node = parent.get(key)?;
        let path = parent.key(key);
        match &node.content {
            Content::Table(entries) => Some(Section { path, place: &node.place, entries, requested: Vec::new() }),
            _ => self.wrong(node, path, format!("a table [{}]", parent.key(key))),
        }
    }

    /// A table.
    pub fn section<'a>(&mut self, parent: &mut Section<'a>, key: &str) -> Option<Section<'a>> {
        if parent.get(key).is_none() {
            return self.missing(parent, key, format!("a table [{}]", parent.key(key)));
        }
        self.optional_section(parent, key)
    }

    /// Ends the reading of a table: keys that were not requested are unknown.
    pub fn finish(&mut self, section: Section<'_>) {
        for (key, node) in section.entries {
            if !section.requested.iter().any(|k| k == key) {
                self.errors.push(MachineError::UnknownKey {
                    place: node.place.clone(),
                    key: section.key(key),
                    nearest: nearest(key, &section.requested),
                    known: section.requested.clone(),
                });
            }
        }
    }

    /// A text that may be absent.
    pub fn optional_text(&mut self, section: &mut Section<'_>, key: &str) -> Option<String> {
        let node = section.get(key)?;
        match &node.content {
            Content::Text(text) if is_readable(text) => Some(text.clone()),
            Content::Text(text) if !text.trim().is_empty() => {
                self.wrong(node, section.key(key), "a text without control characters".into())
            }
            _ => self.wrong(node, section.key(key), "a text in quotes, not empty".into()),
        }
    }

    /// A text.
    pub fn text(&mut self, section: &mut Section<'_>, key: &str) -> Option<String> {
        if section.get(key).is_none() {
            return self.missing(section, key, "a text in quotes".into());
        }
        self.optional_text(section, key)
    }

    /// One of several words.
    pub fn word<T: Copy>(&mut self, section: &mut Section<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let Some(node) = section.get(key) else {
            return self.missing(section, key, one_of(words));
        };
        self.one_word(node, section.key(key), words)
    }

    /// One of several words, which may be absent.
    pub fn optional_word<T: Copy>(&mut self, section: &mut Section<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let node = section.get(key)?;
        self.one_word(node, section.key(key), words)
    }

    /// One or more of several words, each once.
    pub fn words<T: Copy>(&mut self, section: &mut Section<'_>, key: &str, words: &[(&str, T)]) -> Option<Vec<T>> {
        let expected = format!("a list of {}", one_of(words));
        let Some(node) = section.get(key) else {
            return self.missing(section, key, expected);
        };
        match &node.content {
            Content::List(items) if !items.is_empty() => {
                items.iter().map(|item| self.one_word(item, section.key(key), words)).collect()
            }
            _ => self.wrong(node, section.key(key), expected),
        }
    }

    fn one_word<T: Copy>(&mut self, node: &Node, key: String, words: &[(&str, T)]) -> Option<T> {
        let found = match &node.content {
            Content::Text(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        match found {
            Some((_, value)) => Some(*value),
            None => self.wrong(node, key, one_of(words)),
        }
    }

    /// A number.
    pub fn number(
        &mut self,
        section: &mut Section<'_>,
        key: &str,
        unit: &'static str,
        allowed: Allowed,
    ) -> Option<f64> {
        if section.get(key).is_none() {
            let expected = format!("a number of {unit}: {{ measured = …, source = \"…\" }}");
            return self.missing(section, key, expected);
        }
        self.optional_number(section, key, unit, allowed)
    }

    /// A whole number.
    pub fn whole(
        &mut self,
        section: &mut Section<'_>,
        key: &str,
        unit: &'static str,
        low: u64,
        high: u64,
    ) -> Option<u64> {
        self.number(section, key, unit, Allowed::Whole(low, high)).map(|value| value as u64)
    }

    /// A number that may be absent.
    pub fn optional_number(
        &mut self,
        section: &mut Section<'_>,
        key: &str,
        unit: &'static str,
        allowed: Allowed,
    ) -> Option<f64> {
        let node = section.get(key)?;
        let key = section.key(key);
        let (value, text, provenance, source) = self.quantity(node, &key)?;
        if !allowed.contains(value) {
            self.errors.push(MachineError::Number {
                place: node.place.clone(),
                key,
                value: text.to_owned(),
                expected: allowed.to_string(),
            });
            return None;
        }
        let file = Some(Arc::clone(&node.place.file));
        self.rows.push(Row { key, value, unit, provenance, source: source.to_owned(), file });
        Some(value)
    }

    /// A number that has a default, which is then recorded as derived.
    pub fn number_or(
        &mut self,
        section: &mut Section<'_>,
        key: &str,
        unit: &'static str,
        allowed: Allowed,
        (value, source): (f64, &str),
    ) -> Option<f64> {
        if section.get(key).is_some() {
            return self.optional_number(section, key, unit, allowed);
        }
        let (key, provenance, source) = (section.key(key), Provenance::Derived, source.to_owned());
        self.rows.push(Row { key, value, unit, provenance, source, file: None });
        Some(value)
    }

    /// Takes `{ measured = 1, source = "…" }` apart.
    fn quantity<'a>(&mut self, node: &'a Node, key: &str) -> Option<(f64, &'a str, Provenance, &'a str)> {
        let mut fault = |fault, value: &str| {
            let (place, key, value) = (node.place.clone(), key.to_owned(), value.to_owned());
            self.errors.push(MachineError::Provenance { place, key, fault, value });
            None
        };
        let entries = match &node.content {
            Content::Table(entries) => entries,
            Content::Number(_, text) => return fault("does not say where it comes from", text),
            _ => return self.wrong(node, key.to_owned(), "a number: { measured = …, source = \"…\" }".into()),
        };
        let known = Provenance::ALL.map(Provenance::key);
        if let Some((unknown, at)) = entries.iter().find(|(k, _)| k != "source" && !known.contains(&k.as_str())) {
            let known: Vec<String> = known.iter().copied().chain(["source"]).map(str::to_owned).collect();
            self.errors.push(MachineError::UnknownKey {
                place: at.place.clone(),
                key: format!("{key}.{unknown}"),
                nearest: nearest(unknown, &known),
                known,
            });
            return None;
        }
        let mut given = Provenance::ALL.into_iter().filter_map(|p| node.get(p.key()).map(|n| (p, n)));
        let (provenance, number) = match (given.next(), given.next()) {
            (Some(only), None) => only,
            (None, _) => return fault("has no number", "…"),
            (Some(_), Some(_)) => return fault("has several numbers", "…"),
        };
        let Content::Number(value, text) = &number.content else {
            return self.wrong(number, format!("{key}.{}", provenance.key()), "a number".into());
        };
        match node.get("source").map(|n| &n.content) {
            Some(Content::Text(source)) if is_readable(source) => Some((*value, text, provenance, source)),
            _ => fault("does not say its source", text),
        }
    }
}

/// Returns whether a text says something, and may be printed as it is.
fn is_readable(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().all(|c| c == '\n' || c == '\t' || is_shown(c))
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}
