//! The command line.

mod compile;
mod model;
mod report;
mod source;
mod trace;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use compile::*;
pub(crate) use model::*;
pub(crate) use report::*;
pub(crate) use source::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub(crate) use trace::*;
use twill_driver::TopOptions;

/// Optimal software pipelines and warp specialisation for Triton kernels, proved.
#[derive(Debug, Parser)]
#[command(name = "twill", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the optimal schedule of a kernel's loop, with its proof.
    Schedule(ScheduleArguments),
    /// Generate the kernel that runs a schedule: its source in Gluon or CUDA, launcher, test.
    Compile(CompileArguments),
    /// Say whether kernels fit a machine and what they need there, before anything is searched or compiled.
    Fit(FitArguments),
    /// Compare what a traced kernel recorded on a GPU with its schedule.
    Trace(TraceArguments),
    /// Find the least initiation interval of a large loop without warps, with its proof.
    Modulo(ModuloArguments),
    /// Schedule a large graph of operations, without warps, by gradient, with a lower bound.
    Gaus(crate::gaus::GausArguments),
    /// Explain what bounds a kernel's loop, why smaller intervals are impossible, and what would change it.
    Explain(ExplainArguments),
    /// Draw a schedule on a page: timeline, graph, registers, memories, explanation, code; one HTML file.
    Report(ReportArguments),
    /// Serve that page on this machine alone and open it in the browser.
    View(ViewArguments),
    /// Show what a kernel's loop becomes before it is scheduled: sub-tiles, or the graph with its costs.
    Lower(LowerArguments),
    /// Replay a schedule from its JSON, or check a certificate of its optimality, independently of the solver.
    Check(CheckArguments),
    /// List the built-in loop graphs, or print one as JSON.
    Kernels(KernelsArguments),
    /// List, show, check, compare and measure machine descriptions.
    Machine(MachineArguments),
    /// Compare tile shapes and options by what they can achieve at most, proved, and schedule the best (needs the Python package).
    #[command(disable_help_flag = true)]
    Sweep(SweepArguments),
    /// Say what the cache on disk holds, or clear it.
    Cache(CacheArguments),
    /// Print the JSON Schema of a text format.
    Schema(SchemaArguments),
}

/// Whether kernels fit.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all fit, 1 error, 2 one does not fit (proved), 3 of one it is not known. A kernel fits if twill compile makes one that Triton's compiler has room for (docs/explain.md)."
)]
pub(crate) struct FitArguments {
    /// TTIR of kernels (.ttir), all with the same options.
    #[arg(required = true, value_name = "KERNEL")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) lowering: LoweringArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingArguments,
    #[command(flatten)]
    pub(crate) generator: GeneratorArguments,
    /// Output format.
    #[arg(help_heading = "Output", long, value_enum, default_value_t = FitFormat::Text)]
    pub(crate) format: FitFormat,
    /// Of --format json: say how many milliseconds each took, from its text to its verdict.
    #[arg(help_heading = "Output", long)]
    pub(crate) timings: bool,
    /// Show needs of those that fit too.
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
    after_help = "Exit codes: 0 proven optimal, 1 error, 2 infeasible (proved), 3 stopped by a budget with the best known and its bound."
)]
pub(crate) struct ScheduleArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Output format [default: by the ending of --output: .json, .svg, .pftrace, .dot, .html for the page of twill report;
    /// otherwise text].
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Of --format perfetto and svg: how many iterations are drawn [default: all stages, and the steady state].
    #[arg(help_heading = "Output", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) iterations: Option<u32>,
    /// Write a question about the schedule for another solver instead of the schedule (docs/formats.md).
    #[arg(help_heading = "Question for another solver", long, value_enum, conflicts_with_all = ["format", "top"])]
    pub(crate) emit: Option<Emit>,
    /// Of --emit: the initiation interval asked about [default: one cycle below the least].
    #[arg(help_heading = "Question for another solver", long, value_name = "CYCLES", requires = "emit", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1 << 40))]
    pub(crate) interval: Option<i64>,
    /// Of --emit: most stages [default: as many as the schedule has, one more at another interval]. With both, nothing is searched.
    #[arg(help_heading = "Question for another solver", long, value_name = "N", requires = "emit", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) stages: Option<u32>,
    #[command(flatten)]
    pub(crate) siblings: SiblingArguments,
    /// Write the schedule with a proof for every rejected interval into a new folder, for `twill check`.
    #[arg(help_heading = "Output", long, value_name = "DIR", conflicts_with_all = ["emit", "top"])]
    pub(crate) certificate: Option<PathBuf>,
    /// Software pipelining alone: the modulo schedule by dependences and functional units, without warps, registers and
    /// memories. The model's options play no part.
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
    /// Find so many schedules that differ in groups, order or stages, the best first, to time them: at the least interval
    /// while there are any, with one more stage at most. Of one loop. JSON is an array then, and `compile` writes the folders
    /// 1, 2, ... into its output, one for each kernel.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// Of --top: how much longer than the least an interval may be, in percent.
    #[arg(long, value_name = "PERCENT", requires = "top", default_value_t = 0.0, value_parser = percent, allow_negative_numbers = true)]
    pub(crate) within: f64,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 proven optimal, 1 error, 2 infeasible (proved), 3 stopped by a budget with the best known and its bound."
)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Output format [default: json where --output ends in .json, otherwise text].
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ExplainFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Which changes of kernel and machine to try.
    #[arg(help_heading = "Search", long, value_enum, default_value_t = WhatIfs::All)]
    pub(crate) what_if: WhatIfs,
    /// Units of work for each question about a conflict, and four times as many for each change.
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

/// Where text goes, and how it is laid out.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PageArguments {
    /// Write to a file instead of standard output, which is `-`.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Columns of text output [default: the terminal's, or 100].
    #[arg(long)]
    pub(crate) width: Option<usize>,
    /// Colour in text output.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// How wide text is, where it goes nowhere but to standard output.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WidthArgument {
    /// Columns of text output [default: the terminal's, or 100].
    #[arg(long, global = true)]
    width: Option<usize>,
}

impl WidthArgument {
    pub(crate) fn columns(self) -> usize {
        crate::schedule::width(self.width, None)
    }
}

/// When a search stops with the best known.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct BudgetArguments {
    /// Stop after so many seconds with the best known [default: 20, or 120 for
    /// twill compile, which searches many times, or none for GauS]; none sets no limit.
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_none, allow_negative_numbers = true)]
    pub(crate) time_limit: Option<f64>,
    /// Stop after so many units of work (about a million a second; reproducible).
    #[arg(long, value_name = "UNITS")]
    pub(crate) work_limit: Option<u64>,
    /// Stop with the best known when the process uses so many megabytes (10^6 bytes) of memory.
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory_limit: Option<u64>,
}

/// What to search, and how far.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArguments {
    #[command(flatten)]
    pub(crate) source: SourceArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    /// Largest initiation interval to try, in cycles.
    #[arg(help_heading = "Search", long, value_name = "CYCLES", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(1..=1 << 40))]
    pub(crate) max_interval: Option<i64>,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    /// Search anew even where the answer is in the cache, and do not keep it (TWILL_CACHE=off does the same).
    #[arg(help_heading = "Search", long)]
    pub(crate) no_cache: bool,
    /// Say nothing of progress.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 proven optimal, 1 error, 2 infeasible (proved), 3 stopped by a budget with the best known and its bound."
)]
pub(crate) struct ModuloArguments {
    /// The loop in GraphML, as HatScheT has it.
    pub(crate) graph: PathBuf,
    /// Its resource model in XML [default: GRAPH_RM.xml beside GRAPH.graphml].
    #[arg(long, value_name = "FILE")]
    pub(crate) resources: Option<PathBuf>,
    /// Output format [default: json where --output ends in .json, otherwise text].
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ModuloFormat>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    #[command(flatten)]
    pub(crate) budget: BudgetArguments,
    /// Say nothing of progress.
    #[arg(help_heading = "Output", long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModuloFormat {
    /// The interval, its bound, and how full the resources are.
    Text,
    /// The start of each operation, with bound and excluded intervals.
    Json,
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

impl ModuloArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> ModuloFormat {
        let by_ending = || by_ending(self.page.output.as_deref(), &[("json", ModuloFormat::Json)]);
        self.format.or_else(by_ending).unwrap_or(ModuloFormat::Text)
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A schedule or a pipeline, as `twill schedule --format json` writes it, or a folder that `--certificate` wrote.
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct KernelsArguments {
    /// The graph to print.
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
    /// List the machines that come with Twill.
    List,
    /// Show every number of a machine, with where it comes from.
    Show {
        /// A built-in name or a path to a machine file.
        name: String,
    },
    /// Report everything that is wrong with a machine file.
    Check {
        /// The machine file.
        file: PathBuf,
    },
    /// Say which numbers differ between two machines.
    Diff {
        /// A built-in name or a path to a machine file.
        old: String,
        /// Another.
        new: String,
        /// Output format.
        #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
        format: DiffFormat,
    },
    /// Measure this GPU by microbenchmarks and write a machine file of what was found (needs the Python package).
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
    /// Words of `python -m twill_gpu.calibration`; --help lists them. TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Words of `python -m twill_gpu.sweeping`; --help lists them. TWILL_PYTHON names the interpreter [default: python3].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The cache keeps proven schedules and generated kernels. It is the folder TWILL_CACHE, or twill in XDG_CACHE_HOME or ~/.cache; TWILL_CACHE=off pingpong it off."
)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum CacheCommand {
    /// Where it is, and how much it holds.
    Info,
    /// Throw everything away.
    Clear,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Which format.
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
    /// What a kernel did on a GPU, beside its schedule (twill trace).
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

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value > 0.0 && value <= 1e9 { Ok(value) } else { Err("must be above 0 and at most 1e9".into()) }
}

/// As [`seconds`]; infinity for `none`.
pub(crate) fn seconds_or_none(text: &str) -> Result<f64, String> {
    let or_none = |why: String| if text.parse::<f64>().is_ok() { why + ", or none" } else { why };
    if text == "none" { Ok(f64::INFINITY) } else { seconds(text).map_err(or_none) }
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
        let model = names(&ModelArguments::augment_args(clap::Command::new("model")));
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
