//! Options with a few named values: each name stands once, for the command, Python and files.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;
use twill_graph::{ConcurrencyWindow, Liveness, StageWindow, WarpAssignment};
use twill_triton::tile::Axis;

/// A value that has a name.
pub trait Choice: Copy + PartialEq + 'static {
    /// All of them: name, value, and what it means.
    const ALL: &'static [(&'static str, Self, &'static str)];

    /// Its name.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, own, _)| *own == self).map_or("", |(name, ..)| *name)
    }
}

/// The value of a name.
///
/// # Errors
/// The names that there are.
pub(super) fn parse<T: Choice>(text: &str) -> Result<T, String> {
    let found = T::ALL.iter().find(|(name, ..)| *name == text);
    found.map(|(_, value, _)| *value).ok_or_else(|| {
        let names: Vec<String> = T::ALL.iter().map(|(name, ..)| format!("'{name}'")).collect();
        match names.split_last() {
            Some((last, [])) => format!("must be {last}"),
            Some((last, others)) => format!("must be {} or {last}", others.join(", ")),
            None => "cannot be given".into(),
        }
    })
}

/// What clap parses it with; it lists the names.
#[cfg(feature = "clap")]
pub(super) fn choices<T: Choice + Send + Sync>() -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let all = T::ALL.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(all).try_map(|text| parse::<T>(&text))
}

pub(super) fn serialize<T: Choice, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.name())
}

pub(super) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let value = Value::deserialize(from)?;
    parse(value.as_str().unwrap_or_default()).map_err(D::Error::custom)
}

/// The same where none is a value, too.
pub(super) mod optional {
    use super::{Choice, Deserialize, Deserializer, Serializer, Value};
    use serde::de::Error as _;

    pub(crate) fn serialize<T: Choice, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.serialize_some(value.name()),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        match Value::deserialize(from)? {
            Value::Null => Ok(None),
            value => super::parse(value.as_str().unwrap_or_default()).map(Some).map_err(D::Error::custom),
        }
    }
}

impl Choice for Axis {
    const ALL: &'static [(&'static str, Axis, &'static str)] =
        &[("x", Axis::X, "tl.program_id(0)"), ("y", Axis::Y, "tl.program_id(1)"), ("z", Axis::Z, "tl.program_id(2)")];
}

impl Choice for ConcurrencyWindow {
    const ALL: &'static [(&'static str, ConcurrencyWindow, &'static str)] = &[
        ("issue", ConcurrencyWindow::Issue, "One cycle for asynchronous operations"),
        ("literal", ConcurrencyWindow::Literal, "All cycles of every operation"),
    ];
}

impl Choice for Liveness {
    const ALL: &'static [(&'static str, Liveness, &'static str)] = &[
        ("folded", Liveness::Folded, "All values that are live in the steady state"),
        ("paper", Liveness::Paper, "As the paper counts"),
    ];
}

impl Choice for StageWindow {
    const ALL: &'static [(&'static str, StageWindow, &'static str)] = &[
        ("complete", StageWindow::Complete, "All"),
        ("paper", StageWindow::Paper, "As many as the modulo schedule without warps has"),
    ];
}

impl Choice for WarpAssignment {
    const ALL: &'static [(&'static str, WarpAssignment, &'static str)] = &[
        ("free", WarpAssignment::Free, "The scheduler chooses"),
        ("by-sub-tile", WarpAssignment::BySubTile, "Fixed: each sub-tile on a compute group of its own, in turn"),
    ];
}
