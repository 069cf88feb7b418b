//! Numbers and switches of options, as text of the command and as values of Python.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

/// A whole number from `LEAST` to `MOST`.
///
/// # Errors
/// What is allowed.
pub fn whole<const LEAST: u64, const MOST: u64, T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let range = || match MOST {
        most if most == u64::MAX || most == u64::from(u32::MAX) => format!("must be at least {LEAST}"),
        most => format!("must be from {LEAST} to {most}"),
    };
    let digits = text.trim().trim_start_matches(['-', '+']);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err("must be a whole number".into());
    }
    let number = text.trim().parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(range)
}

/// Seconds, above 0.
///
/// # Errors
/// What is allowed.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if value > 0.0 && value <= 1e9 { Ok(value) } else { Err("must be above 0 and at most 1e9".into()) }
}

/// As [`seconds`]; infinity for `none`.
pub(super) fn seconds_or_none(text: &str) -> Result<f64, String> {
    let or_none = |why: String| if text.parse::<f64>().is_ok() { why + ", or none" } else { why };
    if text == "none" { Ok(f64::INFINITY) } else { seconds(text).map_err(or_none) }
}

/// `on` or `off`, of the command.
#[cfg(feature = "clap")]
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off".into()),
    }
}

/// A value as the command would have it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is read as the command reads it, by [`Parsed`].
pub(super) fn deserialize_whole<'de, const LEAST: u64, const MOST: u64, T: TryFrom<u64>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    whole::<LEAST, MOST, T>(&text_of(&Value::deserialize(from)?)).map_err(D::Error::custom)
}

/// The same where none is a value, too.
pub(super) fn deserialize_optional<'de, const LEAST: u64, const MOST: u64, T: TryFrom<u64>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        value => whole::<LEAST, MOST, T>(&text_of(&value)).map(Some).map_err(D::Error::custom),
    }
}

/// Whole numbers: an array, or text with commas between.
pub(super) fn deserialize_list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let texts = match Value::deserialize(from)? {
        Value::Array(all) => all.iter().map(text_of).collect(),
        value => text_of(&value).split(',').map(str::to_owned).collect::<Vec<_>>(),
    };
    let one = |text: &String| whole::<0, { u64::MAX }, u64>(text).map_err(D::Error::custom);
    texts.iter().map(one).collect()
}

/// Anything with a text form, where none is a value, too.
pub(super) fn deserialize_text<'de, T: std::str::FromStr<Err: std::fmt::Display>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        value => text_of(&value).parse().map(Some).map_err(|why| D::Error::custom(needed(&why))),
    }
}

/// What is allowed, of the words of a parser.
pub(super) fn needed(why: &dyn std::fmt::Display) -> String {
    let why = why.to_string();
    if why.starts_with("must be ") { why } else { format!("must be {why}") }
}

/// A flag or switch: true or false, `on` or `off`.
pub(super) fn deserialize_switch<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    deserialize_optional_switch(from).map(|switch| switch.unwrap_or(false))
}

/// The same where none is a value, too.
pub(super) fn deserialize_optional_switch<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::Bool(is_on) => Ok(Some(is_on)),
        Value::String(text) if text == "on" => Ok(Some(true)),
        Value::String(text) if text == "off" => Ok(Some(false)),
        _ => Err(D::Error::custom("must be 'on', 'off', True or False")),
    }
}

/// A limit of time, which may be `none`.
pub(super) mod time {
    use super::{Deserialize, Deserializer, Serializer, Value, seconds_or_none, text_of};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(limit: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        match limit {
            None => to.serialize_none(),
            Some(seconds) if seconds.is_finite() => to.serialize_some(seconds),
            Some(_) => to.serialize_some("none"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        match Value::deserialize(from)? {
            Value::Null => Ok(None),
            value => seconds_or_none(&text_of(&value)).map(Some).map_err(D::Error::custom),
        }
    }
}

/// Iterations to trace: a number, or on for the usual one.
pub(super) fn deserialize_traced<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null | Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(super::code::TRACED)),
        Value::String(text) if text == "off" => Ok(None),
        Value::String(text) if text == "on" => Ok(Some(super::code::TRACED)),
        value => whole::<3, 4096, u32>(&text_of(&value)).map(Some).map_err(D::Error::custom),
    }
}

/// One text, or those of an array; none of nothing.
pub(super) fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().map(text_of).collect(),
        value => vec![text_of(&value)],
    })
}
