//! No text makes the parser panic, overflow the stack, or take long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use twill_triton::mlir::{NESTING_LIMIT, ParseError, parse};

/// The texts of real kernels, in both forms.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = ["tests/mlir", "../../examples", "../../examples/fixtures"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ttir"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn too_deep(text: &str) -> bool {
    matches!(parse(text, "deep.ttir"), Err(ParseError::NestingTooDeep { .. }))
}

#[test]
fn a_kernel_that_is_cut_short_is_never_read() {
    for text in corpus() {
        let text = text.trim_end();
        // All cuts of a text take long; these are spread over it, at every place in a line.
        for cut in (0..text.len()).step_by(97).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(parse(&text[..cut], "cut.ttir").is_err(), "{}", &text[..cut]);
        }
    }
}

#[test]
fn nesting_has_a_limit_in_everything_that_nests() {
    const DEPTH: usize = 100_000;
    assert!(too_deep(&"module {".repeat(DEPTH)));
    assert!(too_deep(&"\"a\"() ({".repeat(DEPTH)));
    assert!(too_deep(&format!("tt.func @f(%a: {}", "!tt.ptr<".repeat(DEPTH))));
    assert!(too_deep(&format!("tt.func @f(%a: {}", "(".repeat(DEPTH))));
    assert!(too_deep(&format!("module attributes {{a = {}", "[".repeat(DEPTH))));
    assert!(too_deep(&format!("module attributes {}", "{a = ".repeat(DEPTH))));
    assert!(too_deep(&format!("module {{}} loc({}", "callsite(".repeat(DEPTH))));
    assert!(too_deep(&format!("module {{}} loc({}", "loc(".repeat(DEPTH))));
    let ifs = "scf.if %c {".repeat(DEPTH);
    assert!(too_deep(&format!("tt.func @f(%c: i1) {{ {ifs}")));
    // Brackets of text that is kept as it is are only counted.
    assert!(matches!(parse(&format!("#a = #b<{}", "<".repeat(DEPTH)), "x"), Err(ParseError::UnexpectedEnd { .. })));
}

#[test]
fn nesting_within_the_limit_is_read() {
    let depth = NESTING_LIMIT / 2 - 4;
    let text = format!("tt.func @f(%c: i1) {{\n{}{}tt.return }}", "scf.if %c {\n".repeat(depth), "}\n".repeat(depth));
    let module = parse(&text, "deep.ttir").unwrap();
    assert!(module.to_string().len() > depth);
}

#[test]
fn chains_of_aliases_are_not_followed_for_ever() {
    let mut text = "module {} loc(#l0)\n".to_owned();
    for index in 0..100_000 {
        writeln!(text, "#l{index} = loc(#l{})", index + 1).unwrap();
    }
    assert!(too_deep(&text));
    // Every alias doubles the calls; they are not kept without limit.
    let mut text = "#l0 = loc(\"a\":1:1)\n".to_owned();
    for index in 0..200 {
        writeln!(text, "#l{} = loc(callsite(#l{index} at #l{index}))", index + 1).unwrap();
    }
    text.push_str("module {} loc(#l200)\n");
    let module = parse(&text, "x").unwrap();
    assert_eq!(module.operation(module.top()).location.as_ref().unwrap().called_from.len(), 32);
}

#[test]
fn large_texts_take_time_in_proportion() {
    let mut text = "tt.func @f(%a: f32) {\n".to_owned();
    for index in 0..100_000 {
        write!(text, "%v{index} = arith.addf %a, %a : f32 ").unwrap();
        if index % 1000 == 0 {
            text.push('\n');
        }
    }
    text.push_str("tt.return\n}\n");
    let start = Instant::now();
    parse(&text, "large.ttir").unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// One change of a text.
#[derive(Debug, Clone)]
enum Change {
    Delete {
        at: usize,
        length: usize,
    },
    Insert {
        at: usize,
        what: String,
    },
    /// Copies a part to another place.
    Copy {
        from: usize,
        length: usize,
        to: usize,
    },
}

fn boundary(text: &str, at: usize) -> usize {
    let at = at % (text.len() + 1);
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl Change {
    fn apply(&self, text: &mut String) {
        match self {
            Self::Delete { at, length } => {
                let from = boundary(text, *at);
                let to = boundary(text, (from + length).min(text.len()));
                text.replace_range(from..to.max(from), "");
            }
            Self::Insert { at, what } => {
                let at = boundary(text, *at);
                text.insert_str(at, what);
            }
            Self::Copy { from, length, to } => {
                let from = boundary(text, *from);
                let end = boundary(text, (from + length).min(text.len()));
                let piece = text[from..end.max(from)].to_owned();
                let to = boundary(text, *to);
                text.insert_str(to, &piece);
            }
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "%",
            "#",
            "!",
            "^",
            "@",
            "{",
            "}",
            "(",
            ")",
            "<",
            ">",
            "[",
            "]",
            ",",
            ":",
            "=",
            "->",
            "-",
            "\"",
            "\\",
            "\n",
            "loc(",
            "#loc",
            "%0",
            "%0#1",
            ":2",
            "0x",
            "99999999999999999999",
            "?x",
            "dense<",
            "array<i32",
            "tensor<",
            "!tt.ptr<",
            "scf.for ",
            "scf.yield ",
            "\"tt.reduce\"(",
            "({",
            "})",
            "^bb0:",
            "cf.br ^bb0",
            "module {",
            "tt.func @f(",
            "\u{0}",
            "é",
            "//",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop_oneof![
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Change::Delete { at, length }),
        (any::<usize>(), piece).prop_map(|(at, what)| Change::Insert { at, what }),
        (any::<usize>(), 1..400_usize, any::<usize>()).prop_map(|(from, length, to)| Change::Copy { from, length, to }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_kernels_never_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let corpus = corpus();
        let mut text = which.get(&corpus).clone();
        for change in &changes {
            change.apply(&mut text);
        }
        match parse(&text, "changed.ttir") {
            Ok(module) => prop_assert!(!module.to_string().is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn random_texts_never_panic(text in "[\\PC\n]{0,200}") {
        let _ = parse(&text, "random.ttir");
        let _ = parse(&format!("module {{ {text}"), "random.ttir");
    }
}
