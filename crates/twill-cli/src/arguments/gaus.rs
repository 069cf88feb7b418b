//! Arguments of `twill gaus`.

use super::{PageArguments, by_ending};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use twill_driver::options::GausOptions;

/// Schedule a large graph.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 found (exact: optimal), 1 error, 2 infeasible, 3 not found in time",
    after_long_help = "--engine exact finds the least initiation interval of a loop, with its proof. It takes loops whose operations each use one unit of one resource, as HatScheT's do, and no option on objective or start.\n\nExit codes: 0 a schedule was found, whose bound says how good it is (with --engine exact, it is proved optimal), 1 error, 2 dependences rule out every schedule, 3 none was found in time (with --engine exact, it is the best known)."
)]
pub(crate) struct GausArguments {
    /// Graph file, TTIR, or name of a built-in graph.
    ///
    /// Formats: .json (twill-dataflow, or a loop graph), .graphml (HatScheT), .dot (EXPRESS), .blif (EPFL), .gml (GS-Schedule),
    /// .mlir (CIRCT's ssp).
    #[arg(required_unless_present = "random")]
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: GausOptions,
    /// Output format [default: by --output, or text].
    ///
    /// --output says it by its ending: .json and .pftrace.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<GausFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Do not report progress.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) quiet: bool,
}

impl GausArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> GausFormat {
        const ENDINGS: [(&str, GausFormat); 2] = [("json", GausFormat::Json), ("pftrace", GausFormat::Perfetto)];
        self.format.or_else(|| by_ending(self.page.output.as_deref(), &ENDINGS)).unwrap_or(GausFormat::Text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GausFormat {
    /// What was found, its bound, and what it uses.
    Text,
    /// The schedule with its graph, for `twill check`.
    Json,
    /// Figures alone, as JSON on one line.
    Summary,
    /// A trace for Perfetto, of three iterations if the graph is a loop; binary, for a file that ends in .pftrace.
    Perfetto,
}
