//! `twill lint`.

use super::AnnotationArguments;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Check machine code of Hopper for hazards.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is found, 1 findings, 2 an input cannot be checked",
    after_long_help = "Exit codes: 0 nothing is found, 1 findings, 2 an input cannot be checked. Rules, and what they do not see: docs/lint.md."
)]
pub(crate) struct LintArguments {
    /// Cubins, listings of nvdisasm or cuobjdump, or folders of them.
    ///
    /// Of a folder, every .cubin and .sass at any depth is checked, except for those of other architectures.
    #[arg(required = true, value_name = "CODE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Disassembler for cubins [default: that of PATH, then Triton's].
    #[arg(long, value_name = "PATH")]
    pub(crate) nvdisasm: Option<PathBuf>,
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = LintFormat::Text)]
    pub(crate) format: LintFormat,
    #[command(flatten)]
    pub(crate) annotations: AnnotationArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// Findings, and what was read off.
    Text,
    /// One JSON object.
    Json,
    /// Annotations at lines of the source, for code scanning and editors (SARIF 2.1.0).
    Sarif,
    /// The same as workflow commands of GitHub Actions.
    Github,
}
