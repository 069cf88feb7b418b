//! `twill explain`.

use super::{AnnotationArguments, PageArguments, SearchArguments, by_ending};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    mut_arg("input", |input| input.help("TTIR, loop graph, built-in graph, FILE.py::KERNEL, or a folder of kernels")),
    after_help = "Exit codes: 0 optimal, 1 error, 2 infeasible, 3 stopped by a budget",
    after_long_help = "Exit codes: 0 proved optimal, 1 error, 2 proved infeasible, 3 stopped by a budget, with the best schedule known and its bound."
)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    /// Output format [default: by --output, or text].
    ///
    /// The endings .json and .sarif say json and sarif.
    #[arg(help_heading = "Output", long, value_enum)]
    pub(crate) format: Option<ExplainFormat>,
    #[command(flatten)]
    pub(crate) annotations: AnnotationArguments,
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
    /// Annotations at lines of the Python source, for code scanning and editors (SARIF 2.1.0).
    Sarif,
    /// The same as workflow commands of GitHub Actions.
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhatIfs {
    /// Every change that makes sense.
    All,
    /// None.
    None,
}

impl ExplainArguments {
    /// The output format that is asked for, by its name or by the output's ending.
    pub(crate) fn format(&self) -> ExplainFormat {
        const ENDINGS: [(&str, ExplainFormat); 2] = [("json", ExplainFormat::Json), ("sarif", ExplainFormat::Sarif)];
        let by_ending = || by_ending(self.page.output.as_deref(), &ENDINGS);
        self.format.or_else(by_ending).unwrap_or(ExplainFormat::Text)
    }
}
