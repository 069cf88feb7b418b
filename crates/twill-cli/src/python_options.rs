//! Options of commands whose words Python reads, for shells and manual pages.
//!
//! `python tests/python/test_python_options.py` writes the file from Python's parsers, and a test compares them.

use clap::{Arg, ArgAction, Command, ValueHint};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct PythonOption {
    /// As they are written, with dashes.
    flags: Vec<String>,
    /// The name of the value, if there is one.
    value: Option<String>,
    help: String,
}

/// The whole command with those options.
pub(crate) fn added(command: Command) -> Command {
    let mut known: BTreeMap<String, Vec<PythonOption>> =
        serde_json::from_str(include_str!("python_options.json")).unwrap_or_default();
    let mut of = |name: &str| known.remove(name).unwrap_or_default().into_iter().map(arg).collect::<Vec<Arg>>();
    let (calibrate, collect, sweep) = (of("calibrate"), of("collect"), of("sweep"));
    command
        .mut_subcommand("machine", |machine| machine.mut_subcommand("calibrate", |command| command.args(calibrate)))
        .mut_subcommand("collect", |command| command.args(collect))
        .mut_subcommand("sweep", |command| command.args(sweep))
}

fn arg(option: PythonOption) -> Arg {
    let long = option.flags.iter().find_map(|flag| flag.strip_prefix("--")).unwrap_or_default().to_owned();
    let short = option.flags.iter().find(|flag| !flag.starts_with("--")).and_then(|flag| flag.chars().nth(1));
    let arg = Arg::new(long.clone()).long(long).short(short).help(option.help);
    match option.value {
        Some(value) => {
            // Completions of zsh have colons between their parts.
            let value = value.split(':').next().unwrap_or_default().to_owned();
            let is_path = value.starts_with("FILE") || value.starts_with("DIR");
            let hint = if is_path { ValueHint::AnyPath } else { ValueHint::Other };
            arg.action(ArgAction::Append).value_name(value).value_hint(hint)
        }
        None => arg.action(ArgAction::SetTrue),
    }
}
