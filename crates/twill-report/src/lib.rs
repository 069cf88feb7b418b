//! Reports on a schedule: for a terminal, headline, timelines and tables; pictures; traces.
//!
//! [`text`] renders a report of a search in the manner of `llvm-mca`: the result and what
//! bounds it, one steady-state iteration on the functional units and warp groups, a few iterations
//! as they overlap, then tables of operations, registers, memories and the search itself. [`page`] has the same as an HTML file.
//!
//! [`timeline_svg`], [`graph_svg`] and [`graph_dot`] draw pictures for documents, and [`perfetto()`] writes a trace for
//! Perfetto (docs/report.md).

mod alternatives;
mod dataflow;
mod estimate;
mod explanation;
mod headline;
mod ink;
mod kernel;
mod liveness;
mod markup;
mod modulo;
mod operations;
pub mod page;
mod perfetto;
mod picture;
mod pipeline;
mod run;
mod search;
mod steady;
mod storage;
mod table;
mod timeline;
mod unroll;
mod words;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use alternatives::{alternatives_text, differences};
pub use dataflow::dataflow_text;
pub use explanation::{ExplanationSentences, explanation_sentences};
pub use modulo::modulo_text;
pub use perfetto::{dataflow_perfetto, perfetto, trace_iterations};
pub use picture::{
    GraphOptions, TimelineOptions, compared_svg, graph_dot, graph_svg, graphs_svg, timeline_iterations, timeline_svg,
    timelines_svg,
};
pub use pipeline::pipeline_text;

use ink::Page;
pub use ink::folded;
pub use table::{Align, Table};
use twill_check::Verified;
use twill_graph::{Explanation, MultiLoopProblem, MultiLoopReport, Problem, Report, Schedule};

/// How to lay out a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal; less than 40 is taken as 40.
    pub width: usize,
    /// True if to use ANSI colours.
    pub color: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions { width: 100, color: false }
    }
}

/// The least width that a report is laid out for.
pub const LEAST_WIDTH: usize = 40;

/// A report as text, no line of it wider than `options.width` (or 40, if that is more).
pub fn text(problem: &Problem, report: &Report<Verified<Schedule>>, options: TextOptions) -> String {
    render(problem, report, options)
}

/// A report on several loops as text: the resources that they share, then each as [`text`] has it.
pub fn kernel_text(
    kernel: &MultiLoopProblem,
    report: &MultiLoopReport<Verified<Schedule>>,
    options: TextOptions,
) -> String {
    let mut page = Page::new(options.width.max(LEAST_WIDTH), options.color);
    kernel::write(&mut page, kernel, report);
    let loops = kernel.loops().iter().zip(&report.loops).map(|(problem, own)| text(problem, own, options));
    std::iter::once(page.finish()).chain(loops).collect::<Vec<_>>().join("\n")
}

/// An explanation as text, no line of it wider than `options.width` (or 40, if that is more).
pub fn explanation(problem: &Problem, explanation: &Explanation, options: TextOptions) -> String {
    let mut page = Page::new(options.width.max(LEAST_WIDTH), options.color);
    explanation::write(&mut page, problem, explanation);
    page.finish()
}

/// [`text`] of a claim or of a verified schedule.
fn render<S: AsRef<Schedule>>(problem: &Problem, report: &Report<S>, options: TextOptions) -> String {
    let mut page = Page::new(options.width.max(LEAST_WIDTH), options.color);
    headline::write(&mut page, problem, report);
    if let Some(schedule) = report.outcome.schedule().map(AsRef::as_ref) {
        steady::write(&mut page, problem, schedule);
        unroll::write(&mut page, problem, schedule);
        steady::write_utilisation(&mut page, problem, schedule);
        operations::write(&mut page, problem, schedule);
        storage::write(&mut page, problem, schedule);
    }
    search::write(&mut page, report);
    page.finish()
}
