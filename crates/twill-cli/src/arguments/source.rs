//! What is looked at, and how a kernel becomes loop graphs.

use clap::{Args, ValueEnum};
use twill_triton::CtaCoarsening;

/// How the loops of a kernel are scheduled together.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several loops")]
pub(crate) struct SiblingArguments {
    /// How often each loop runs, to weigh them [default: as the TTIR says, or all alike].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) trip_counts: Vec<u64>,
    /// Schedule each loop of a kernel by itself instead of all with common warp groups.
    #[arg(long)]
    pub(crate) separate_loops: bool,
}

/// What is looked at, and how it is brought into shape.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArguments {
    /// A kernel's TTIR (.ttir), a loop graph (.json), - for either from standard input, or the name of a built-in graph.
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) lowering: LoweringArguments,
}

/// How a kernel becomes loop graphs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kernel and machine")]
pub(crate) struct LoweringArguments {
    /// Machine: a built-in name or a path to a machine file [default: the graph's own; h200 for TTIR,
    /// which is measured and also what to take on an H100].
    #[arg(long, short)]
    pub(crate) machine: Option<String>,
    /// Kernel function, where the TTIR holds several.
    #[arg(long)]
    pub(crate) kernel: Option<String>,
    /// Which of the kernel's innermost loops, counted from 0 [default: all, with common warp groups].
    #[arg(long = "loop", value_name = "INDEX")]
    pub(crate) loop_index: Option<usize>,
    /// Sub-tiles along the kernel's M dimension [default: one an instruction's rows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sub_tiles: Option<u32>,
    /// Consecutive programs of the grid that share a CTA and what they load alike, instead of sub-tiles. Never chosen by
    /// itself; three of 64 rows are worth 10 % on an H200 in attention forward with head dimension 64.
    #[arg(long, value_name = "N", conflicts_with = "sub_tiles", value_parser = clap::value_parser!(u32).range(1..=i64::from(CtaCoarsening::MOST)))]
    pub(crate) cta_coarsening: Option<u32>,
    /// Axis of the grid along which these programs follow each other.
    #[arg(long, value_enum, value_name = "AXIS", requires = "cta_coarsening", default_value_t = AxisArgument::X)]
    pub(crate) coarsening_axis: AxisArgument,
    /// Elements of the loop's tiles along it, instead of the source's step: 176 keys for attention in steps of 128, say. The
    /// first iteration masks what the others do; what the loop computes must not depend on how it is cut. Never chosen by itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) retile_loop: Option<u64>,
    /// Keep multiply and add apart instead of contracting them as ptxas does.
    #[arg(long)]
    pub(crate) no_contract: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxisArgument {
    /// tl.program_id(0).
    X,
    /// tl.program_id(1).
    Y,
    /// tl.program_id(2).
    Z,
}
