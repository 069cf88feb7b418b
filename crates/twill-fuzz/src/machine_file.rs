//! Target: machine files.

use crate::change::changed;
use crate::tape::Tape;
use twill_machine::{Element, ElementwiseClass, Machine, TileWork, builtin_names, builtin_text, check as read};

const FILE: &str = "fuzz.toml";

const WORDS: [&str; 24] = [
    "[",
    "]",
    "{",
    "}",
    "=",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "inf",
    "-inf",
    "nan",
    "true",
    "1979-05-27",
    "[a]",
    "[[a]]",
    "a.b",
    "extends = \"h100\"\n",
    "measured = ",
    "source = \"a\"",
    "datasheet = ",
    "capacity",
    "unit",
    "registers",
];

/// Reads what the bytes make of a machine's file; one that is whole is written and read again, and asked for costs.
///
/// # Panics
/// When the text that is written says something else.
pub fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let names: Vec<&str> = builtin_names().collect();
    let text = match (tape.below(8), tape.pick(&names).and_then(|name| builtin_text(name))) {
        (0, _) | (_, None) => String::from_utf8_lossy(tape.rest()).into_owned(),
        // A user's file: a few lines over an existing machine.
        (1, Some(text)) => {
            let lines: Vec<&str> = text.lines().collect();
            let first = tape.index(lines.len());
            let some = lines[first..].iter().take(1 + tape.index(12)).copied().collect::<Vec<_>>().join("\n");
            changed(&mut tape, &format!("extends = \"h100\"\nname = \"mine\"\n{some}\n"), &WORDS)
        }
        (_, Some(text)) => changed(&mut tape, text, &WORDS),
    };
    // A file may extend any file that its user can read; random ones must not read from this machine.
    if text.contains("extends") && !text.contains("extends = \"h100\"") {
        return;
    }
    match read(&text, FILE) {
        Ok(machine) => whole(&machine),
        Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|error| !error.to_string().is_empty())),
    }
}

fn whole(machine: &Machine) {
    let written = machine.to_toml();
    match read(&written, FILE) {
        Ok(again) => {
            assert_eq!(again.to_toml(), written);
            assert_eq!(again.resources(), machine.resources(), "{written}");
        }
        Err(errors) => assert!(errors.is_empty(), "{errors:?}: {written}"),
    }
    let _ = machine.resources().check();
    for element in [Element::F16, Element::F8] {
        for rows in [1, 64, 128, 1 << 40] {
            let _ = machine.cost(&TileWork::Mma { rows, columns: 128, depth: 128, element });
        }
        let class = ElementwiseClass::Fma;
        let _ = machine.cost(&TileWork::Elementwise { class, elements: 1 << 40, element_bits: 64 });
    }
    let _ = machine.handoff(machine.register_words(1 << 40, 32));
}
