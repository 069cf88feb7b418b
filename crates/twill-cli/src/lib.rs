//! The `twill` command: arguments, files, progress, exit codes.
//!
//! [`run`] is the command. Its options are those of [`twill_driver::options`], which the Python package has as well. Here are
//! their place on the command line, help, files, progress, and exit codes; each command is a module, and this file calls it.

mod annotate;
mod arguments;
mod budgets;
mod cache;
mod certificate;
mod check;
mod check_perf;
mod collected;
mod compile;
mod coverage;
mod error;
mod exit;
mod explain;
mod files;
mod fit;
mod front;
mod gaus;
mod graphs;
mod help;
mod lint;
mod loop_text;
mod lower;
mod machine;
mod machine_difference;
mod manual;
mod pictures;
mod pipeline;
mod playground;
mod progress;
mod python;
mod python_options;
mod python_source;
mod report;
mod request;
mod schedule;
mod schema;
mod siblings;
mod smtlib;
mod top;
mod trace;

use arguments::{Arguments, Command};
use clap::FromArgMatches;
use exit::Exit;
use std::ffi::OsString;
use twill_graph::showable;

/// Runs the command with these words, the first being its name; gives back the exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    budgets::begin();
    progress::begin();
    files::begin();
    let words: Vec<OsString> = words.into_iter().collect();
    let parsed =
        help::command(&words).try_get_matches_from(&words).and_then(|found| Arguments::from_arg_matches(&found));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap would exit with 2, which here means "infeasible".
            let _ = error.print();
            let is_lint = words.get(1).is_some_and(|word| word == "lint");
            let refused = if is_lint { Exit::BAD_INPUT } else { Exit::Error };
            return if error.use_stderr() { refused } else { Exit::Done } as u8;
        }
    };
    let result = match &arguments.command {
        Command::Schedule(a) => schedule::run(a),
        Command::Compile(a) => compile::run(a),
        Command::Fit(a) => fit::run(a),
        Command::Coverage(a) => coverage::run(a),
        Command::Trace(a) => trace::run(a),
        Command::Lint(a) => lint::run(a),
        Command::CheckPerf(a) => check_perf::run(a),
        Command::Gaus(a) => gaus::run(a),
        Command::Explain(a) => explain::run(a),
        Command::Report(a) => report::run(a),
        Command::Playground(a) => playground::run(a),
        Command::Lower(a) => lower::run(a),
        Command::Check(a) => check::run(a),
        Command::Graphs(a) => graphs::run(a),
        Command::Machine(a) => machine::run(a),
        Command::Collect(_) => python::run(python::Module::Collect, words.get(2..).unwrap_or_default()),
        Command::Sweep(a) => python::run(python::Module::Sweep, &a.words),
        Command::Cache(a) => cache::run(a),
        Command::Schema(a) => schema::run(a),
        Command::Completions(a) => manual::completions(a),
        Command::Man(a) => manual::pages(a),
    };
    let exit = result.unwrap_or_else(|error| {
        eprintln!("error: {}", printable(&error.to_string()));
        Exit::Error
    });
    exit as u8
}

/// A message as it is printed: it quotes what it speaks of, which may be long, and a terminal obeys control characters.
pub(crate) fn printable(error: &str) -> String {
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
