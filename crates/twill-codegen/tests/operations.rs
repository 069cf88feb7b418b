//! The table of operations in docs/operations.md is that of the code.
//!
//! `TWILL_WRITE=1 cargo test -p twill-codegen --test operations` writes it.

use std::fs;
use std::path::Path;
use twill_codegen::ir::Elementwise;
use twill_triton::supported::{NAMES, Rule, rule};
use twill_triton::tile::{Recipe, Transfer};

const BEGIN: &str = "<!-- table: from the code -->\n";
const END: &str = "<!-- end of the table -->\n";

/// What becomes of an operation inside a loop.
fn words(rule: Rule) -> String {
    let through = |transfer| match transfer {
        Transfer::Tma => "by TMA",
        Transfer::Pointer => "through pointers",
    };
    match rule {
        Rule::Elementwise(shown, _) => format!("elementwise, `{shown}`"),
        Rule::Conversion => "conversion".into(),
        Rule::Dot => "MMA".into(),
        Rule::Mapped => "the operations of its function; loops in it are refused".into(),
        Rule::ScaledDot => "conversions to 16 bits, and MMA".into(),
        Rule::Reduction => "reduction".into(),
        Rule::Load(transfer) => format!("load {}", through(transfer)),
        Rule::Store(transfer) => format!("store {}", through(transfer)),
        Rule::Atomic(transfer) => format!("atomic {}", through(transfer)),
        Rule::View => "view, at no cost".into(),
        Rule::Constant => "known before the loop".into(),
        Rule::Addressing => "address, at no cost".into(),
        Rule::Hint => "nothing at run time".into(),
        Rule::Default => "default".into(),
        Rule::Branch => "rewritten, or refused".into(),
        Rule::Refused => "refused".into(),
    }
}

fn cost(rule: Rule) -> String {
    let Rule::Elementwise(_, Recipe { fma, alu, special }) = rule else { return String::new() };
    let parts = [(fma, "FMA"), (alu, "ALU"), (special, "XU")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n} {unit}")).collect();
    parts.join(", ")
}

fn cuda(name: &str, rule: Rule) -> &'static str {
    match rule {
        Rule::Elementwise(..) | Rule::Conversion => {
            if Elementwise::is_known(name) {
                "yes"
            } else {
                "no"
            }
        }
        Rule::Default => "no",
        _ => "",
    }
}

fn table() -> String {
    let mut text = String::from("| operation | in the loop | instructions an element | in CUDA |\n|---|---|---|---|\n");
    for name in NAMES {
        let rule = rule(name);
        let row = format!("| `{name}` | {} | {} | {} |\n", words(rule), cost(rule), cuda(name, rule));
        text += &row.replace("|  |", "| |").replace("|  |", "| |");
    }
    text
}

#[test]
fn the_page_has_the_table_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("TWILL_WRITE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}\n{}\n{END}{after}", table())).unwrap();
        return;
    }
    assert!(
        written.trim() == table().trim(),
        "docs/operations.md has another table: TWILL_WRITE=1 cargo test -p twill-codegen --test operations"
    );
}
