//! Changes of texts.

use crate::tape::Tape;

/// The text after up to eight changes: parts are left out, inserted, moved or repeated, and numbers become others.
/// `words` are parts that mean something in the format.
pub(crate) fn changed(tape: &mut Tape, text: &str, words: &[&str]) -> String {
    let mut text = text.to_owned();
    for _ in 0..1 + tape.below(8) {
        change(tape, &mut text, words);
    }
    text
}

/// The text with up to eight of its numbers made others that files may hold: small ones, and large ones up to 2^40.
pub(crate) fn renumbered(tape: &mut Tape, text: &str) -> String {
    const LARGE: [u64; 8] = [1000, 4095, 65_536, 1 << 20, 1 << 31, 1 << 32, (1 << 40) - 1, 1 << 40];
    let mut text = text.to_owned();
    for _ in 0..1 + tape.below(8) {
        let at = place(tape, &text);
        let number = if tape.one_in(3) { LARGE[tape.index(LARGE.len())] } else { tape.below(20) };
        replace(&mut text, at, |c| c.is_ascii_digit(), &number.to_string());
    }
    text
}

fn change(tape: &mut Tape, text: &mut String, words: &[&str]) {
    let at = place(tape, text);
    match tape.below(6) {
        0 => {
            let end = after(text, at, 1 + tape.index(40));
            text.replace_range(at..end, "");
        }
        1 => {
            let part = part(tape, words);
            text.insert_str(at, &part);
        }
        2 => {
            let end = after(text, at, 1 + tape.index(400));
            let copied = text[at..end].to_owned();
            let to = place(tape, text);
            text.insert_str(to, &copied);
        }
        3 => {
            let number = number(tape);
            replace(text, at, |c| c.is_ascii_digit(), &number);
        }
        4 => {
            let part = part(tape, words);
            replace(text, at, |c| c.is_alphanumeric() || c == '_', &part);
        }
        // A word of the text in the place of another.
        _ => {
            let from = place(tape, text);
            let is_word = |c: char| c.is_alphanumeric() || "_%#@.".contains(c);
            let word: String = text[from..].chars().skip_while(|c| !is_word(*c)).take_while(|c| is_word(*c)).collect();
            replace(text, at, is_word, &word);
        }
    }
}

/// A place between two characters.
fn place(tape: &mut Tape, text: &str) -> usize {
    let at = tape.index(text.len() + 1);
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The place N bytes later, or the next one between two characters.
fn after(text: &str, at: usize, bytes: usize) -> usize {
    (at + bytes..text.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(text.len())
}

/// Puts `with` in the place of the next run of characters that are so.
fn replace(text: &mut String, at: usize, so: impl Fn(char) -> bool, with: &str) {
    let Some(start) = text[at..].find(&so).map(|start| at + start) else { return };
    let end = text[start..].find(|c| !so(c)).map_or(text.len(), |length| start + length);
    text.replace_range(start..end, with);
}

fn part(tape: &mut Tape, words: &[&str]) -> String {
    match tape.below(8) {
        0 => number(tape),
        1 => char::from_u32(tape.below(0x11_0000) as u32).unwrap_or('\u{fffd}').into(),
        2 => ["\0", "\n", "\r\n", "\t", "\"", "\\", "\\\"", "é", "\u{202e}", "//"][tape.index(10)].into(),
        _ => tape.pick(words).copied().unwrap_or_default().into(),
    }
}

/// Numbers at which something may give way.
fn number(tape: &mut Tape) -> String {
    const EDGES: [&str; 16] = [
        "0",
        "1",
        "-1",
        "2147483647",
        "2147483648",
        "4294967296",
        "1099511627776",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "1e400",
        "-0.0",
        "0.1",
        "nan",
    ];
    match tape.below(3) {
        0 => EDGES[tape.index(EDGES.len())].into(),
        1 => tape.below(300).to_string(),
        _ => tape.between(i64::MIN, i64::MAX).to_string(),
    }
}
