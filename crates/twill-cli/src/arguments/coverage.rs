//! `twill coverage`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What becomes of a set of kernels.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the table is whole, 1 an input cannot be read, 3 interrupted",
    after_long_help = "Exit codes: 0 the table is whole, 1 an input cannot be read, 3 interrupted. A kernel is realised if its code follows its schedule: loads are asynchronous in rings, and MMAs where their types allow it. It is in order if one group executes one operation after another (docs/coverage.md)."
)]
pub(crate) struct CoverageArguments {
    /// TTIR of kernels (.ttir), or folders of them.
    #[arg(required = true, value_name = "KERNELS")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Built-in machine, or machine file [default: h200].
    #[arg(long, short, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Seconds for all searches for the schedule, and again for each language.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    pub(crate) time_limit: u32,
    /// Neither read nor write the cache, as TWILL_CACHE=off.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Python to assemble with.
    ///
    /// It needs Triton 3.6 to 3.9, and NVRTC for CUDA. Without it machine code is not looked at.
    #[arg(help_heading = "Assembling", long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = CoverageFormat::Text)]
    pub(crate) format: CoverageFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoverageFormat {
    /// Some lines each, then how many of each kind, and why.
    Text,
    /// A table in Markdown, then how many of each kind, and why.
    Markdown,
    /// A JSON object each, on a line of its own.
    Json,
}
