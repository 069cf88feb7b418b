//! `twill machine` and `twill sweep`.

use super::WidthArgument;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    #[command(subcommand)]
    pub(crate) command: MachineCommand,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// List the built-in machines.
    List,
    /// Show every number of a machine, with its source.
    Show {
        /// Built-in name, or machine file.
        name: String,
    },
    /// Report all errors of a machine file.
    Check {
        /// Machine file.
        file: PathBuf,
    },
    /// Show the numbers in which two machines differ.
    Diff {
        /// Built-in name, or machine file.
        old: String,
        /// The other machine.
        new: String,
        /// Output format.
        #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
        format: DiffFormat,
    },
    /// Measure this GPU, and write its machine file.
    ///
    /// It needs the Python package.
    #[command(disable_help_flag = true)]
    Calibrate(CalibrateArguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// A line for each number.
    Text,
    /// An array of objects.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// Arguments of python -m twill_gpu.calibration; TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Arguments of python -m twill_gpu.sweeping; TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

/// Its words are taken as they are: clap would drop the `--` before the program.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// Arguments of python -m twill_gpu.collecting; TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    _words: Vec<OsString>,
}
