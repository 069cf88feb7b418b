//! The command line.

mod compile;
mod gaus;
mod page;
mod report;
mod search;
mod source;
mod trace;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use compile::*;
pub(crate) use gaus::*;
pub(crate) use page::*;
pub(crate) use report::*;
pub(crate) use search::*;
pub(crate) use source::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub(crate) use trace::*;
use twill_driver::options::{CompileOptions, LimitOptions, LoweringOptions, ModelVariant};
use twill_driver::{SiblingOptions, TopOptions};

/// Optimal software pipelines and warp specialisation for Triton kernels, proved.
#[derive(Debug, Parser)]
#[command(name = "twill", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the optimal schedule of a kernel's loops, with its proof.
    Schedule(ScheduleArguments),
    /// Generate the kernel of a schedule, in Gluon or CUDA.
    Compile(CompileArguments),
    /// Explain what bounds a loop, and what would change it.
    Explain(ExplainArguments),
    /// Say whether kernels fit a machine, before any search.
    Fit(FitArguments),
    /// Compare tile shapes and options by their proved bounds.
    #[command(disable_help_flag = true)]
    Sweep(SweepArguments),
    /// Draw a schedule as a page or picture, or open it in the browser.
    Report(ReportArguments),
    /// Compare what a traced kernel recorded with its schedule.
    Trace(TraceArguments),
    /// Show a kernel's loops before scheduling: tiles, or graph and costs.
    Lower(LowerArguments),
    /// Replay a schedule, or check a certificate, without the solver.
    Check(CheckArguments),
    /// Schedule a large graph without warps: by gradient, or exactly.
    Gaus(GausArguments),
    /// List the built-in loop graphs, or print one as JSON.
    Graphs(GraphsArguments),
    /// List, show, check, compare, and measure machine descriptions.
    Machine(MachineArguments),
    /// Show what the cache on disk holds, or clear it.
    Cache(CacheArguments),
    /// Print the JSON Schema of a text format.
    Schema(SchemaArguments),
}

/// Whether kernels fit.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all fit, 1 error, 2 one does not fit (proved), 3 one is not known",
    after_long_help = "Exit codes: 0 all fit, 1 error, 2 one does not fit (proved), 3 it is not known of one. A kernel fits if twill compile generates one for which Triton's compiler has room (docs/fit.md)."
)]
pub(crate) struct FitArguments {
    /// TTIR of kernels (.ttir); all have the same options.
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) inputs: Vec<PathBuf>,
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
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = FitFormat::Text)]
    pub(crate) format: FitFormat,
    /// With --format json: report the milliseconds that each kernel took.
    #[arg(help_heading = "Output", long)]
    pub(crate) timings: bool,
    /// Show the needs of kernels that fit, too.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitFormat {
    /// A line each, and more on those that do not fit.
    Text,
    /// A JSON object each on a line of its own, with an error in its place where there is one.
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 optimal, 1 error, 2 infeasible, 3 stopped by a budget",
    after_long_help = "Exit codes: 0 proved optimal, 1 error, 2 proved infeasible, 3 stopped by a budget, with the best schedule known and its bound."
)]
pub(crate) struct ScheduleArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Output format [default: by --output, or text].
    ///
    /// --output says it by its ending: .json, .svg, .pftrace, .dot, and .html, which is the page of twill report.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<Format>,
    /// With --format perfetto or svg: iterations to draw.
    ///
    /// The default shows all stages and the steady state.
    #[arg(help_heading = "Output", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) iterations: Option<u32>,
    /// Write a question for another solver instead of the schedule (docs/formats.md).
    #[arg(help_heading = "Question for another solver", long, value_enum, conflicts_with_all = ["format", "top"])]
    pub(crate) emit: Option<Emit>,
    /// With --emit: initiation interval in question [default: the least less 1].
    #[arg(help_heading = "Question for another solver", long, value_name = "CYCLES", requires = "emit", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1 << 40))]
    pub(crate) interval: Option<i64>,
    /// With --emit: maximum number of stages.
    ///
    /// The default is that of the schedule, plus one at another interval. With --interval and --stages, nothing is searched.
    #[arg(help_heading = "Question for another solver", long, value_name = "N", requires = "emit", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) stages: Option<u32>,
    #[command(flatten)]
    pub(crate) siblings: SiblingOptions,
    /// Write schedule and proofs into a new folder.
    ///
    /// twill check reads it. There is a proof for each rejected interval.
    #[arg(help_heading = "Output", long, value_name = "DIR", conflicts_with_all = ["emit", "top"])]
    pub(crate) certificate: Option<PathBuf>,
    /// Modulo schedule alone, without warps.
    ///
    /// This is software pipelining without warp specialisation. It respects dependences and functional units, but neither registers nor memories. Options of the model do not matter.
    #[arg(help_heading = "Model", long, conflicts_with_all = ["emit", "certificate", "top", "compute_groups", "registers_per_thread", "trip_counts"])]
    pub(crate) swp_only: bool,
    #[command(flatten)]
    pub(crate) top: TopArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
}

/// How many different schedules are wanted.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several schedules")]
pub(crate) struct TopArguments {
    /// Find K different schedules of one loop.
    ///
    /// The best is first. They differ in groups, order, or stages, have the least interval as long as there are any, and at most one more stage.
    /// JSON is then an array, and twill compile writes the folders 1, 2, ... into its output, one for each kernel.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// With --top: percent by which an interval may exceed the least.
    #[arg(long, value_name = "PERCENT", requires = "top", default_value_t = 0.0, value_parser = percent, allow_negative_numbers = true)]
    pub(crate) within: f64,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 optimal, 1 error, 2 infeasible, 3 stopped by a budget",
    after_long_help = "Exit codes: 0 proved optimal, 1 error, 2 proved infeasible, 3 stopped by a budget, with the best schedule known and its bound."
)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Output format [default: by --output, or text].
    ///
    /// The ending .json says json.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ExplainFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Changes of kernel and machine: all, or none.
    #[arg(help_heading = "Search", long, value_name = "WHICH", value_enum, default_value_t = WhatIfs::All)]
    pub(crate) what_if: WhatIfs,
    /// Work for each question about a conflict; four times that for each change.
    #[arg(help_heading = "Search", long, value_name = "UNITS", default_value_t = 250_000)]
    pub(crate) effort: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// For people.
    Text,
    /// For programs; an array for several loops.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhatIfs {
    /// Every change that makes sense.
    All,
    /// None.
    None,
}

#[derive(Debug, Args)]
pub(crate) struct LowerArguments {
    #[command(flatten)]
    pub(crate) source: SourceArguments,
    /// What to print.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = LowerFormat::Tiles)]
    pub(crate) format: LowerFormat,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowerFormat {
    /// The tile operations of each loop, contracted and split.
    Tiles,
    /// The loop graph with its costs, as JSON that `twill schedule` reads; an array for several loops.
    Graph,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Timeline and tables.
    Text,
    /// The schedule with its problem; an array of them for several loops.
    Json,
    /// The pipelined program of each warp group.
    Pseudocode,
    /// A trace of the first iterations for Perfetto; binary, for a file that ends in .pftrace.
    Perfetto,
    /// A picture of the first iterations, by warp group and functional unit.
    Svg,
    /// A picture of the dependence graph, coloured by warp group.
    GraphSvg,
    /// The dependence graph for Graphviz.
    Dot,
}

/// The format that the ending of an output file names.
pub(crate) fn by_ending<F: Copy>(output: Option<&Path>, endings: &[(&str, F)]) -> Option<F> {
    let ending = output?.extension()?.to_str()?;
    endings.iter().find(|(own, _)| own.eq_ignore_ascii_case(ending)).map(|(_, format)| *format)
}

impl ScheduleArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> Format {
        const ENDINGS: [(&str, Format); 5] = [
            ("json", Format::Json),
            ("svg", Format::Svg),
            ("pftrace", Format::Perfetto),
            ("dot", Format::Dot),
            ("gv", Format::Dot),
        ];
        self.format.or_else(|| by_ending(self.page.output.as_deref(), &ENDINGS)).unwrap_or(Format::Text)
    }

    /// Whether the page of `twill report` is asked for, by the output's ending.
    pub(crate) fn is_page(&self) -> bool {
        self.format.is_none() && by_ending(self.page.output.as_deref(), &[("html", ()), ("htm", ())]).is_some()
    }
}

impl ExplainArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> ExplainFormat {
        let by_ending = || by_ending(self.page.output.as_deref(), &[("json", ExplainFormat::Json)]);
        self.format.or_else(by_ending).unwrap_or(ExplainFormat::Text)
    }
}

impl Format {
    /// Whether it is a picture or a trace, rather than text to read.
    pub(crate) fn is_picture(self) -> bool {
        matches!(self, Format::Perfetto | Format::Svg | Format::GraphSvg | Format::Dot)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// Whether there is a schedule at --interval, as SMT-LIB 2.
    Smtlib2,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Schedule as JSON, or a folder that --certificate wrote.
    ///
    /// twill schedule and twill gaus write schedules with --format json.
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GraphsArguments {
    /// Graph to print.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    #[command(subcommand)]
    pub(crate) command: MachineCommand,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// List the built-in machines.
    List,
    /// Show every number of a machine, with its source.
    Show {
        /// Built-in name, or machine file.
        name: String,
    },
    /// Report all errors of a machine file.
    Check {
        /// Machine file.
        file: PathBuf,
    },
    /// Show the numbers in which two machines differ.
    Diff {
        /// Built-in name, or machine file.
        old: String,
        /// The other machine.
        new: String,
        /// Output format.
        #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
        format: DiffFormat,
    },
    /// Measure this GPU, and write its machine file.
    ///
    /// It needs the Python package.
    #[command(disable_help_flag = true)]
    Calibrate(CalibrateArguments),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// A line for each number.
    Text,
    /// An array of objects.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// Arguments of python -m twill_gpu.calibration; TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Arguments of python -m twill_gpu.sweeping; TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The cache keeps proved schedules and generated kernels in TWILL_CACHE, or twill in XDG_CACHE_HOME or ~/.cache. TWILL_CACHE=off switches it off."
)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show its folder, and how much it holds.
    Info,
    /// Remove all entries.
    Clear,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Text format.
    #[arg(value_enum)]
    pub(crate) format: SchemaFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// Loop graphs.
    Graph,
    /// Graphs of operations without warps.
    Dataflow,
    /// Schedules.
    Schedule,
    /// Schedules of sibling loops.
    KernelSchedule,
    /// Explanations.
    Explanation,
    /// Pipelines without warps (--swp-only).
    Pipeline,
    /// What a kernel did on a GPU, next to its schedule (twill trace).
    Trace,
    /// Whether a kernel fits (twill fit).
    Fit,
}

impl TopArguments {
    /// What is wanted, if more than the best is.
    pub(crate) fn options(&self) -> Option<TopOptions> {
        self.top.map(|most| TopOptions { most: most.into(), within: self.within / 100.0 })
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1000.0).contains(&value) { Ok(value) } else { Err("must be from 0 to 1000".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Headings go on with what is flattened after them unless that has its own.
    #[test]
    fn what_stands_under_model_is_of_the_model() {
        let names = |command: &clap::Command| {
            let of = |arg: &&clap::Arg| arg.get_help_heading() == Some("Model");
            command.get_arguments().filter(of).map(|arg| arg.get_id().to_string()).collect::<BTreeSet<_>>()
        };
        let model = names(&<ModelVariant as Args>::augment_args(clap::Command::new("model")));
        assert!(model.contains("liveness"));
        let mut seen = 0;
        for command in Arguments::command().get_subcommands() {
            let own = names(command);
            assert!(
                own.iter().all(|name| model.contains(name) || name == "swp_only"),
                "{}: {own:?}",
                command.get_name()
            );
            seen += usize::from(!own.is_empty());
        }
        assert!(seen > 4);
    }
}
