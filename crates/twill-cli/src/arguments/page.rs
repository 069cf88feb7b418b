//! Where text goes, and how it is laid out.

use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use twill_report::TextOptions;

/// Where text goes, and how it is laid out.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PageArguments {
    /// Output file, or - for standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Columns of text [default: the terminal's, or 100].
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// Colour in text output.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// How wide text is, where it goes nowhere but to standard output.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WidthArgument {
    /// Columns of text [default: the terminal's, or 100].
    #[arg(long, value_name = "COLUMNS", global = true)]
    width: Option<usize>,
}

impl WidthArgument {
    pub(crate) fn columns(self) -> usize {
        width(self.width, None)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl PageArguments {
    /// How text is laid out.
    pub(crate) fn text_options(&self) -> TextOptions {
        let output = self.output.as_deref();
        TextOptions { width: width(self.width, output), color: color(self.color, output) }
    }
}

/// Columns of text output.
pub(crate) fn width(requested: Option<usize>, output: Option<&Path>) -> usize {
    let terminal = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    requested.or_else(|| terminal().filter(|_| output.is_none())).unwrap_or(100).max(twill_report::LEAST_WIDTH)
}

/// Whether text output is in colour.
fn color(requested: Color, output: Option<&Path>) -> bool {
    match requested {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let asked_not_to = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
            output.is_none() && std::io::stdout().is_terminal() && !asked_not_to
        }
    }
}
