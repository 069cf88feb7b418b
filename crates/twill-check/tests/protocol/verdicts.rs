//! The messages about small mistakes, word for word: every fault, and the tables of some.

use crate::systems;
use std::fmt::Write as _;
use twill_check::protocol::{Limits, ProtocolError, mutants, verify};

/// The table keeps one of this many mistakes that are found; of some systems, more.
const TABLES: usize = 12;
const MORE: usize = 3;

#[test]
fn what_is_said_of_mistakes() {
    let mut said = String::new();
    for (name, system) in systems::all().into_iter().filter(|(name, _)| *name != "gemm with 3 slots") {
        let mut found = 0;
        let tables = if matches!(name, "ping-pong" | "tensor memory") { MORE } else { TABLES };
        for mutant in mutants(&system) {
            // Without the search there is a way all the same, another one.
            let states = if found % 2 == 0 { Limits::default().states } else { 0 };
            let verdict = match verify(&mutant.system, &Limits { states, ..Limits::default() }) {
                Ok(_) => "holds".to_owned(),
                Err(ProtocolError::Violated(way)) => {
                    found += 1;
                    if found % tables == 0 { format!("\n{way}") } else { way.fault }
                }
                Err(other) => other.to_string(),
            };
            let _ = writeln!(said, "{name}, {}: {verdict}", mutant.name);
        }
    }
    insta::assert_snapshot!("verdicts", said);
}
