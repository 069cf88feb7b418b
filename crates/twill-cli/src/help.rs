//! The help of the command: short with `-h` and `--help`, everything with `--help-all`.
//!
//! Short help fits 24 lines of 80 columns, so that each command names here the options that it shows there.

use crate::arguments::Arguments;
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::ffi::OsString;

/// Columns of short help.
const COLUMNS: usize = 80;
/// Asks for all of it.
const ALL: &str = "help-all";

/// What a command without a list here shows: all it has.
const SHORT: [(&str, &[&str]); 8] = [
    ("lower", &["machine", "kernel", "loop_index", "sub_tiles", "format", "width"]),
    (
        "schedule",
        &[
            "machine",
            "sub_tiles",
            "compute_groups",
            "time_limit",
            "top",
            "swp_only",
            "certificate",
            "format",
            "output",
            "quiet",
        ],
    ),
    (
        "compile",
        &[
            "output",
            "emit",
            "machine",
            "sub_tiles",
            "compute_groups",
            "persistent",
            "tile_order",
            "pingpong",
            "time_limit",
            "python",
            "quiet",
        ],
    ),
    ("explain", &["machine", "sub_tiles", "compute_groups", "what_if", "time_limit", "format", "output", "quiet"]),
    ("check-perf", &["baseline", "write", "machine", "sub_tiles", "compute_groups", "ring_depth", "emit", "format"]),
    ("fit", &["machine", "sub_tiles", "compute_groups", "ring_depth", "format", "verbose"]),
    (
        "report",
        &["machine", "sub_tiles", "compute_groups", "no_explain", "time_limit", "format", "output", "open", "quiet"],
    ),
    (
        "gaus",
        &[
            "random",
            "engine",
            "objective",
            "latency",
            "ii",
            "smallest_ii",
            "resource_cap",
            "machine",
            "time_limit",
            "format",
            "output",
        ],
    ),
];

/// Commands that the short list leaves out.
const RARE: [&str; 5] = ["cache", "graphs", "schema", "completions", "man"];

/// What shows in the help of every command.
const ALWAYS: [&str; 3] = ["input", "inputs", "help"];

/// The command, which prints short help, unless its words ask for all.
pub(crate) fn command(words: &[OsString]) -> Command {
    let is_all = words.iter().any(|word| word == "--help-all");
    of(Arguments::command(), is_all)
}

/// The command with all it has, for manual pages and for shells.
pub(crate) fn whole() -> Command {
    of(Arguments::command(), true)
}

fn of(command: Command, is_all: bool) -> Command {
    let passes_words_on = command.is_disable_help_flag_set();
    let name = command.get_name().to_owned();
    let listed = SHORT.iter().find(|(own, _)| *own == name).map(|(_, shown)| *shown);
    let mut command = command.mut_subcommands(|own| of(own, is_all)).disable_help_subcommand(true);
    if !is_all {
        command = command.term_width(COLUMNS).mut_args(|arg| {
            let id = arg.get_id().as_str();
            let shown = ALWAYS.contains(&id) || listed.is_none_or(|listed| listed.contains(&id));
            // One list is shorter than several with headings.
            let takes_values = arg.get_action().takes_values();
            arg.help_heading(None::<&str>).hide(!shown).hide_possible_values(takes_values)
        });
    }
    if passes_words_on {
        return command;
    }
    let is_short_top = name == "twill" && !is_all;
    if is_short_top {
        // All commands and this line, and that of --help, are more than a screen; these are looked for by few.
        command = command.mut_subcommands(|own| if RARE.contains(&own.get_name()) { own.hide(true) } else { own });
        let version = Arg::new("version").long("version").short('V').action(ArgAction::Version).hide(true);
        command = command.disable_version_flag(true).arg(version);
    }
    let action = if is_all { ArgAction::HelpLong } else { ArgAction::HelpShort };
    let help = Arg::new("help")
        .long("help")
        .short('h')
        .action(ArgAction::HelpShort)
        .help("Print help")
        .hide(is_short_top)
        .help_heading(None::<&str>);
    let all = Arg::new(ALL).long(ALL).action(action).help("Print help on all options").help_heading(None::<&str>);
    command.disable_help_flag(true).arg(help.display_order(1000)).arg(all.display_order(1001))
}

#[cfg(test)]
mod tests {
    use super::{ALL, of};
    use crate::arguments::Arguments;
    use clap::{Command, CommandFactory};

    /// Every command with its subcommands, by the words that call it; those that Python reads the words of are left out.
    fn all(command: &Command, before: &str, found: &mut Vec<(String, Command)>) {
        let name = format!("{before}{}", command.get_name());
        for own in command.get_subcommands().filter(|own| !["sweep", "collect", "calibrate"].contains(&own.get_name()))
        {
            all(own, &format!("{name} "), found);
        }
        found.push((name, command.clone()));
    }

    fn built(is_all: bool) -> Vec<(String, Command)> {
        let mut command = of(Arguments::command(), is_all);
        command.build();
        let mut found = Vec::new();
        all(&command, "", &mut found);
        found
    }

    #[test]
    fn short_help_fits_a_screen() {
        let commands = built(false);
        assert!(commands.len() > 14, "{}", commands.len());
        for (name, mut command) in commands {
            let help = command.render_help().to_string();
            let widest = help.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let lines = help.lines().count();
            assert!(lines <= 24 && widest <= 80, "{name}: {lines} lines, {widest} columns\n{help}");
            assert!(!help.contains("Experimental") && !help.contains("--liveness"), "{name}");
        }
    }

    #[test]
    fn the_other_help_lists_every_option() {
        for (name, mut command) in built(true) {
            let help = command.render_long_help().to_string();
            let options = command.get_arguments().filter_map(|arg| arg.get_long());
            let missing: Vec<&str> = options.filter(|long| !help.contains(&format!("--{long}"))).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
            assert!(help.contains(ALL), "{name}");
        }
    }

    #[test]
    fn what_may_change_stands_apart() {
        let command = of(Arguments::command(), true);
        let compile = command.find_subcommand("compile").unwrap();
        let experimental = |id: &str| {
            let arg = compile.get_arguments().find(|arg| arg.get_id() == id);
            arg.and_then(|arg| arg.get_help_heading()) == Some(twill_driver::options::EXPERIMENTAL)
        };
        for id in [
            "cluster",
            "wave_sync",
            "cta_coarsening",
            "coarsening_axis",
            "retile_loop",
            "operands_in_registers",
            "mma_batches",
            "trace_detail",
        ] {
            assert!(experimental(id), "{id}");
        }
        assert!(!experimental("persistent"));
    }
}
