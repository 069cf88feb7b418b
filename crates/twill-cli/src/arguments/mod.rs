//! The command line.

mod annotations;
mod check_perf;
mod compile;
mod coverage;
mod explain;
mod fit;
mod gaus;
mod lint;
mod machine;
mod page;
mod report;
mod schedule;
mod search;
mod source;
mod top;
mod trace;

pub(crate) use annotations::*;
pub(crate) use check_perf::*;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use compile::*;
pub(crate) use coverage::*;
pub(crate) use explain::*;
pub(crate) use fit::*;
pub(crate) use gaus::*;
pub(crate) use lint::*;
pub(crate) use machine::*;
pub(crate) use page::*;
pub(crate) use report::*;
pub(crate) use schedule::*;
pub(crate) use search::*;
pub(crate) use source::*;
use std::path::PathBuf;
pub(crate) use top::*;
pub(crate) use trace::*;

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
    /// Say of kernels what is scheduled and generated, and why not.
    Coverage(CoverageArguments),
    /// Run a program, and record the Triton kernels that it compiles.
    #[command(disable_help_flag = true)]
    Collect(CollectArguments),
    /// Compare tile shapes and options by their proved bounds.
    #[command(disable_help_flag = true)]
    Sweep(SweepArguments),
    /// Draw a schedule as a page or picture, or open it in the browser.
    Report(ReportArguments),
    /// Open the playground: schedules that follow sliders, in the browser.
    Playground(PlaygroundArguments),
    /// Compare what a traced kernel recorded with its schedule.
    Trace(TraceArguments),
    /// Show a kernel's loops before scheduling: tiles, or graph and costs.
    Lower(LowerArguments),
    /// Replay a schedule, or check a certificate, without the solver.
    Check(CheckArguments),
    /// Check machine code of Hopper for hazards, whoever made it.
    Lint(LintArguments),
    /// Fail if kernels' bounds, registers or memory got worse.
    CheckPerf(CheckPerfArguments),
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
    /// Print what completes the command's words in a shell.
    Completions(CompletionsArguments),
    /// Write the manual pages of all commands into a folder.
    Man(ManArguments),
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

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Schedule as JSON, or a folder that --certificate wrote.
    ///
    /// twill schedule and twill gaus write schedules with --format json.
    pub(crate) file: PathBuf,
}

/// Open the playground, with an input in it.
#[derive(Debug, Args)]
#[command(
    after_help = "The playground is one file that asks for nothing: reader, engine and page run in the browser. It comes with the wheel; in a checkout, cargo xtask playground makes it. TWILL_PLAYGROUND names it where it stands elsewhere."
)]
pub(crate) struct PlaygroundArguments {
    /// TTIR, loop graph, or built-in graph to begin with.
    pub(crate) input: Option<String>,
    /// Built-in machine to begin with [default: the graph's own; h200 for TTIR].
    #[arg(long, short, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) python: PythonArguments,
    /// Write the playground to FILE, or - for standard output, and open nothing.
    #[arg(help_heading = "Output", long, short, value_name = "FILE", conflicts_with = "input")]
    pub(crate) output: Option<PathBuf>,
    /// Print the address, and do not start a browser.
    #[arg(help_heading = "Output", long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraphsArguments {
    /// Graph to print.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) width: WidthArgument,
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
    /// Baselines of kernels (twill check-perf).
    Performance,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Put it where the shell looks: `twill completions bash > ~/.local/share/bash-completion/completions/twill`. A wheel brings the files of bash, zsh and fish."
)]
pub(crate) struct CompletionsArguments {
    /// Shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder, which is made if it is missing: twill.1, and a page for each command.
    pub(crate) folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;
    use twill_driver::options::ModelVariant;

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
