//! What pages are drawn of.

use super::{Format, SearchArguments, by_ending};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use twill_driver::SiblingOptions;
use twill_driver::options::seconds;

/// Draw a schedule on a page, or as a picture.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: those of twill schedule if it searches; otherwise 0 written, 1 error",
    after_long_help = "INPUT may also be a schedule that twill schedule or twill gaus wrote with --format json, which is replayed, or a folder that twill compile wrote: the page then shows the code next to the schedule, and what was measured if trace.json is there. In these cases nothing is searched.\n\n--open also takes a page that twill report wrote (.html), and serves it unchanged. Only this machine can reach the server, and it has nothing but the page. Ctrl-C ends it.\n\nExit codes: those of twill schedule if a schedule is searched for; otherwise 0 written, 1 error. A timeline or trace of a file without a schedule is not written, and the code says why there is none.",
    mut_arg("input", |input| input.help("TTIR, loop graph, built-in graph, schedule (.json), or kernel folder"))
)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    /// Output format [default: by --output, or html].
    ///
    /// --output says it by its ending: .json, .svg, .pftrace, and .dot.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
    /// Output file, or - for standard output.
    #[arg(help_heading = "Output", long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Serve the page locally, and open it in a browser.
    #[arg(help_heading = "Server", long, conflicts_with_all = ["format", "output"])]
    pub(crate) open: bool,
    /// Port of --open [default: any free port].
    #[arg(
        help_heading = "Server",
        long,
        value_name = "N",
        requires = "open",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) port: u16,
    /// With --open: do not start a browser.
    #[arg(help_heading = "Server", long, requires = "open")]
    pub(crate) no_browser: bool,
}

/// What a page is about.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingOptions,
    /// Leave the explanation out.
    ///
    /// The explanation says why the interval is no smaller, and what would change it.
    #[arg(help_heading = "Explanation", long)]
    pub(crate) no_explain: bool,
    /// Stop explaining after SECONDS [default: 10, or --time-limit if less].
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
