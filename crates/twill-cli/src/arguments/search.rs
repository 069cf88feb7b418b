//! What to search, and how far.

use super::SourceArguments;
use clap::Args;
use twill_driver::options::{LimitOptions, ModelVariant, SearchLimits};
use twill_driver::{Options, SiblingOptions};

/// What to search, and how far.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArguments {
    #[command(flatten)]
    pub(crate) source: SourceArguments,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) model: ModelVariant,
    #[command(flatten)]
    pub(crate) search: SearchLimits,
    /// Do not report progress.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) quiet: bool,
}

impl SearchArguments {
    /// The options that these arguments are, with what is said of sibling loops.
    pub(crate) fn options(&self, loops: &SiblingOptions) -> Options {
        Options {
            lowering: self.source.lowering.clone(),
            limits: self.limits.clone(),
            model: self.model.clone(),
            loops: loops.clone(),
            search: self.search.clone(),
            ..Options::default()
        }
    }
}
