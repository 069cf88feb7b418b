//! `twill check-perf`.

use super::{AnnotationArguments, WidthArgument};
use crate::annotate::AnnotationFormat;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use twill_driver::options::{CompileOptions, LimitOptions, LoweringOptions, ModelVariant};
use twill_driver::{Options, SiblingOptions, options::SearchLimits};

/// Compare kernels with a baseline.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is worse, 1 error, 2 a kernel got worse, 3 interrupted",
    after_long_help = "Exit codes: 0 nothing is worse, 1 error, 2 a kernel got worse, 3 interrupted. Neither a GPU nor Python is needed: what is compared is proved or laid out, so that it is the same on every machine (docs/ci.md)."
)]
pub(crate) struct CheckPerfArguments {
    /// Baseline (.json).
    pub(crate) baseline: PathBuf,
    /// TTIR of kernels (.ttir), or folders of them [default: those of the baseline].
    #[arg(value_name = "KERNELS")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Write the baseline; other kernels in it stay.
    #[arg(long)]
    pub(crate) write: bool,
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
    /// Stop each search after UNITS of work, about a million a second; reproducible.
    #[arg(help_heading = "Search", long, value_name = "UNITS", default_value_t = DEFAULT_WORK)]
    pub(crate) work_limit: u64,
    /// Neither read nor write the cache, as TWILL_CACHE=off.
    #[arg(help_heading = "Search", long)]
    pub(crate) no_cache: bool,
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = CheckPerfFormat::Text)]
    pub(crate) format: CheckPerfFormat,
    #[command(flatten)]
    pub(crate) annotations: AnnotationArguments,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckPerfFormat {
    /// A line each, and more on those that changed.
    Text,
    /// One JSON object.
    Json,
    /// Annotations of what got worse, at lines of the Python source (SARIF 2.1.0).
    Sarif,
    /// The same as workflow commands of GitHub Actions.
    Github,
}

impl CheckPerfFormat {
    /// The format of annotations, if they are asked for.
    pub(crate) fn annotations(self) -> Option<AnnotationFormat> {
        match self {
            CheckPerfFormat::Text | CheckPerfFormat::Json => None,
            CheckPerfFormat::Sarif => Some(AnnotationFormat::Sarif),
            CheckPerfFormat::Github => Some(AnnotationFormat::Github),
        }
    }
}

/// Work of each search, if nothing is said.
const DEFAULT_WORK: u64 = 60_000_000;

impl CheckPerfArguments {
    /// The limit of work if none is given.
    pub(crate) fn default_work() -> serde_json::Value {
        DEFAULT_WORK.into()
    }

    /// The options that these arguments are. Time would make an answer depend on the machine, so work alone ends a search.
    pub(crate) fn options(&self) -> Options {
        Options {
            lowering: self.lowering.clone(),
            limits: self.limits.clone(),
            model: self.model.clone(),
            loops: self.siblings.clone(),
            search: SearchLimits {
                work_limit: Some(self.work_limit),
                time_limit: Some(f64::INFINITY),
                ..SearchLimits::default()
            },
            code: self.code.clone(),
        }
    }
}
