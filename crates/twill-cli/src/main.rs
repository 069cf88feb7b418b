//! The `twill` command: arguments, files, progress, exit codes.

mod arguments;
mod check;
mod error;
mod files;
mod input;
mod kernels;
mod machine;
mod progress;
mod schedule;

use arguments::{Arguments, Command};
use clap::Parser;
use error::Error;
use std::process::ExitCode;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    /// Proven optimal, or the command did what it was asked.
    Done = 0,
    /// An error.
    Error = 1,
    /// Proven infeasible.
    Infeasible = 2,
    /// Stopped by a budget; the best known was printed with its bound.
    Stopped = 3,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Schedule(a) => schedule::run(a),
        Command::Check(a) => check::run(a),
        Command::Kernels(a) => kernels::run(a),
        Command::Machine(a) => machine::run(a),
        Command::Schema(a) => kernels::schema(a),
    };
    let exit = result.unwrap_or_else(|error| {
        report(&error);
        Exit::Error
    });
    ExitCode::from(exit as u8)
}

fn report(error: &Error) {
    // A reader that closed the pipe wants no more, not even this.
    if error.is_closed_pipe() {
        return;
    }
    eprintln!("error: {error}");
}
