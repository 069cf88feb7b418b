//! Which names a graph and a machine may have.
//!
//! Names come from files and go into terminals, pages, pictures and generated code. Each of these escapes what means something
//! to it; what no reader should see at all, and what would make every output long, is refused here, once.

use crate::GraphError;
use thiserror::Error;

/// Longest name in bytes: paths of source files are no longer (`PATH_MAX` of Linux), and other names not nearly so long.
pub const LONGEST_NAME: usize = 4096;

/// Why a name cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameFault {
    /// Nothing to show.
    #[error("it must not be empty")]
    Empty,
    /// Longer than [`LONGEST_NAME`].
    #[error("it has {bytes} bytes, and at most {LONGEST_NAME} are supported; shorten it")]
    Long {
        /// Bytes that it has.
        bytes: usize,
    },
    /// A control character, or one that changes the direction of the text after it.
    #[error("it holds the character {character:?}, which cannot be shown; take it out")]
    Character {
        /// The first such character.
        character: char,
    },
}

/// Returns whether a character can stand in a name: it is no control character (terminals obey them), and does not
/// change the direction of text (Boucher & Anderson, "Trojan Source", USENIX Security 2023).
pub fn is_shown(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !turns
}

/// A text with `_` for every character that cannot be shown.
pub fn showable(text: &str) -> String {
    text.chars().map(|c| if is_shown(c) { c } else { '_' }).collect()
}

/// A name out of a file that others write: an escape (`\n`, `\u{1b}`) for every character that cannot be shown, so that
/// what the file calls an operation is still told apart.
pub(crate) fn legible(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for character in name.chars() {
        if is_shown(character) { shown.push(character) } else { shown.extend(character.escape_default()) }
    }
    shown
}

/// The error in a name that must not be empty.
pub(crate) fn fault(name: &str) -> Option<NameFault> {
    if name.is_empty() { Some(NameFault::Empty) } else { fault_if_any(name) }
}

/// The error in a name that may be empty.
pub(crate) fn fault_if_any(name: &str) -> Option<NameFault> {
    if name.len() > LONGEST_NAME {
        return Some(NameFault::Long { bytes: name.len() });
    }
    name.chars().find(|&c| !is_shown(c)).map(|character| NameFault::Character { character })
}

/// A text for a message: its beginning, where it is long.
pub fn shortened(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        None => showable(text),
        Some((end, _)) => showable(&text[..end]) + "…",
    }
}

/// The beginning of a name, in quotes, with escapes for what cannot be shown.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 40;
    match name.char_indices().nth(LONGEST) {
        None => format!("{name:?}"),
        Some((end, _)) => format!("{:?}…", &name[..end]),
    }
}

/// The names of a loop graph.
pub(crate) fn check<'a>(named: impl IntoIterator<Item = (&'static str, &'a str)>) -> Result<(), GraphError> {
    for (what, name) in named {
        // A kind, a path and a unit are for people, and may be left empty.
        let fault = if what == OPERATION { fault(name) } else { fault_if_any(name) };
        if let Some(fault) = fault {
            return Err(GraphError::Name { what: what.to_owned(), name: quoted(name), fault });
        }
    }
    Ok(())
}

/// The term for an operation's name.
pub(crate) const OPERATION: &str = "an operation";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_found() {
        assert_eq!(fault(""), Some(NameFault::Empty));
        assert_eq!(fault_if_any(""), None);
        assert_eq!(fault(&"x".repeat(LONGEST_NAME)), None);
        assert_eq!(fault(&"x".repeat(LONGEST_NAME + 1)), Some(NameFault::Long { bytes: LONGEST_NAME + 1 }));
        for character in ['\n', '\r', '\0', '\u{1b}', '\u{85}', '\u{202e}', '\u{2066}'] {
            assert_eq!(fault(&format!("a{character}")), Some(NameFault::Character { character }));
            assert_eq!(showable(&format!("a{character}b")), "a_b");
        }
        for plain in ["a.b#2", "acc'", "é", "名", "</script>", "\\N", "a b"] {
            assert_eq!(fault(plain), None);
            assert_eq!(showable(plain), plain);
        }
    }

    #[test]
    fn names_of_others_are_escaped_and_told_apart() {
        for (name, shown) in [("a\nb", "a\\nb"), ("a\tb\u{1b}", "a\\tb\\u{1b}"), ("\\g[0]", "\\g[0]"), ("é 名", "é 名")]
        {
            assert_eq!(legible(name), shown);
            assert_eq!(fault_if_any(shown), None);
        }
    }

    #[test]
    fn a_long_name_is_not_repeated_in_full() {
        assert!(quoted(&"x".repeat(10_000_000)).len() < 60);
        assert_eq!(quoted("a\n\u{1b}"), "\"a\\n\\u{1b}\"");
    }
}
