//! Text on a loop's schedule that several commands print.

use crate::arguments::ScheduleArguments;
use twill_check::Verified;
use twill_driver::LoopProblem;
use twill_graph::format::NormalisationEntry;
use twill_graph::{Problem, Report, Schedule};

/// A note on normalised costs, where they are.
pub(crate) fn normalised(one: &LoopProblem, options: twill_report::TextOptions) -> String {
    one.normalisation.map_or(String::new(), |n| {
        let percent = (n.distortion - 1.0) * 100.0;
        let NormalisationEntry { limit, error, .. } = n;
        let text = format!(
            "costs normalised to a sum of at most {limit}: error F = {error} (proved least), \
             ratios within {percent:.1} %; cycles below are normalised\n\n"
        );
        twill_report::folded(&text, options.width)
    })
}

pub(crate) fn pseudocode(
    arguments: &ScheduleArguments,
    problem: &Problem,
    report: &Report<Verified<Schedule>>,
) -> String {
    match report.outcome.schedule() {
        Some(schedule) => twill_codegen::pseudocode(problem, schedule, arguments.page.text_options().width),
        // There is no program: say why instead.
        None => {
            let width = arguments.page.text_options().width.saturating_sub(2);
            let options = twill_report::TextOptions { width, color: false };
            let why = twill_report::text(problem, report, options);
            why.lines().map(|l| format!("# {l}").trim_end().to_owned() + "\n").collect()
        }
    }
}
