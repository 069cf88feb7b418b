//! `twill schedule`, and the formats of schedules.

use super::{PageArguments, SearchArguments, TopArguments};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use twill_driver::SiblingOptions;

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
