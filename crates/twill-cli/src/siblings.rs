//! Loops of one kernel that are scheduled together (docs/model.md, "Sibling loops").

use crate::arguments::{Format, ScheduleArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::{certificate, files, loop_text, pictures};
use twill_check::Verified;
use twill_exact::Budget;
use twill_graph::format::{KernelScheduleFile, ScheduleFile};
use twill_graph::{MultiLoopProblem, MultiLoopReport, Schedule};

/// Writes what was found.
pub(crate) fn write(
    arguments: &ScheduleArguments,
    kernel: &MultiLoopProblem,
    report: &MultiLoopReport<Verified<Schedule>>,
    budget: &Budget,
) -> Result<Exit, Error> {
    if let Some(folder) = &arguments.certificate {
        let loops = kernel.loops().iter().zip(&report.loops).map(|(p, r)| (p, r, ScheduleFile::new(p, r)));
        let together = KernelScheduleFile::new(kernel, report).to_json() + "\n";
        certificate::certify(folder, &arguments.search, loops, Some(&together), budget)?;
    }
    if let Some(text) = render(arguments, kernel, report) {
        files::write(arguments.page.output.as_deref(), &text)?;
    }
    Ok(Exit::of(report.outcome.status()))
}

/// What is written; `None` where there is nothing to draw.
fn render(
    arguments: &ScheduleArguments,
    kernel: &MultiLoopProblem,
    report: &MultiLoopReport<Verified<Schedule>>,
) -> Option<Vec<u8>> {
    let text = match arguments.format() {
        Format::Json => KernelScheduleFile::new(kernel, report).to_json() + "\n",
        Format::Text => twill_report::kernel_text(kernel, report, arguments.page.text_options()),
        Format::Pseudocode => {
            let each = kernel.loops().iter().zip(&report.loops);
            each.map(|(p, own)| loop_text::pseudocode(arguments, p, own)).collect::<Vec<_>>().join("\n")
        }
        picture @ (Format::Perfetto | Format::Svg | Format::GraphSvg | Format::Dot) => {
            let loops: Vec<_> = kernel.loops().iter().zip(&report.loops).collect();
            return pictures::render(arguments.iterations, picture, &loops);
        }
    };
    Some(text.into_bytes())
}
