//! The command line.

mod compile;
mod explain;
mod fit;
mod gaus;
mod machine;
mod page;
mod report;
mod schedule;
mod search;
mod source;
mod trace;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use compile::*;
pub(crate) use explain::*;
pub(crate) use fit::*;
pub(crate) use gaus::*;
pub(crate) use machine::*;
pub(crate) use page::*;
pub(crate) use report::*;
pub(crate) use schedule::*;
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
