//! What is looked at, and how a kernel becomes loop graphs.

use super::EXPERIMENTAL;
use clap::{Args, ValueEnum};
use twill_triton::CtaCoarsening;

/// How the loops of a kernel are scheduled together.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several loops")]
pub(crate) struct SiblingArguments {
    /// Trip count of each loop, as its weight [default: as the TTIR says, or equal].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) trip_counts: Vec<u64>,
    /// Schedule each loop by itself, without common warp groups.
    #[arg(long)]
    pub(crate) separate_loops: bool,
}

/// What is looked at, and how it is brought into shape.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArguments {
    /// TTIR, loop graph (.json), name of a built-in graph, or - (standard input).
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) lowering: LoweringArguments,
}

/// How a kernel becomes loop graphs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kernel and machine")]
pub(crate) struct LoweringArguments {
    /// Built-in machine, or machine file.
    ///
    /// The default is the graph's own machine, and h200 for TTIR, whose numbers are measured. Take it for an H100, too.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Kernel function, if the TTIR has several.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Innermost loop, counted from 0 [default: all].
    ///
    /// All loops are scheduled with common warp groups, unless --separate-loops is given.
    #[arg(long = "loop", value_name = "INDEX")]
    pub(crate) loop_index: Option<usize>,
    /// Sub-tiles along M [default: by MMA instruction].
    ///
    /// By default each sub-tile has the rows of one instruction.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sub_tiles: Option<u32>,
    /// CTA coarsening: consecutive programs of the grid that share a CTA.
    ///
    /// They share what they load alike, and each takes the place of a sub-tile. It is used only on request.
    #[arg(help_heading = EXPERIMENTAL, long, value_name = "N", conflicts_with = "sub_tiles", value_parser = clap::value_parser!(u32).range(1..=i64::from(CtaCoarsening::MOST)))]
    pub(crate) cta_coarsening: Option<u32>,
    /// Axis of the grid along which --cta-coarsening takes programs.
    #[arg(help_heading = EXPERIMENTAL, long, value_enum, value_name = "AXIS", requires = "cta_coarsening", default_value_t = AxisArgument::X)]
    pub(crate) coarsening_axis: AxisArgument,
    /// Loop re-tiling: elements of the loop's tiles along the loop.
    ///
    /// It replaces the step of the source: for example, 176 keys for attention that is written in steps of 128. The first
    /// iteration masks the elements of the remainder. The result of the loop must not depend on how the loop is cut. It is
    /// used only on request.
    #[arg(help_heading = EXPERIMENTAL, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) retile_loop: Option<u64>,
    /// Do not contract multiply and add into FMA, as ptxas does.
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
