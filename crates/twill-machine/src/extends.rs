//! `extends`: finds the machine that a file builds on, and lays the file over it.

use crate::builtin;
use crate::document::{Content, Node, parse};
use crate::error::MachineError;
use crate::machine::is_path;
use crate::nearest::nearest;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use twill_graph::shortened;

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Embedded.
    Builtin(&'static str),
    /// A file.
    File(PathBuf),
}

impl Origin {
    pub fn file(path: &str) -> Origin {
        Origin::File(PathBuf::from(path))
    }

    /// The name of the file in messages.
    pub fn shown(&self) -> String {
        match self {
            Origin::Builtin(name) => format!("machines/{name}.toml"),
            Origin::File(path) => path.display().to_string(),
        }
    }

    /// The same file whichever way it was named.
    fn identity(&self) -> Origin {
        match self {
            Origin::Builtin(_) => self.clone(),
            Origin::File(path) => Origin::File(path.canonicalize().unwrap_or_else(|_| path.clone())),
        }
    }

    /// The target of `extends = "target"` in this file, and its text.
    fn target(&self, target: &str) -> Result<(Origin, String), Option<ErrorKind>> {
        if !is_path(target) {
            let (name, text) = builtin::find(target).ok_or(None)?;
            return Ok((Origin::Builtin(name), text.to_owned()));
        }
        let folder = match self {
            Origin::Builtin(_) => Path::new(""),
            Origin::File(path) => path.parent().unwrap_or(Path::new("")),
        };
        let path = folder.join(target);
        match read_text(&path) {
            Ok(text) => Ok((Origin::File(path), text)),
            Err(error) => Err(Some(error.kind())),
        }
    }
}

/// Longest machine file in bytes: files name each other, and what they name may be a device without end.
const LONGEST: u64 = 1 << 24;

/// The text of a machine file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST { Err(ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// A file with all that it extends, and what went wrong on the way.
pub(crate) struct Resolved {
    pub document: Node,
    /// Why part of what it extends is not there. What is missing in `document` may be there.
    pub incomplete: Option<MachineError>,
}

/// Reads a file and, in turn, those that it extends.
///
/// # Errors
/// Only syntax: then nothing else can be said.
pub(crate) fn resolve(text: &str, origin: &Origin) -> Result<Resolved, Vec<MachineError>> {
    let mut chain = vec![origin.clone()];
    let mut document = parse(text, &origin.shown())?;
    let mut next = take_extends(&mut document);
    // The most derived file is at hand first, so those that it extends are collected and laid over one another from the
    // far end.
    let mut extended = Vec::new();
    let mut incomplete = None;
    while let Some(node) = next {
        let Content::Text(target) = &node.content else {
            incomplete = Some(MachineError::Value {
                place: node.place.clone(),
                key: "extends".into(),
                found: node.found(),
                expected: "the name of a built-in machine or a path, in quotes".into(),
            });
            break;
        };
        let here = chain.last().unwrap_or(origin);
        let (there, text) = match here.target(target) {
            Ok(found) => found,
            Err(kind) => {
                incomplete = Some(MachineError::Extends {
                    place: node.place,
                    target: shortened(target),
                    kind,
                    nearest: nearest(target, builtin::names()),
                    known: builtin::names().collect(),
                });
                break;
            }
        };
        if let Some(start) = chain.iter().position(|o| o.identity() == there.identity()) {
            let names = chain[start..].iter().chain([&chain[start]]).map(Origin::shown).collect();
            incomplete = Some(MachineError::ExtendsCycle { place: node.place, chain: names });
            break;
        }
        let mut base = parse(&text, &there.shown())?;
        next = take_extends(&mut base);
        // The name of a machine is not inherited.
        remove(&mut base, "name");
        remove(&mut base, "description");
        extended.push(base);
        chain.push(there);
    }
    let document = match extended.into_iter().rev().reduce(Node::overlaid) {
        Some(base) => base.overlaid(document),
        None => document,
    };
    Ok(Resolved { document, incomplete })
}

fn take_extends(document: &mut Node) -> Option<Node> {
    remove(document, "extends")
}

fn remove(document: &mut Node, key: &str) -> Option<Node> {
    match &mut document.content {
        Content::Table(entries) => {
            let index = entries.iter().position(|(k, _)| k == key)?;
            Some(entries.remove(index).1)
        }
        _ => None,
    }
}
