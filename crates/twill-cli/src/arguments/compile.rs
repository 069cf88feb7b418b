//! What is generated, and how.

use crate::error::Error;
use super::{SearchArguments, SiblingArguments, Switch, TopArguments};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Heading of options that may change or go, which the short help leaves out.
pub(crate) const EXPERIMENTAL: &str = "Experimental code generation";

/// Generate the kernel of a schedule.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit codes: 0 written, 1 error, 2 no schedule (proved), 3 none found in time",
    after_long_help = "Exit codes: 0 a kernel was written, 1 error, 2 there is no schedule (proved), 3 no schedule was found in time, or the search was stopped. The folder is written whole or not at all.",
    mut_arg("input", |input| input.help("TTIR of a kernel (.ttir), or - for standard input"))
)]
pub(crate) struct CompileArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingArguments,
    /// Folder for kernel, launcher, schedule, and test.
    #[arg(help_heading = "Output", long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) top: TopArguments,
    #[command(flatten)]
    pub(crate) generator: GeneratorArguments,
    /// Language: Gluon or CUDA C++.
    ///
    /// A kernel in CUDA C++ runs without Python.
    #[arg(help_heading = "Code generation", long, value_enum, value_name = "LANGUAGE", default_value_t = LanguageArgument::Gluon)]
    pub(crate) emit: LanguageArgument,
    /// CTAs of a cluster, which share loads by TMA multicast.
    ///
    /// Two CTAs with neighbouring tiles along the first axis of the grid load what both read once: each CTA loads one half for
    /// both. The axis must have an even number of CTAs. It needs --emit cuda, and Hopper.
    #[arg(help_heading = EXPERIMENTAL, long, value_name = "CTAS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub(crate) cluster: u32,
    /// Put a soft grid barrier before the loop of each tile.
    ///
    /// Persistent CTAs wait for each other, for at most 20000 cycles, so that what several of them load passes the L2 cache
    /// once. It is for long loops over data that many programs read. It needs --emit cuda, and Hopper.
    #[arg(help_heading = EXPERIMENTAL, long)]
    pub(crate) wave_sync: bool,
    /// Record the times of operations on the GPU, for twill trace.
    ///
    /// The kernel records when operations begin and end in the last ITERATIONS iterations of its first tile (16 if no number is
    /// given), in a buffer that it takes as a further argument. It needs --emit cuda.
    #[arg(help_heading = "Code generation", long, value_name = "ITERATIONS", num_args = 0..=1, default_missing_value = "16", conflicts_with = "top", value_parser = clap::value_parser!(u32).range(3..=4096))]
    pub(crate) trace: Option<u32>,
    /// Detail of --trace: timestamps around operations, segments, or iterations.
    ///
    /// Timestamps around each operation keep operations apart from each other, and take time. Segments are what threads do
    /// between two waits.
    #[arg(help_heading = EXPERIMENTAL, long, value_enum, value_name = "DETAIL", requires = "trace", default_value_t = TraceDetailArgument::Operations)]
    pub(crate) trace_detail: TraceDetailArgument,
    /// Do not assemble the kernel.
    ///
    /// An assembled kernel has a report on its registers and spills, and the places of its barriers.
    #[arg(help_heading = "Assembling", long)]
    pub(crate) no_assemble: bool,
    /// Python to assemble with [default: python3].
    ///
    /// It needs Triton 3.6, or NVRTC for CUDA. Without either, the default does not assemble.
    #[arg(help_heading = "Assembling", long, value_name = "PATH", conflicts_with = "no_assemble")]
    pub(crate) python: Option<PathBuf>,
    /// Maximum number of schedules to try.
    ///
    /// If registers spill, or MMAs run one by one, the next schedule may use fewer registers.
    #[arg(help_heading = "Assembling", long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) attempts: u32,
    /// Assemble the kernels of N schedules, and write the fastest by simulation.
    ///
    /// All have the least interval; the machine code is simulated. It is for Hopper. The default is 4 if the machine code of the
    /// first schedule takes more than 1.6 times its interval, and 1 otherwise.
    #[arg(help_heading = "Assembling", long, value_name = "N", conflicts_with_all = ["top", "no_assemble"], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) candidates: Option<u32>,
    /// Print the warp program after a pass of code generation, or after all.
    #[arg(help_heading = "Code generation", long, value_name = "PASS|all")]
    print_after: Option<String>,
}

impl CompileArguments {
    /// The pass after which to print the warp program, if any.
    ///
    /// # Errors
    /// Code generation has no list of passes yet.
    pub(crate) fn print_after(&self) -> Result<Option<&str>, Error> {
        match self.print_after.as_deref() {
            None => Ok(None),
            Some(pass) => Err(Error::Arguments(format!("--print-after {pass} needs the list of passes, which is not there yet"))),
        }
    }
}

/// What the generator is asked for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Code generation")]
pub(crate) struct GeneratorArguments {
    /// Use the persistent tile scheduler.
    ///
    /// At most as many CTAs run as there are multiprocessors, and each loads its next tile during the epilogue of the last one.
    /// The default is on if it fits shared memory, and all programs have loops of one length, or of a length that follows from
    /// their place in the grid.
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) persistent: Option<Switch>,
    /// Order of tiles: linear, lpt, or group-m.
    ///
    /// The default is lpt if the length of a loop depends on the program, group-m for matrix products, and linear otherwise.
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) tile_order: Option<OrderArgument>,
    /// Width of the GROUP_M swizzle, in programs.
    ///
    /// Programs count along the first axis [default: 16], or along the second with lpt [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) group_m: Option<u32>,
    /// Minimum slots of each ring of loads.
    ///
    /// The default is 3, or what fits. The schedule may ask for more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) ring_depth: Option<u32>,
    /// Minimum slots of handoff buffers between groups [default: 2, or what fits].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) handoff_depth: Option<u32>,
    /// Prefer a schedule with MMA batches.
    ///
    /// All sub-tiles issue their MMAs in one order, and MMAs that can be issued back to back form a batch. The interval stays
    /// the least. The default is on if groups keep the results of their MMAs in registers.
    #[arg(help_heading = EXPERIMENTAL, long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) mma_batches: Option<Switch>,
    /// Keep loop-invariant left operands in registers.
    ///
    /// They are in shared memory otherwise. The default is on in Gluon, if the schedule leaves room, and off in CUDA.
    #[arg(help_heading = EXPERIMENTAL, long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) operands_in_registers: Option<Switch>,
    /// Ping-pong: groups alternate on the tensor core.
    ///
    /// Named barriers keep the order of the schedule. The default is on if the MMAs of a group form one batch. If trip counts
    /// differ between programs, it is on only in CUDA, and only if the tensor core is all that bounds the loops.
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub(crate) pingpong: Option<Switch>,
    /// Schedule to generate code for: the optimal one, or a worse one to compare with.
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
