//! All defects of a file in one source: which one a program has is said when it begins (R. H. Untch, A. J. Offutt, M. J. Harrold,
//! "Mutation analysis using mutant schemata", ISSTA 1993). A build for each of them would take hours.
//!
//! A function's body becomes a `match` of the defect's number, with the body of each defect as an arm, and the one that was there
//! as the last. Defects outside functions (constants) cannot be chosen so.

use super::listed::{BODY, Mutant, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The environment variable with the number of a program's defect.
pub const VARIABLE: &str = "TWILL_DEFECT";

/// What the arms ask: it stands at the end of a crate's `lib.rs`.
pub const NUMBER: &str = "
#[allow(clippy::all, missing_docs)]
pub(crate) fn twill_defect() -> u32 {
    static NUMBER: std::sync::LazyLock<u32> =
        std::sync::LazyLock::new(|| std::env::var(\"TWILL_DEFECT\").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
    *NUMBER
}
";

/// A file with defects.
#[derive(Debug, Default, PartialEq)]
pub struct Source {
    pub text: String,
    /// The lines of each defect, from 1: what does not compile there does not compile because of it.
    pub lines: Vec<(Range<usize>, u32)>,
    /// What is not in it.
    pub left: Vec<u32>,
}

/// A file with these defects of its text, by number, but for those that do not compile: they say where functions begin, too.
pub fn with_all(text: &str, mutants: &[(u32, &Mutant)], unviable: &BTreeSet<u32>) -> Source {
    let mut functions: Vec<Span> = mutants.iter().filter_map(|(_, mutant)| Some(mutant.function?.span)).collect();
    functions.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    // Functions in functions are part of these.
    let mut outermost: Vec<Span> = Vec::new();
    for span in functions {
        if outermost.last().is_none_or(|last| last.end <= span.start) {
            outermost.push(span);
        }
    }
    let bodies: BTreeMap<Span, Range<usize>> = mutants
        .iter()
        .filter(|(_, mutant)| mutant.genre == BODY)
        .filter_map(|(_, mutant)| {
            let span = mutant.function?.span;
            Some((span, body(text, span, mutant.span)?))
        })
        .collect();
    let mut source = Source::default();
    let mut written = 0;
    let mut taken = Vec::new();
    for function in outermost {
        let Some(body) = bodies.get(&function) else { continue };
        source.text += &text[written..body.start];
        source.text += " match crate::twill_defect() {\n";
        for (number, mutant) in mutants {
            let place = mutant.span.start.offset(text)..mutant.span.end.offset(text);
            let inside = body.start <= place.start && place.end <= body.end;
            if !inside || mutant.function.is_none() || unviable.contains(number) {
                continue;
            }
            let first = source.text.matches('\n').count() + 1;
            let (before, after) = (&text[body.start..place.start], &text[place.end..body.end]);
            source.text += &format!("{number} => {{{before}{} {after}}}\n", mutant.replacement);
            source.lines.push((first..source.text.matches('\n').count() + 1, *number));
            taken.push(*number);
        }
        source.text += &format!("_ => {{{}}}\n}} ", &text[body.clone()]);
        written = body.end;
    }
    source.text += &text[written..];
    let left = |number: &u32| !taken.contains(number) && !unviable.contains(number);
    source.left = mutants.iter().map(|(number, _)| *number).filter(left).collect();
    source
}

/// A file with one defect.
pub fn with_one(text: &str, mutant: &Mutant) -> String {
    let (start, end) = (mutant.span.start.offset(text), mutant.span.end.offset(text));
    format!("{}{} {}", &text[..start], mutant.replacement, &text[end..])
}

/// What is between a function's braces, where its statements are known.
fn body(text: &str, function: Span, statements: Span) -> Option<Range<usize>> {
    let (start, first) = (function.start.offset(text), statements.start.offset(text));
    let mut open = None;
    let mut at = start;
    // The last brace before the statements that is in no comment.
    for line in text[start..first].split_inclusive('\n') {
        let code = line.find("//").map_or(line, |comment| &line[..comment]);
        open = code.rfind('{').map(|brace| at + brace + 1).or(open);
        at += line.len();
    }
    let close = function.end.offset(text).checked_sub(1)?;
    open.filter(|open| *open <= close && text[close..].starts_with('}')).map(|open| open..close)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
const ROOM: u64 = 1 << 3;

/// A sum {
fn sum(a: i64, b: i64) -> i64 { // of two
    // {
    fn inner(b: i64) -> i64 {
        -b
    }
    a - inner(b)
}
";

    fn mutants() -> Vec<Mutant> {
        let one = |name: &str, genre: &str, function: &str, span: [usize; 4], replacement: &str| {
            let place = |line, column| serde_json::json!({ "line": line, "column": column });
            let function: serde_json::Value = match function {
                "sum" => serde_json::json!({ "span": { "start": place(3, 1), "end": place(10, 2) } }),
                "inner" => serde_json::json!({ "span": { "start": place(6, 5), "end": place(8, 6) } }),
                _ => serde_json::Value::Null,
            };
            let span = serde_json::json!({ "start": place(span[0], span[1]), "end": place(span[2], span[3]) });
            let of = serde_json::json!({
                "name": name, "file": "lib.rs", "function": function, "genre": genre, "span": span, "replacement": replacement
            });
            serde_json::from_value(of).unwrap()
        };
        vec![
            one("shift", "BinaryOperator", "", [1, 21, 1, 23], ">>"),
            one("sum is 0", BODY, "sum", [6, 5, 9, 17], "0"),
            one("inner is 1", BODY, "inner", [7, 9, 7, 11], "1"),
            one("no sign", "UnaryOperator", "inner", [7, 9, 7, 10], ""),
            one("minus is plus", "BinaryOperator", "sum", [9, 7, 9, 8], "+"),
        ]
    }

    #[test]
    fn each_defect_is_an_arm_of_its_function_and_what_is_outside_is_left() {
        let mutants = mutants();
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
        let source = with_all(TEXT, &numbered, &BTreeSet::new());
        assert_eq!(source.left, [1]);
        let lines: Vec<&str> = source.text.lines().collect();
        let of = |number: u32| {
            let (range, _) = source.lines.iter().find(|(_, of)| *of == number).unwrap();
            lines[range.start - 1..range.end - 1].join("\n")
        };
        assert!(source.text.starts_with("const ROOM: u64 = 1 << 3;\n\n/// A sum {\nfn sum(a: i64, b: i64) -> i64 {"));
        assert!(of(2).starts_with("2 => {") && of(2).contains("    0 \n}"), "{}", of(2));
        assert!(of(3).contains("        1 \n") && of(3).contains("a - inner(b)"), "{}", of(3));
        assert!(of(4).contains("         b\n"), "{}", of(4));
        assert!(of(5).contains("a +  inner(b)") && of(5).contains("-b"), "{}", of(5));
        assert!(source.text.ends_with("    a - inner(b)\n}\n} }\n"), "{}", source.text);
        let without = with_all(TEXT, &numbered, &[2, 4].into());
        assert_eq!(without.lines.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(without.left, [1]);
        assert_eq!(with_one(TEXT, &mutants[0]).lines().next(), Some("const ROOM: u64 = 1 >>  3;"));
    }
}
