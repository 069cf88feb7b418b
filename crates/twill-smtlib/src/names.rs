//! Names from graphs and machine files, made inert: whatever they contain, they end no comment, no
//! symbol and no string.

use std::fmt::Write;

/// Letters, digits and punctuation that mean nothing inside `|…|`, `"…"` or a comment stay; every other byte,
/// and `%` itself, becomes `%XX`. Different names stay different.
pub(crate) fn inert(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'|' | b'\\' | b'"' | b'%' => escape(&mut text, byte),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => escape(&mut text, byte),
        }
    }
    text
}

fn escape(text: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(text, "%{byte:02X}");
}
