//! A machine file as a tree that remembers where everything stands, and the laying of one file over another.

use crate::error::{FileLine, MachineError};
use crate::provenance::Provenance;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use twill_graph::saturate;
use twill_graph::showable;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub place: FileLine,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// Keys in the order of the file.
    Table(Vec<(String, Node)>),
    /// A number, and how it was written.
    Number(f64, String),
    Text(String),
    List(Vec<Node>),
    Flag(bool),
    /// A date or a time: TOML has them, machine files do not.
    Time(String),
}

impl Node {
    /// The entry of a table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.content {
            Content::Table(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns whether it is a number with its provenance: `{ measured = 1, source = "…" }`.
    pub fn is_quantity(&self) -> bool {
        self.get("source").is_some() || Provenance::ALL.iter().any(|p| self.get(p.key()).is_some())
    }

    /// How it reads in a message.
    pub fn found(&self) -> String {
        match &self.content {
            Content::Table(_) => "a table".into(),
            Content::Number(_, text) => text.clone(),
            Content::Text(text) => shortened(text),
            Content::List(_) => "a list".into(),
            Content::Flag(flag) => flag.to_string(),
            Content::Time(text) => text.clone(),
        }
    }

    /// This file with another, which extends it, laid over: tables are joined key by key; of everything else, and of
    /// numbers with their provenance, `over` has the last word.
    pub fn overlaid(self, over: Node) -> Node {
        if self.is_quantity() || over.is_quantity() {
            return over;
        }
        match (self.content, over.content) {
            (Content::Table(mut entries), Content::Table(changes)) => {
                for (key, change) in changes {
                    match entries.iter_mut().find(|(k, _)| *k == key) {
                        Some((_, entry)) => *entry = entry.clone().overlaid(change),
                        None => entries.push((key, change)),
                    }
                }
                Node { place: over.place, content: Content::Table(entries) }
            }
            (_, content) => Node { place: over.place, content },
        }
    }
}

/// A text in quotes, cut where it is long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => format!("\"{}\"", showable(text)),
        Some((end, _)) => format!("\"{}…\"", showable(&text[..end])),
    }
}

/// Parses a file. All syntax errors are reported.
pub(crate) fn parse(text: &str, file: &str) -> Result<Node, Vec<MachineError>> {
    let reader = Text { newlines: text.match_indices('\n').map(|(at, _)| at).collect(), file: file.into() };
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node { place: reader.place(0), content: reader.table(table.into_inner()) });
    }
    let error = |e: toml::de::Error| MachineError::Syntax {
        place: reader.place(e.span().map_or(0, |s| s.start)),
        message: e.message().to_owned(),
    };
    let mut errors: Vec<_> = errors.into_iter().map(error).collect();
    errors.sort_by(|a, b| a.place().cmp(&b.place()));
    errors.dedup();
    Err(errors)
}

struct Text {
    /// Where its lines end.
    newlines: Vec<usize>,
    file: Arc<str>,
}

impl Text {
    fn place(&self, offset: usize) -> FileLine {
        let newlines = self.newlines.partition_point(|at| *at < offset);
        FileLine { file: Arc::clone(&self.file), line: saturate::<u32>(newlines + 1) }
    }

    fn table(&self, table: DeTable<'_>) -> Content {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Content::Table(
            entries.into_iter().map(|(key, value)| (key.get_ref().to_string(), self.node(&key, value))).collect(),
        )
    }

    /// A value; the place is that of its key, which for a table is its header.
    fn node(&self, key: &Spanned<impl Sized>, value: Spanned<DeValue<'_>>) -> Node {
        Node { place: self.place(key.span().start), content: self.content(value) }
    }

    fn content(&self, value: Spanned<DeValue<'_>>) -> Content {
        match value.into_inner() {
            DeValue::String(text) => Content::Text(text.into_owned()),
            DeValue::Integer(integer) => {
                let value = match integer.radix() {
                    10 => integer.as_str().parse().unwrap_or(f64::NAN),
                    radix => u64::from_str_radix(integer.as_str(), radix).map_or(f64::NAN, |v| v as f64),
                };
                Content::Number(value, integer.as_str().to_owned())
            }
            DeValue::Float(float) => {
                Content::Number(float.as_str().parse().unwrap_or(f64::NAN), float.as_str().to_owned())
            }
            DeValue::Boolean(flag) => Content::Flag(flag),
            DeValue::Datetime(time) => Content::Time(time.to_string()),
            DeValue::Array(items) => Content::List(
                items
                    .into_iter()
                    .map(|item| Node { place: self.place(item.span().start), content: self.content(item) })
                    .collect(),
            ),
            DeValue::Table(table) => self.table(table),
        }
    }
}
