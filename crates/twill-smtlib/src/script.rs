//! SMT-LIB text under construction.

use crate::names::inert;
use crate::term::Term;
use std::fmt::Display;

/// The script so far.
#[derive(Debug, Default)]
pub(crate) struct Script {
    text: String,
}

impl Script {
    /// Lines that a solver skips.
    pub(crate) fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.text.push_str(format!("; {}", inert_comment(line)).trim_end());
            self.text.push('\n');
        }
    }

    /// A command as it is.
    pub(crate) fn command(&mut self, command: &str) {
        self.text.push_str(command);
        self.text.push('\n');
    }

    /// A new Boolean unknown.
    pub(crate) fn declare(&mut self, name: String) -> Term {
        self.command(&format!("(declare-const {name} Bool)"));
        Term::text(name)
    }

    /// A name for a term.
    pub(crate) fn define(&mut self, name: String, term: &Term) -> Term {
        match term {
            Term::Known(_) => term.clone(),
            Term::Text(text) => {
                self.command(&format!("(define-fun {name} () Bool {text})"));
                Term::text(name)
            }
        }
    }

    /// All of `terms` hold: one constraint, by name, so that unsatisfiable cores speak of constraints.
    /// Names begin with the constraint's family and are unique.
    pub(crate) fn assert(&mut self, name: impl Display, terms: impl IntoIterator<Item = Term>) {
        let mut kept = Vec::new();
        for term in terms {
            match term {
                Term::Known(true) => {}
                Term::Known(false) => {
                    kept = vec!["false".into()];
                    break;
                }
                Term::Text(text) => kept.push(text),
            }
        }
        let name = inert(&name.to_string());
        match kept.as_slice() {
            [] => {}
            [one] => self.command(&format!("(assert (! {one} :named |{name}|))")),
            _ => self.command(&format!("(assert (! (and\n  {})\n  :named |{name}|))", kept.join("\n  "))),
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Comments may quote names inside ordinary punctuation, so only what could end them is escaped.
fn inert_comment(line: &str) -> String {
    line.chars()
        .map(|c| if c.is_ascii() && !c.is_ascii_control() { c.to_string() } else { inert(&c.to_string()) })
        .collect()
}
