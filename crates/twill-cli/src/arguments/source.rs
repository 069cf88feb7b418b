//! The input, and how it becomes loop graphs.

use clap::Args;
use twill_driver::options::LoweringOptions;

/// The input, and how it becomes loop graphs.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArguments {
    /// TTIR, loop graph (.json), name of a built-in graph, or - (standard input).
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) lowering: LoweringOptions,
}
