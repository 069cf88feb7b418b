//! What a trace is made of.

use super::WidthArgument;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Compare what a traced kernel recorded with its schedule.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The folder is written by twill compile --emit cuda --trace, and the buffer on the GPU by bench/gpu/trace.py (docs/trace.md). Exit codes: 0 compared, 1 error."
)]
pub(crate) struct TraceArguments {
    /// The traced kernel's folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// What the kernel recorded, in one launch or several [default: trace.bin in the folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) buffer: Option<PathBuf>,
    /// Write the comparison as JSON to a file, besides what is printed; trace.json in the folder is what reports read.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What is printed.
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
