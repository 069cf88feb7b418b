//! The `twill` command: arguments, files, progress, exit codes.
//!
//! [`run`] is the command itself. The Python package asks the same things by the same options, which are declared here once:
//! [`Requested`] reads them for an input that is no file.

mod arguments;
mod requested;
mod budgets;
mod cache;
mod certificate;
mod check;
mod compile;
mod error;
mod explain;
mod files;
mod fit;
mod front;
mod gaus;
mod graphs;
mod help;
mod input;
mod keywords;
mod kind;
mod lower;
mod machine;
mod machine_difference;
mod pictures;
mod pipeline;
mod progress;
mod python;
mod report;
mod schedule;
mod schema;
mod siblings;
mod smtlib;
mod top;
mod trace;

use arguments::{Arguments, Command};
use clap::FromArgMatches;
use std::ffi::OsString;
use twill_graph::showable;

pub use requested::{Requested, GausAnswer, check_gaus, gaus};
pub use keywords::{Keyword, OptionError, Takes, keywords};

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    /// Proven optimal, or the command did what it was requested.
    Done = 0,
    /// An error.
    Error = 1,
    /// Proven infeasible.
    Infeasible = 2,
    /// Stopped by a budget; the best known was printed with its bound.
    Stopped = 3,
}

/// Runs the command with these words, the first being its name; gives back the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    budgets::begin();
    progress::begin();
    files::begin();
    let words: Vec<OsString> = words.into_iter().collect();
    let parsed = help::command(&words).try_get_matches_from(&words).and_then(|found| Arguments::from_arg_matches(&found));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap would exit with 2, which here means "infeasible".
            let _ = error.print();
            return if error.use_stderr() { Exit::Error } else { Exit::Done } as u8;
        }
    };
    let result = match &arguments.command {
        Command::Schedule(a) => schedule::run(a),
        Command::Compile(a) => compile::run(a),
        Command::Fit(a) => fit::run(a),
        Command::Trace(a) => trace::run(a),
        Command::Gaus(a) => gaus::run(a),
        Command::Explain(a) => explain::run(a),
        Command::Report(a) => report::run(a),
        Command::Lower(a) => lower::run(a),
        Command::Check(a) => check::run(a),
        Command::Graphs(a) => graphs::run(a),
        Command::Machine(a) => machine::run(a),
        Command::Sweep(a) => python::run(python::Module::Sweep, &a.words),
        Command::Cache(a) => cache::run(a),
        Command::Schema(a) => schema::run(a),
    };
    let exit = result.unwrap_or_else(|error| {
        eprintln!("error: {}", printable(&error.to_string()));
        Exit::Error
    });
    exit as u8
}

/// An error as it is printed: it quotes what it complains of, which may be long, and a terminal obeys control characters.
fn printable(error: &str) -> String {
    const LONGEST: usize = 2000;
    let line = |line: &str| match line.char_indices().nth(LONGEST) {
        None => showable(line),
        Some((end, _)) => showable(&line[..end]) + "…",
    };
    error.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn errors_move_no_cursor_and_have_an_end() {
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}"), "a_[2J\nb_");
        assert!(printable(&"x".repeat(10_000_000)).len() < 2100);
    }
}
