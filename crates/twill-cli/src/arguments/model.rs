//! Model variants, and the limits of a schedule.

use clap::{Args, ValueEnum};

/// Limits of a schedule, and the model variant.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Maximum number of compute groups.
    ///
    /// The default is the machine's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) compute_groups: Option<u32>,
    /// Maximum registers of a compute group's thread [default: the machine's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) registers_per_thread: Option<u32>,
    /// Schedule N iterations as one; I is then for N iterations.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) unroll: u32,
    /// Normalise costs to integers with a sum of at most U; 0 keeps cycles.
    ///
    /// The paper uses 300.
    #[arg(long, value_name = "U", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) normalise: u32,
    #[command(flatten)]
    pub(crate) model: ModelArguments,
}

/// Model variants (docs/model.md).
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArguments {
    /// Model variant: Twill's, or the paper's (arXiv 2512.18134).
    #[arg(long, value_enum, default_value_t = Model::Twill)]
    pub(crate) model: Model,
    /// Synchronous operations of one group do not overlap.
    #[arg(long, value_enum, value_name = "on|off")]
    pub(crate) exclusive_issue: Option<Switch>,
    /// A register value that another group reads takes registers there, too.
    #[arg(long, value_enum, value_name = "on|off")]
    pub(crate) consumer_registers: Option<Switch>,
    /// Another warp group may read register values.
    #[arg(long, value_enum, value_name = "on|off")]
    pub(crate) cross_group_registers: Option<Switch>,
    /// How long an operation keeps its group from waiting.
    #[arg(long, value_enum)]
    pub(crate) concurrency_window: Option<Window>,
    /// How live values are counted.
    #[arg(long, value_enum)]
    pub(crate) liveness: Option<LivenessArgument>,
    /// Numbers of stages that the search tries at each interval.
    #[arg(long, value_enum)]
    pub(crate) stage_window: Option<StageWindowArgument>,
    /// How compute operations are assigned to warp groups.
    ///
    /// The default is by-sub-tile for kernels, and free with tensor memory, with --model paper, and for loop graphs.
    #[arg(long, value_enum)]
    pub(crate) warp_assignment: Option<WarpAssignmentArgument>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    /// Twill's model.
    Twill,
    /// The paper's model (arXiv 2512.18134).
    Paper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Window {
    /// One cycle for asynchronous operations.
    Issue,
    /// All cycles of every operation.
    Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LivenessArgument {
    /// All that is live in the steady state.
    Folded,
    /// As the paper counts.
    Paper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageWindowArgument {
    /// All.
    Complete,
    /// As many as the modulo schedule without warps has.
    Paper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WarpAssignmentArgument {
    /// The scheduler chooses.
    Free,
    /// Fixed, as compilers do: each sub-tile on a compute group of its own, in turn.
    BySubTile,
}
