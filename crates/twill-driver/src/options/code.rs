//! Code generation. What is `None` is chosen by rules that measurement gave (`docs/codegen.md`).

use super::choice::Choice;
use super::{choice, numbers};
use serde::{Deserialize, Serialize};
use twill_codegen::GroupShares;

/// Heading of options that may change or go, which the short help leaves out.
pub const EXPERIMENTAL: &str = "Experimental code generation";

/// Iterations that are traced where no number is given.
pub(super) const TRACED: u32 = 16;

/// Code generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Code generation"))]
pub struct CompileOptions {
    /// Language: Gluon or CUDA C++.
    ///
    /// A kernel in CUDA C++ runs without Python. The default is Gluon. twill compile writes CUDA C++ if the machine code of the
    /// kernel in Gluon takes far longer than its interval, and that of the kernel in CUDA C++ clearly less.
    #[serde(rename = "emit", with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(id = "emit", long = "emit", value_name = "LANGUAGE", value_parser = choice::choices::<Language>()))]
    pub emit: Option<Language>,
    /// Schedule to generate code for: the optimal one, or a worse one to compare with.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHICH", default_value = "optimal", value_parser = choice::choices::<Which>()))]
    pub schedule: Which,
    /// Use the persistent tile scheduler.
    ///
    /// At most as many CTAs run as there are multiprocessors, and each loads its next tile during the epilogue of the last one.
    /// The default is on if it fits shared memory, and all programs have loops of one length, or of a length that follows from
    /// their place in the grid.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub persistent: Option<bool>,
    /// Order of tiles: linear, lpt, or group-m.
    ///
    /// The default is lpt if the length of a loop depends on the program, group-m for matrix products, and linear otherwise.
    #[serde(with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ORDER", value_parser = choice::choices::<TileOrderOption>()))]
    pub tile_order: Option<TileOrderOption>,
    /// Width of the GROUP_M swizzle, in programs.
    ///
    /// Programs count along the first axis [default: 16], or along the second with lpt [default: 2].
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u32::MAX as u64 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, { u32::MAX as u64 }, u32>))]
    pub group_m: Option<u32>,
    /// Minimum slots of each ring of loads.
    ///
    /// The default is 3, or what fits. The schedule may ask for more.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 8, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 8, u32>))]
    pub ring_depth: Option<u32>,
    /// Minimum slots of handoff buffers between groups [default: 2, or what fits].
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 8, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 8, u32>))]
    pub handoff_depth: Option<u32>,
    /// Maximum CTAs on a multiprocessor at once.
    ///
    /// The default is up to 4, as many as registers suffice for in machine code, with rings of two slots or more. It is for Gluon, on
    /// Hopper.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 8, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 8, u32>))]
    pub ctas_per_sm: Option<u32>,
    /// Warps of a kernel without warp specialisation: 1, 2, 4 or 8.
    ///
    /// The default is 4, or 8 if loops carry much. A kernel that spills registers gets more. It needs --schedule multistage or
    /// in-order, and Gluon.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 8, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 8, u32>))]
    pub num_warps: Option<u32>,
    /// Stages of the loops of a kernel without warp specialisation, as Triton counts them: slots of its rings.
    ///
    /// The default is up to 4, as many as let several CTAs share a multiprocessor. It needs --schedule multistage.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 8, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 8, u32>))]
    pub num_stages: Option<u32>,
    /// Ping-pong: groups alternate on the tensor core.
    ///
    /// Named barriers keep the order of the schedule. The default is on if the MMAs of a group form one batch. If trip counts
    /// differ between programs, it is on only in CUDA, and only if the tensor core is all that bounds the loops.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub pingpong: Option<bool>,
    /// Record the times of operations on the GPU, for twill trace.
    ///
    /// The kernel records when operations begin and end in the last ITERATIONS iterations of its first tile (16 if no number is
    /// given), in a buffer that it takes as a further argument. It needs --emit cuda.
    #[serde(deserialize_with = "numbers::deserialize_traced")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ITERATIONS", num_args = 0..=1, default_missing_value = "16", value_parser = numbers::whole::<3, 4096, u32>))]
    pub trace: Option<u32>,
    /// Prefer a schedule with MMA batches.
    ///
    /// All sub-tiles issue their MMAs in one order, and MMAs that can be issued back to back form a batch. The interval stays
    /// the least. It matters if groups keep the results of their MMAs in registers.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long, value_name = "on|off", action = clap::ArgAction::Set, default_value = "on", value_parser = numbers::switch))]
    pub mma_batches: bool,
    /// Keep loop-invariant left operands in registers.
    ///
    /// They are in shared memory otherwise. The default is on in Gluon, if the schedule leaves room, and off in CUDA.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long, value_name = "on|off", value_parser = numbers::switch))]
    pub operands_in_registers: Option<bool>,
    /// Columns of the epilogue's sub-tiles: 0, or a power of two.
    ///
    /// What is computed of a result after the loops, and stored, goes by so many columns at a time. The default is 64 if registers
    /// or shared memory do not suffice for the whole result, and 0 otherwise. It needs Gluon, and Hopper.
    #[serde(deserialize_with = "numbers::deserialize_optional::<0, 256, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long, value_name = "COLUMNS", value_parser = numbers::whole::<0, 256, u32>))]
    pub epilogue_subtile: Option<u32>,
    /// CTAs of a cluster, which share loads by TMA multicast.
    ///
    /// Two CTAs with neighbouring tiles along the first axis of the grid load what both read once: each CTA loads one half for
    /// both. The axis must have an even number of CTAs. It needs --emit cuda, and Hopper.
    #[serde(deserialize_with = "numbers::deserialize_whole::<1, 2, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long, value_name = "CTAS", default_value_t = 1, value_parser = numbers::whole::<1, 2, u32>))]
    pub cluster: u32,
    /// Put a soft grid barrier before the loop of each tile.
    ///
    /// Persistent CTAs wait for each other, for at most 20000 cycles, so that what several of them load passes the L2 cache
    /// once. It is for long loops over data that many programs read. It needs --emit cuda, and Hopper.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long))]
    pub wave_sync: bool,
    /// Detail of --trace: timestamps around operations, segments, or iterations.
    ///
    /// Timestamps around each operation keep operations apart from each other, and take time. Segments are what threads do
    /// between two waits.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(help_heading = EXPERIMENTAL, long, value_name = "DETAIL", requires = "trace", default_value = "operations", value_parser = choice::choices::<TraceDetail>()))]
    pub trace_detail: TraceDetail,
    /// Do not assemble the kernel.
    ///
    /// An assembled kernel has a report on its registers and spills, and the places of its barriers.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(help_heading = "Assembling", long))]
    pub no_assemble: bool,
    /// Maximum number of schedules to try.
    ///
    /// If registers spill, or MMAs run one by one, the next schedule may use fewer registers.
    #[serde(deserialize_with = "numbers::deserialize_whole::<1, 16, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = "Assembling", long, value_name = "N", default_value_t = 4, value_parser = numbers::whole::<1, 16, u32>))]
    pub attempts: u32,
    /// Assemble the kernels of N schedules, and write the fastest by simulation.
    ///
    /// All have the least interval; the machine code is simulated. It is for Hopper. The default is 4 if the machine code of the
    /// first schedule takes more than 1.6 times its interval, and 1 otherwise.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 64, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = "Assembling", long, value_name = "N", conflicts_with = "no_assemble", value_parser = numbers::whole::<1, 64, u32>))]
    pub candidates: Option<u32>,
    /// Whether a kernel without a pipeline is executed in order: it is right, and no faster than Triton's own.
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub in_order: bool,
    /// What generates the kernel again, for its head.
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub command: String,
    /// Shared memory that a CTA's buffers and barriers may take, where it is less than the machine has: the tuner's.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub shared_bytes: Option<u64>,
    /// Warps and registers of groups: the tuner's.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub shares: GroupShares,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            emit: None,
            schedule: Which::Optimal,
            persistent: None,
            tile_order: None,
            group_m: None,
            ring_depth: None,
            handoff_depth: None,
            ctas_per_sm: None,
            num_warps: None,
            num_stages: None,
            pingpong: None,
            trace: None,
            mma_batches: true,
            operands_in_registers: None,
            epilogue_subtile: None,
            cluster: 1,
            wave_sync: false,
            trace_detail: TraceDetail::Operations,
            no_assemble: false,
            attempts: 4,
            candidates: None,
            in_order: false,
            command: String::new(),
            shared_bytes: None,
            shares: GroupShares::default(),
        }
    }
}

impl CompileOptions {
    /// The language that code is generated in.
    pub fn language(&self) -> Language {
        self.emit.unwrap_or(Language::Gluon)
    }

    /// What the kernel records of its time, if anything.
    pub fn traced(&self) -> Option<TraceOptions> {
        self.trace.map(|iterations| TraceOptions { iterations, detail: self.trace_detail })
    }
}

/// What a kernel records of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The last iterations of its first tile that are recorded.
    pub iterations: u32,
    /// How closely.
    pub detail: TraceDetail,
}

/// How closely the time of a kernel is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceDetail {
    /// Each operation.
    Operations,
    /// Operations that threads do one after the other, with no wait in between, as one.
    Segments,
    /// When each group begins an iteration.
    Iterations,
}

impl Choice for TraceDetail {
    const ALL: &'static [(&'static str, TraceDetail, &'static str)] = &[
        ("operations", TraceDetail::Operations, "Each operation"),
        ("segments", TraceDetail::Segments, "What threads do between two waits"),
        ("iterations", TraceDetail::Iterations, "When each group begins an iteration"),
    ];
}

impl From<TraceDetail> for twill_codegen::ir::Detail {
    fn from(detail: TraceDetail) -> Self {
        match detail {
            TraceDetail::Operations => Self::Operations,
            TraceDetail::Segments => Self::Segments,
            TraceDetail::Iterations => Self::Iterations,
        }
    }
}

/// Languages of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Gluon, which Triton compiles where the kernel runs.
    Gluon,
    /// CUDA C++, which needs no Python where the kernel runs.
    Cuda,
}

impl Choice for Language {
    const ALL: &'static [(&'static str, Language, &'static str)] =
        &[("gluon", Language::Gluon, "Triton's explicit language"), ("cuda", Language::Cuda, "CUDA C++")];
}

/// Which schedule code is generated for. The worse ones give each sub-tile a warp group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The best, with its proof.
    Optimal,
    /// Order and stages of the modulo schedule, which knows nothing of warps.
    SwpOnly,
    /// One iteration after another, one operation after another; rings of one slot.
    NoSwp,
    /// No pipeline: one group executes the operations of the TTIR in their order.
    InOrder,
    /// No warp specialisation: one group executes the operations in their order, and loads of loops run ahead.
    Multistage,
}

impl Choice for Which {
    const ALL: &'static [(&'static str, Which, &'static str)] = &[
        ("optimal", Which::Optimal, "The best, with its proof"),
        ("swp-only", Which::SwpOnly, "Order and stages of the modulo schedule without warps"),
        ("no-swp", Which::NoSwp, "One iteration after another, with rings of one slot"),
        ("in-order", Which::InOrder, "One warp group, one operation after another, as the TTIR has them"),
        ("multistage", Which::Multistage, "The same with loads that run ahead: no warp specialisation (Gluon)"),
    ];
}

/// Orders of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOrderOption {
    /// As a grid is: the first axis fastest.
    Linear,
    /// Longest processing time first: the first axis from its end.
    Lpt,
    /// GROUP_M swizzle along the first axis.
    GroupM,
}

impl Choice for TileOrderOption {
    const ALL: &'static [(&'static str, TileOrderOption, &'static str)] = &[
        ("linear", TileOrderOption::Linear, "As a grid is: the first axis fastest"),
        ("lpt", TileOrderOption::Lpt, "Longest processing time first: the first axis from its end"),
        ("group-m", TileOrderOption::GroupM, "GROUP_M swizzle along the first axis, as in Triton's tutorials"),
    ];
}
