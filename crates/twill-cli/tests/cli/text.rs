//! Text on narrow terminals: no line too wide, operations that can be told apart, labels that do not run together, and one form
//! of numbers.

use crate::common::{root, stderr};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

const WIDTHS: [usize; 5] = [40, 60, 80, 100, 160];

/// Kernels whose schedules are found in a moment, with their machines.
const SCHEDULED: [(&str, &str); 5] = [
    ("examples/attention_forward.ttir", "h100"),
    ("examples/gemm_tma.ttir", "h200"),
    ("examples/swiglu.ttir", "h100"),
    ("examples/attention_forward_m256.ttir", "b200"),
    ("attention-backward-hopper", ""),
];

/// What a command prints where a terminal has this many columns. What was proved for one width is read from the cache for the next.
fn printed(words: &[&str], width: usize, cache: &Path) -> String {
    let mut command = crate::common::command();
    command.args(words).args(["--width", &width.to_string()]).env("TWILL_CACHE", cache).current_dir(root());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.code() != Some(1) && !text.is_empty(), "{words:?}: {}", stderr(&output));
    text
}

/// The same, after a look at its lines and numbers.
fn fitting(words: &[&str], width: usize, cache: &Path) -> String {
    let text = printed(words, width, cache);
    for line in text.lines() {
        assert!(line.width() <= width, "{words:?}: {} > {width}: {line}", line.width());
        assert_eq!(line, line.trim_end(), "{words:?}");
    }
    if !words.contains(&"show") {
        one_form_of_numbers(words, &text);
    }
    text
}

/// Plain digits below 10,000, thousands apart by commas above. Digits within words are names.
fn one_form_of_numbers(words: &[&str], text: &str) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ',' | '\'' | '/');
    for token in text.split(|c| !is_part(c)) {
        let number = token.trim_end_matches([',', '.', '\'']);
        let whole = number.split('.').next().unwrap_or_default();
        if number.is_empty()
            || !number.starts_with(|c: char| c.is_ascii_digit())
            || number.contains(char::is_alphabetic)
        {
            continue;
        }
        assert!(!number.contains('\''), "{words:?}: {token}");
        let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
        let value: u64 = digits.parse().unwrap_or(0);
        assert_eq!(whole.contains(','), value >= 10_000, "{words:?}: {token}\n{text}");
    }
}

fn kernels() -> Vec<String> {
    let files = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = files.map(|name| format!("examples/{}", name.to_str().unwrap()));
    let mut kernels: Vec<String> = names.filter(|name| name.ends_with(".ttir")).collect();
    kernels.sort();
    assert!(kernels.len() > 10);
    kernels
}

#[test]
fn what_needs_no_search_keeps_to_the_width_for_every_example() {
    let cache = tempfile::tempdir().unwrap();
    let machines = ["a100", "h100", "h200", "b200"];
    for width in [40, 80, 100] {
        for kernel in kernels() {
            fitting(&["lower", &kernel], width, cache.path());
        }
        for machine in machines {
            fitting(&["machine", "show", machine], width, cache.path());
            for other in machines {
                fitting(&["machine", "diff", machine, other], width, cache.path());
            }
        }
        for words in [&["machine", "list"][..], &["graphs"], &["cache", "info"]] {
            fitting(words, width, cache.path());
        }
        fitting(&["gaus", "--engine", "exact", "crates/twill-cli/tests/hatschet/window.graphml"], width, cache.path());
        fitting(&["gaus", "toy-attention", "--engine", "list"], width, cache.path());
    }
}

#[test]
fn fit_keeps_to_the_width_for_every_example() {
    let cache = tempfile::tempdir().unwrap();
    for machine in ["h200", "b200"] {
        for kernel in kernels().iter().filter(|name| machine == "h200" || !name.contains("pointers")) {
            fitting(&["fit", kernel, "--machine", machine, "-v"], 80, cache.path());
        }
    }
}

#[test]
fn schedules_keep_to_the_width_and_tell_operations_apart() {
    let cache = tempfile::tempdir().unwrap();
    for (input, machine) in SCHEDULED {
        let mut words = vec!["schedule", input];
        if !machine.is_empty() {
            words.extend(["--machine", machine]);
        }
        let json = printed(&[&words[..], &["--format", "json"]].concat(), 80, cache.path());
        let schedule: Value = serde_json::from_str(&json).unwrap();
        let operations = schedule["problem"]["graph"]["operations"].as_array().unwrap();
        let names: Vec<&str> = operations.iter().map(|op| op["name"].as_str().unwrap()).collect();
        for width in WIDTHS {
            let text = fitting(&words, width, cache.path());
            labels_name_one_operation_each(&text, &names);
            if width >= 60 {
                rows_name_every_operation(&text, &names);
            }
            fitting(&[&words[..], &["--format", "pseudocode"]].concat(), width.max(80), cache.path());
        }
    }
}

#[test]
fn several_loops_and_other_questions_keep_to_the_width() {
    let cache = tempfile::tempdir().unwrap();
    let forward = "examples/attention_forward.ttir";
    for width in [60, 80] {
        fitting(&["schedule", "examples/attention_forward_causal.ttir", "--machine", "h200"], width, cache.path());
        for more in [&["--swp-only"][..], &["--top", "2"], &["--normalise", "300"]] {
            fitting(&[&["schedule", forward, "--machine", "h100"], more].concat(), width, cache.path());
        }
    }
}

/// A name, of which `…` may stand for a part.
fn is_meant(label: &str, name: &str) -> bool {
    match label.split_once('…') {
        Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
        None => label == name,
    }
}

/// Each label begins at an edge, and is the name of one operation: were two to run together, it would be that of none.
fn labels_name_one_operation_each(text: &str, names: &[&str]) {
    const EDGES: [char; 7] = ['▌', '▎', '▊', '^', '<', '·', '|'];
    let mut labels = 0;
    let rows = text.lines().filter(|line| line.ends_with('|') && line.matches('|').count() >= 2);
    for row in rows {
        let cells = row[row.find('|').unwrap()..].trim_matches('|');
        let is_label = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '…' | '\'' | ':' | '-');
        for label in cells.split(|c: char| !is_label(c)).filter(|label| !label.is_empty()) {
            let before = cells[..cells.find(label).unwrap()].chars().next_back();
            assert!(before.is_none_or(|c| EDGES.contains(&c)), "{label} in {row}");
            let label = label.split_once(':').map_or(label, |(_, name)| name);
            let label = label.trim_end_matches('\'');
            let meant = names.iter().filter(|name| is_meant(label, name)).count();
            assert_eq!(meant, 1, "{label} in {row}");
            labels += 1;
        }
    }
    assert!(labels > 0, "{text}");
}

/// The table of operations has a row for each name, in full.
fn rows_name_every_operation(text: &str, names: &[&str]) {
    let table = text.split("\nOperations\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = table.lines().skip_while(|line| !line.trim_start().starts_with("operation")).skip(1);
    let found: Vec<&str> = rows
        .filter(|row| !row.trim_start().starts_with("Not shown"))
        .filter_map(|row| row.split_whitespace().next())
        .filter(|name| names.contains(name))
        .collect();
    let apart: BTreeSet<&str> = found.iter().copied().collect();
    assert_eq!((found.len(), apart.len()), (names.len(), names.len()), "{table}");
}

#[test]
fn explanations_keep_to_the_width() {
    let cache = tempfile::tempdir().unwrap();
    let words = ["explain", "attention-forward-blackwell", "--compute-groups", "2", "--max-interval", "2064"];
    let text = fitting(&words, 80, cache.path());
    assert!(text.contains("What if") && text.contains("Why not"), "{text}");
}

#[test]
fn too_narrow_is_taken_as_the_least() {
    let cache = tempfile::tempdir().unwrap();
    let narrow = printed(&["machine", "list"], 1, cache.path());
    assert_eq!(narrow, printed(&["machine", "list"], 40, cache.path()));
}
