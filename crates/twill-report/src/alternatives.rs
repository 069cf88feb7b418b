//! Several schedules of one problem side by side.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::words;
use crate::{LEAST_WIDTH, TextOptions};
use twill_check::Verified;
use twill_graph::{ObjectiveLevel, Report, Schedule};

/// Differences of one schedule that are shown.
const MOST_DIFFERENCES: usize = 6;

/// Several schedules of one problem as text: a table of what the objective says of each, in how each after the first
/// differs from the first (in words, the most important first), and what is known of their number.
pub fn alternatives_text(
    each: &[(&Report<Verified<Schedule>>, &[String])],
    told: &str,
    options: TextOptions,
) -> String {
    let mut page = Page::new(options.width.max(LEAST_WIDTH), options.color);
    page.heading("Different schedules, the best first");
    let mut table = Table::new()
        .column("", Align::Right, 0)
        .column("I", Align::Right, 0)
        .column("N", Align::Right, 0)
        .column("L", Align::Right, 0)
        .column("groups", Align::Right, 1)
        .column("handoff words", Align::Right, 4)
        .column("channels", Align::Right, 3)
        .column("registers a thread", Align::Right, 2);
    for (index, (report, _)) in each.iter().enumerate() {
        let Some(schedule) = report.outcome.schedule() else { continue };
        let value = |level| {
            let known = report.objectives.iter().find(|o| o.level == level);
            known.map_or("-".to_owned(), |o| words::grouped(o.value))
        };
        table.row(vec![
            (index + 1).to_string(),
            words::grouped(schedule.interval.0),
            schedule.stages().to_string(),
            words::grouped(schedule.length.0),
            value(ObjectiveLevel::ComputeGroups),
            value(ObjectiveLevel::HandoffWords),
            value(ObjectiveLevel::Channels),
            value(ObjectiveLevel::RegistersPerThread),
        ]);
    }
    table.write(&mut page);
    page.paragraph(2, told, Ink::Plain);
    if each.len() > 1 {
        page.heading("Against the first");
        for (index, (_, differences)) in each.iter().enumerate().skip(1) {
            page.paragraph(2, &format!("{}: {}.", index + 1, self::differences(differences)), Ink::Plain);
        }
    }
    page.finish()
}

/// The most important differences of a schedule from another, in words, on one line.
pub fn differences(all: &[String]) -> String {
    let mut shown = all.iter().take(MOST_DIFFERENCES).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > MOST_DIFFERENCES {
        shown += &format!("; and {} more", all.len() - MOST_DIFFERENCES);
    }
    shown
}
