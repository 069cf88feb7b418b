//! The search's results besides the schedule: objectives, excluded intervals, times.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::words;
use twill_graph::{ObjectiveLevel, Phase, Rejection, RejectionReason, Report};

/// Writes objectives, rejections and the time of each phase.
pub(crate) fn write<S>(page: &mut Page, report: &Report<S>) {
    if !report.objectives.is_empty() {
        page.heading("Objectives after I, in this order");
        let mut table = Table::new().column("objective", Align::Left, 0).column("value", Align::Right, 0).column(
            "proof",
            Align::Left,
            0,
        );
        for objective in &report.objectives {
            table.row(vec![
                level(objective.level).into(),
                words::grouped(objective.value),
                proof(objective.proved).into(),
            ]);
        }
        table.write(page);
    }
    if !report.rejections.is_empty() {
        rejections(page, &report.rejections);
    }
    times(page, &report.phases);
}

/// Writes the time of each phase.
pub(crate) fn times(page: &mut Page, phases: &[Phase]) {
    if phases.is_empty() {
        return;
    }
    page.heading("Time");
    let mut table = Table::new().column("phase", Align::Left, 0).column("time", Align::Right, 0);
    for phase in phases {
        table.row(vec![phase.name.clone(), words::seconds(phase.seconds)]);
    }
    table.row(vec!["total".into(), words::seconds(phases.iter().map(|p| p.seconds).sum())]);
    table.write(page);
}

/// The result for a level of the objective.
pub(crate) fn proof(proved: bool) -> &'static str {
    if proved { "proved least" } else { "not proved" }
}

/// A level of the objective in words.
pub(crate) fn level(level: ObjectiveLevel) -> &'static str {
    match level {
        ObjectiveLevel::Stages => "overlapped iterations N",
        ObjectiveLevel::ComputeGroups => "compute groups",
        ObjectiveLevel::HandoffWords => "handoff words / 64",
        ObjectiveLevel::Channels => "channels",
        ObjectiveLevel::Length => "length L",
        ObjectiveLevel::RegistersPerThread => "registers a thread",
    }
}

/// Neighbouring rejections for the same reason.
struct Range {
    first: Rejection,
    last: Rejection,
    count: usize,
    contiguous: bool,
    reason: RejectionReason,
}

/// The reason with the counts of both, if it is the same reason.
fn joined(a: &RejectionReason, b: &RejectionReason) -> Option<RejectionReason> {
    match (a, b) {
        (RejectionReason::Throughput { conflicts: x }, RejectionReason::Throughput { conflicts: y }) => {
            Some(RejectionReason::Throughput { conflicts: x.saturating_add(*y) })
        }
        (RejectionReason::Search { conflicts: x }, RejectionReason::Search { conflicts: y }) => {
            Some(RejectionReason::Search { conflicts: x.saturating_add(*y) })
        }
        _ => (a == b).then(|| a.clone()),
    }
}

/// Which numbers of stages the search covered, if that is not all of them.
fn stages(range: &Range) -> String {
    match (range.first.stages, range.last.stages) {
        (Some(a), Some(b)) => format!(" with N <= {}", a.min(b)),
        (Some(n), None) | (None, Some(n)) => format!(" with N <= {n}"),
        (None, None) => String::new(),
    }
}

fn rejections(page: &mut Page, all: &[Rejection]) {
    const MOST_RANGES: usize = 12;
    let ranges = excluded(all);
    page.heading("Excluded intervals");
    for (intervals, why) in ranges.iter().take(MOST_RANGES) {
        page.paragraph(2, &format!("{intervals}: {why}."), Ink::Plain);
    }
    if ranges.len() > MOST_RANGES {
        page.paragraph(2, &format!("… and {} more ranges.", ranges.len() - MOST_RANGES), Ink::Dim);
    }
}

/// Excluded intervals in words, and why; neighbours of one reason together.
pub(crate) fn excluded(all: &[Rejection]) -> Vec<(String, String)> {
    let mut ranges: Vec<Range> = Vec::new();
    for rejection in all {
        if let Some(range) = ranges.last_mut()
            && let Some(reason) = joined(&range.reason, &rejection.reason)
        {
            range.contiguous &= rejection.interval.0 <= range.last.interval.0.saturating_add(1);
            range.count += 1;
            range.last = rejection.clone();
            range.reason = reason;
            continue;
        }
        ranges.push(Range {
            first: rejection.clone(),
            last: rejection.clone(),
            count: 1,
            contiguous: true,
            reason: rejection.reason.clone(),
        });
    }
    let told = |range: &Range| {
        let (first, last) = (range.first.interval.0, range.last.interval.0);
        let interval = match range.count {
            1 => format!("I = {}", words::grouped(first)),
            n if range.contiguous => {
                format!("I = {} to {} ({n})", words::grouped(first), words::grouped(last))
            }
            n => format!("{n} of I = {} to {}", words::grouped(first), words::grouped(last)),
        };
        (format!("{interval}{}", stages(range)), words::rejection(&range.reason))
    };
    ranges.iter().map(told).collect()
}
