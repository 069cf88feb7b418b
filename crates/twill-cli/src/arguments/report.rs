//! What pages are drawn of.

use super::{Format, SearchArguments, SiblingArguments, by_ending, seconds};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Draw a schedule on a page, or as a picture.
#[derive(Debug, Args)]
#[command(
    after_help = "KERNEL may also be a schedule that twill schedule or twill gaus wrote with --format json, which is replayed, or a folder that twill compile wrote: its code is shown beside its schedule, and what was measured if trace.json is there. Nothing is searched then.\n\nExit codes: as twill schedule, for a schedule that was searched for; otherwise 0 it was written, 1 error; a timeline or trace of a file without a schedule is not written, and the code says why there is none."
)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    /// Output format [default: by the ending of --output: .json, .svg, .pftrace, .dot; otherwise html].
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
    /// Write to a file instead of standard output, which is `-`.
    #[arg(help_heading = "Output", long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What a page is about.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingArguments,
    /// Leave out why the interval is no smaller, and what would change it.
    #[arg(help_heading = "Explanation", long)]
    pub(crate) no_explain: bool,
    /// Stop explaining after so many seconds, and show what is known then [default: 10, or --time-limit where that is less].
    #[arg(help_heading = "Explanation", long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, conflicts_with = "no_explain")]
    pub(crate) explain_limit: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page that stands for itself.
    Html,
    /// The data of the page.
    Json,
    /// A trace of the first iterations for Perfetto; binary, for a file that ends in .pftrace.
    Perfetto,
    /// A picture of the first iterations, by warp group and functional unit.
    Svg,
    /// A picture of the dependence graph, coloured by warp group.
    GraphSvg,
    /// The dependence graph for Graphviz.
    Dot,
}

impl ReportArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> ReportFormat {
        const ENDINGS: [(&str, ReportFormat); 5] = [
            ("json", ReportFormat::Json),
            ("svg", ReportFormat::Svg),
            ("pftrace", ReportFormat::Perfetto),
            ("dot", ReportFormat::Dot),
            ("gv", ReportFormat::Dot),
        ];
        self.format.or_else(|| by_ending(self.output.as_deref(), &ENDINGS)).unwrap_or(ReportFormat::Html)
    }
}

impl ReportFormat {
    /// What `twill schedule` calls the same picture; none of a page.
    pub(crate) fn picture(self) -> Option<Format> {
        match self {
            ReportFormat::Html | ReportFormat::Json => None,
            ReportFormat::Perfetto => Some(Format::Perfetto),
            ReportFormat::Svg => Some(Format::Svg),
            ReportFormat::GraphSvg => Some(Format::GraphSvg),
            ReportFormat::Dot => Some(Format::Dot),
        }
    }
}

/// Serve a page.
#[derive(Debug, Args)]
#[command(
    after_help = "What twill report takes is drawn; a page that it wrote (.html) is served as it is. Only this machine can reach the server, and nothing but the page is there. Ctrl-C ends it."
)]
pub(crate) struct ViewArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    /// The port [default: any that is free].
    #[arg(help_heading = "Server", long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Do not open a browser.
    #[arg(help_heading = "Server", long)]
    pub(crate) no_open: bool,
}
