//! Errors in a machine file, or in the name of one.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use thiserror::Error;
use twill_graph::ResourcesError;

/// A line of a machine file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileLine {
    /// The file, as it was given.
    pub file: Arc<str>,
    /// 1-based line.
    pub line: u32,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why there is no such machine, or why its file makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// No built-in machine has this name.
    #[error(
        "there is no machine `{name}`; built in are {}{}; a file of your own is given by its path, such as ./{name}.toml",
        known.join(", "),
        did_you_mean(nearest)
    )]
    UnknownMachine {
        /// The request.
        name: String,
        /// The built-in machines.
        known: Vec<&'static str>,
        /// The most similar of these.
        nearest: Option<String>,
    },
    /// A file cannot be read.
    #[error("cannot read the machine file {file}: {kind}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        kind: ErrorKind,
    },
    /// A file is not TOML.
    #[error("{place}: not valid TOML: {message}")]
    Syntax {
        /// Where.
        place: FileLine,
        /// The TOML reader's message.
        message: String,
    },
    /// `extends` names a machine that cannot be read.
    #[error(
        "{place}: `extends` names {target}, {}{}; give a built-in machine ({}) or a path relative to this file",
        match kind {
            Some(kind) => format!("which cannot be read: {kind}"),
            None => "which is not built in".to_owned(),
        },
        did_you_mean(nearest),
        known.join(", ")
    )]
    Extends {
        /// Where.
        place: FileLine,
        /// The name that it refers to.
        target: String,
        /// For a path: what the system says.
        kind: Option<ErrorKind>,
        /// The most similar built-in machine.
        nearest: Option<String>,
        /// All built-in machines.
        known: Vec<&'static str>,
    },
    /// Machines extend each other.
    #[error("{place}: machines extend each other: {}; remove one `extends`", chain.join(" → "))]
    ExtendsCycle {
        /// The `extends` that closes the cycle.
        place: FileLine,
        /// The files; the first is repeated at the end.
        chain: Vec<String>,
    },
    /// Something that every machine has is missing.
    #[error("{place}: `{key}` is missing; expected {expected}")]
    Missing {
        /// The table that should have it.
        place: FileLine,
        /// The key.
        key: String,
        /// The correct form.
        expected: String,
    },
    /// A key that means nothing.
    #[error("{place}: `{key}` is not a key of a machine file{}; here are {}", did_you_mean(nearest), known.join(", "))]
    UnknownKey {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// All keys of this table.
        known: Vec<String>,
    },
    /// A value of the wrong type, or a word that is none of those allowed.
    #[error("{place}: `{key}` is {found}; expected {expected}")]
    Value {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// The given value.
        found: String,
        /// The correct form.
        expected: String,
    },
    /// A number that does not say where it comes from, or says it twice.
    #[error(
        "{place}: `{key}` {fault}; write {{ measured = {value}, source = \"…\" }}, or `specified` or `derived` instead of `measured`"
    )]
    Provenance {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// The fault.
        fault: &'static str,
        /// The number as given, or an ellipsis.
        value: String,
    },
    /// A number out of range.
    #[error("{place}: `{key}` is {value}; it must be {expected}")]
    Number {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// The given value.
        value: String,
        /// The allowed values.
        expected: String,
    },
    /// A cost rule uses a unit that `[units]` does not have.
    #[error(
        "{place}: `{key}` is the unit `{unit}`, which [units] does not declare{}; it declares {}",
        did_you_mean(nearest),
        list(declared)
    )]
    UnknownUnit {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// The unit.
        unit: String,
        /// The most similar declared unit.
        nearest: Option<String>,
        /// The units that there are.
        declared: Vec<String>,
    },
    /// Global memory traffic that no warp group can issue.
    #[error(
        "{place}: `{key}` is \"warp_group\", but the variable-latency group, which issues all global memory traffic, has {warps} of its 4 warps; write \"warp\" or enlarge [groups.variable_latency]"
    )]
    IssueWidth {
        /// Where.
        place: FileLine,
        /// The key.
        key: String,
        /// Warps of the variable-latency group.
        warps: u32,
    },
    /// Numbers that do not go together.
    #[error("{file}: {error}")]
    Resources {
        /// The file.
        file: String,
        /// The contradiction.
        error: ResourcesError,
    },
}

impl MachineError {
    /// Where in which file it is, as far as that is one line.
    pub fn place(&self) -> Option<&FileLine> {
        match self {
            MachineError::Syntax { place, .. }
            | MachineError::Extends { place, .. }
            | MachineError::ExtendsCycle { place, .. }
            | MachineError::Missing { place, .. }
            | MachineError::UnknownKey { place, .. }
            | MachineError::Value { place, .. }
            | MachineError::Provenance { place, .. }
            | MachineError::Number { place, .. }
            | MachineError::UnknownUnit { place, .. }
            | MachineError::IssueWidth { place, .. } => Some(place),
            MachineError::UnknownMachine { .. } | MachineError::Unreadable { .. } | MachineError::Resources { .. } => {
                None
            }
        }
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
