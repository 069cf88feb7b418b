//! The `twill` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(twill_cli::run(std::env::args_os()))
}
