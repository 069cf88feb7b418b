//! What is generated, and how.

use super::{SearchArguments, SiblingArguments, Switch, TopArguments};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Generate the kernel that runs a schedule.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit codes: 0 a kernel was written, 1 error, 2 there is no schedule (proved), 3 none was found in time, or stopped. The folder is written whole or not at all.",
    mut_arg("input", |input| input.help("A kernel's TTIR (.ttir, or any file that holds one), or - for standard input"))
)]
pub(crate) struct CompileArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingArguments,
    /// The folder to write the kernel, its launcher, its schedule and its test to.
    #[arg(help_heading = "Output", long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) top: TopArguments,
    #[command(flatten)]
    pub(crate) generator: GeneratorArguments,
    /// What to write the kernel in: Gluon, or CUDA C++ that needs no Python where it runs.
    #[arg(help_heading = "Code generation", long, value_enum, value_name = "LANGUAGE", default_value_t = LanguageArgument::Gluon)]
    pub(crate) emit: LanguageArgument,
    /// CTAs of a cluster: two with neighbouring tiles along the grid's first axis load once what both read, each one half for
    /// both (TMA multicast). The axis must then have an even number of CTAs. With --emit cuda, for Hopper.
    #[arg(help_heading = "Code generation", long, value_name = "CTAS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub(crate) cluster: u32,
    /// Let persistent CTAs wait for each other, for 20000 cycles at most, ahead of each tile's loop, so that what several of them
    /// load passes the L2 cache once; for long loops over what is common to many programs. With --emit cuda, for Hopper.
    #[arg(help_heading = "Code generation", long)]
    pub(crate) wave_sync: bool,
    /// Let the kernel record when its operations begin and end, for the last so many iterations of its first tile, in a buffer it
    /// takes besides [16 where no number is given]; twill trace reads that. With --emit cuda.
    #[arg(help_heading = "Code generation", long, value_name = "ITERATIONS", num_args = 0..=1, default_missing_value = "16", conflicts_with = "top", value_parser = clap::value_parser!(u32).range(3..=4096))]
    pub(crate) trace: Option<u32>,
    /// Of --trace: each operation between marks of its own, which keeps them apart from each other, or all that threads do
    /// between two waits, or iterations alone.
    #[arg(help_heading = "Code generation", long, value_enum, value_name = "MARKS", requires = "trace", default_value_t = TraceDetailArgument::Operations)]
    pub(crate) trace_detail: TraceDetailArgument,
    /// Do not assemble the kernel; otherwise its registers and spills are reported, and where barriers are is written down.
    #[arg(help_heading = "Assembling", long)]
    pub(crate) no_assemble: bool,
    /// A Python with Triton 3.6, or NVRTC for CUDA, to assemble the kernel with [default: python3, if it has that].
    #[arg(help_heading = "Assembling", long, value_name = "PATH", conflicts_with = "no_assemble")]
    pub(crate) python: Option<PathBuf>,
    /// Most schedules to try: where registers spill or MMAs run one by one, the next may use fewer registers.
    #[arg(help_heading = "Assembling", long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) attempts: u32,
    /// Assemble the kernels of so many schedules of the least interval, and write the one whose machine code takes the fewest
    /// cycles by simulation. For Hopper [default: 4 where the first one's machine code takes 1.6 times its interval, otherwise 1].
    #[arg(help_heading = "Assembling", long, value_name = "N", conflicts_with_all = ["top", "no_assemble"], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) candidates: Option<u32>,
}

/// What the generator is asked for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Code generation")]
pub(crate) struct GeneratorArguments {
    /// Schedule tiles persistently on at most as many CTAs as there are multiprocessors, loading the next tile under the last one's end
    /// [default: on, where it fits shared memory and loops are as long for all programs, or as their place in the grid says].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) persistent: Option<Switch>,
    /// The order of tiles [default: lpt where the length of a loop depends on the program, group-m for products of matrices,
    /// otherwise linear].
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) tile_order: Option<OrderArgument>,
    /// Width of the GROUP_M swizzle: programs along the first axis [default: 16], or along the second with lpt [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) group_m: Option<u32>,
    /// Least slots of every ring of loads; the schedule may ask for more [default: 3 or what fits].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) ring_depth: Option<u32>,
    /// Least slots of the handoff buffers between warp groups [default: 2 or what fits].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) handoff_depth: Option<u32>,
    /// Prefer a schedule in which all sub-tiles start their MMAs in one order, together what can start together, if
    /// there is one of the least interval [default: on, where groups keep their MMAs' results in registers].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) mma_batches: Option<Switch>,
    /// Hold left operands that are the same in all iterations in registers instead of shared memory [default: on, where
    /// the schedule leaves room, in Gluon; off in CUDA, where it pays for short loops alone].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) operands_in_registers: Option<Switch>,
    /// Let groups alternate on the tensor core in the order of the schedule, by named barriers (ping-pong) [default: on, where
    /// the MMAs of a group form one batch; where trip counts differ between programs, in CUDA alone and where the tensor core
    /// is all that bounds them].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) pingpong: Option<Switch>,
    /// Which schedule to generate code for: the optimal one, or a poorer one to compare it with.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = WhichSchedule::Optimal)]
    pub(crate) schedule: WhichSchedule,
}

/// What kernels are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageArgument {
    /// Triton's explicit language.
    Gluon,
    /// CUDA C++.
    Cuda,
}

/// How closely the time is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceDetailArgument {
    /// Each operation.
    Operations,
    /// All that threads do between two waits.
    Segments,
    /// When each group begins an iteration: nearest to the kernel that is not traced.
    Iterations,
}

/// Which schedule code is generated for. The poorer ones give each sub-tile a warp group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichSchedule {
    /// The best, with its proof.
    Optimal,
    /// Order and stages of the modulo schedule, which knows nothing of warps.
    SwpOnly,
    /// One iteration after another, one operation after another; rings of one slot.
    NoSwp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArgument {
    /// As a grid is: the first axis fastest.
    Linear,
    /// Longest processing time first: the first axis from its end.
    Lpt,
    /// GROUP_M swizzle: in groups along the first axis, as Triton's tutorials do.
    GroupM,
}
