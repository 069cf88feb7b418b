//! What a trace is made of.

use super::WidthArgument;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Compare what a traced kernel recorded with its schedule.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit codes: 0 compared, 1 error",
    after_long_help = "twill compile --emit cuda --trace writes the folder, and bench/gpu/trace.py writes the buffer on the GPU (docs/trace.md). Exit codes: 0 compared, 1 error."
)]
pub(crate) struct TraceArguments {
    /// Folder of the traced kernel.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// What the kernel recorded [default: DIR/trace.bin].
    ///
    /// The buffer holds one launch or several.
    #[arg(long, value_name = "FILE")]
    pub(crate) buffer: Option<PathBuf>,
    /// Write the comparison as JSON to a file, too.
    ///
    /// twill report reads trace.json in the folder of the kernel.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format of what is printed.
    #[arg(long, value_enum, default_value_t = TraceFormat::Text)]
    pub(crate) format: TraceFormat,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// A table.
    Text,
    /// As twill schema trace says.
    Json,
}
