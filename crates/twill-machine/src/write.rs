//! A machine as a complete file of its own: what it extends is written out.

use crate::document::{Content, Node};
use crate::machine::Machine;
use std::fmt::Write;

impl Machine {
    /// The text of a file that says the same without extending another. Reading and writing it again changes nothing.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        table(&mut text, "", &self.document);
        text.trim_start().to_owned()
    }
}

/// Values first, then the tables inside.
fn table(text: &mut String, path: &str, node: &Node) {
    let Content::Table(entries) = &node.content else { return };
    let is_table = |node: &Node| matches!(node.content, Content::Table(_)) && !node.is_quantity();
    let (tables, values): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, node)| is_table(node));
    if !path.is_empty() && (!values.is_empty() || tables.is_empty()) {
        let _ = write!(text, "\n[{path}]\n");
    }
    for (key, value) in values {
        let _ = writeln!(text, "{} = {}", bare(key), inline(value));
    }
    for (key, inner) in tables {
        let key = bare(key);
        table(text, &if path.is_empty() { key } else { format!("{path}.{key}") }, inner);
    }
}

fn inline(node: &Node) -> String {
    match &node.content {
        Content::Table(entries) => {
            let entries: Vec<_> = entries.iter().map(|(k, v)| format!("{} = {}", bare(k), inline(v))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Content::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Content::Number(value, _) => value.to_string(),
        Content::Text(value) => quoted(value),
        Content::Flag(flag) => flag.to_string(),
        Content::Time(time) => time.clone(),
    }
}

/// A key, in quotes where it needs them.
fn bare(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_owned() } else { quoted(key) }
}

/// A basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
