//! `twill fit`.

use super::{AnnotationArguments, WidthArgument};
use crate::annotate::AnnotationFormat;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use twill_driver::SiblingOptions;
use twill_driver::options::{CompileOptions, LimitOptions, LoweringOptions, ModelVariant};

/// Whether kernels fit.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all fit, 1 error, 2 one does not fit (proved), 3 one is not known",
    after_long_help = "Exit codes: 0 all fit, 1 error, 2 one does not fit (proved), 3 it is not known of one. A kernel fits if twill compile generates one for which Triton's compiler has room (docs/explain.md)."
)]
pub(crate) struct FitArguments {
    /// TTIR of kernels (.ttir), or folders of them; all have the same options.
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lowering: LoweringOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) model: ModelVariant,
    #[command(flatten)]
    pub(crate) siblings: SiblingOptions,
    #[command(flatten)]
    pub(crate) code: CompileOptions,
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = FitFormat::Text)]
    pub(crate) format: FitFormat,
    /// With --format json: report the milliseconds that each kernel took.
    #[arg(help_heading = "Output", long)]
    pub(crate) timings: bool,
    /// Show the needs of kernels that fit, too.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) annotations: AnnotationArguments,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitFormat {
    /// A line each, and more on those that do not fit.
    Text,
    /// A JSON object each on a line of its own, with an error in its place where there is one.
    Json,
    /// Annotations at lines of the Python source, for code scanning and editors (SARIF 2.1.0).
    Sarif,
    /// The same as workflow commands of GitHub Actions.
    Github,
}

impl FitFormat {
    /// The format of annotations, if they are asked for.
    pub(crate) fn annotations(self) -> Option<AnnotationFormat> {
        match self {
            FitFormat::Text | FitFormat::Json => None,
            FitFormat::Sarif => Some(AnnotationFormat::Sarif),
            FitFormat::Github => Some(AnnotationFormat::Github),
        }
    }
}
