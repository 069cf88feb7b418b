//! The differences between two machines, number by number.

use crate::document::{Content, Node};
use crate::machine::Machine;
use crate::provenance::Row;

/// Something that two machines do not have in common.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A number with another value or another provenance, or that one of them lacks; one of the two is there.
    Number {
        /// As the first has it.
        old: Option<Row>,
        /// As the second has it.
        new: Option<Row>,
    },
    /// Words, such as the unit of a cost rule, as they are written.
    Words {
        /// Where they stand in the file.
        key: String,
        /// As the first has them.
        old: Option<String>,
        /// As the second has them.
        new: Option<String>,
    },
}

impl Difference {
    /// Where it stands in the file.
    pub fn key(&self) -> &str {
        match self {
            Difference::Number { old, new } => old.as_ref().or(new.as_ref()).map_or("", |row| &row.key),
            Difference::Words { key, .. } => key,
        }
    }

    /// Returns whether the values differ, and not only how they are known.
    pub fn is_of_value(&self) -> bool {
        match self {
            Difference::Number { old: Some(old), new: Some(new) } => old.value != new.value,
            Difference::Number { .. } | Difference::Words { .. } => true,
        }
    }

    /// By how many percent of the old number the new one is larger; `None` without two numbers, or from 0.
    pub fn percent(&self) -> Option<f64> {
        match self {
            Difference::Number { old: Some(old), new: Some(new) } if old.value != 0.0 => {
                Some(100.0 * (new.value - old.value) / old.value.abs())
            }
            _ => None,
        }
    }
}

/// The differences from the first machine to the second: numbers in the order of the first, those that only the second
/// has after them, then words. A number whose source alone differs is the same; so are name and description.
pub fn differences(old: &Machine, new: &Machine) -> Vec<Difference> {
    let find = |machine: &Machine, key: &str| machine.rows().find(|row| row.key == key).cloned();
    let is_same = |a: &Row, b: &Row| a.value == b.value && a.provenance == b.provenance;
    let mut found = Vec::new();
    for row in old.rows() {
        let other = find(new, &row.key);
        if !other.as_ref().is_some_and(|other| is_same(row, other)) {
            found.push(Difference::Number { old: Some(row.clone()), new: other });
        }
    }
    for row in new.rows().filter(|row| find(old, &row.key).is_none()) {
        found.push(Difference::Number { old: None, new: Some(row.clone()) });
    }
    let (before, after) = (words(&old.document), words(&new.document));
    let value = |words: &[(String, String)], key: &str| words.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
    for (key, text) in &before {
        let other = value(&after, key);
        if other.as_ref() != Some(text) {
            found.push(Difference::Words { key: key.clone(), old: Some(text.clone()), new: other });
        }
    }
    for (key, text) in after.into_iter().filter(|(key, _)| value(&before, key).is_none()) {
        found.push(Difference::Words { key, old: None, new: Some(text) });
    }
    found
}

/// Every word and list of a file by its full key, but for what a machine is called.
fn words(document: &Node) -> Vec<(String, String)> {
    fn collect(path: &str, node: &Node, into: &mut Vec<(String, String)>) {
        match &node.content {
            Content::Table(entries) if !node.is_quantity() => {
                for (key, inner) in entries {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(&path, inner, into);
                }
            }
            // Numbers have rows of their own, and `false` stands for nothing.
            Content::Table(_) | Content::Number(..) | Content::Flag(_) | Content::Time(_) => {}
            Content::Text(text) => into.push((path.to_owned(), text.clone())),
            Content::List(items) => {
                into.push((path.to_owned(), items.iter().map(Node::found).collect::<Vec<_>>().join(", ")));
            }
        }
    }
    let mut found = Vec::new();
    collect("", document, &mut found);
    found.retain(|(key, _)| key != "name" && key != "description");
    found
}
