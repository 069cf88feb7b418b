//! Several loops: the resources that they share, before each of them.

use crate::ink::{Ink, Line, Page};
use crate::search;
use crate::table::{Align, Table};
use crate::words;
use std::collections::BTreeSet;
use twill_graph::{CommonGroups, LoopOperation, MultiLoopProblem, MultiLoopReport, Outcome, RejectionReason, Schedule};

/// Excluded vectors that are shown.
const MOST_REJECTIONS: usize = 12;

/// Writes the outcome for all loops, their common groups, and what the search found out.
pub(crate) fn write<S: AsRef<Schedule>>(page: &mut Page, kernel: &MultiLoopProblem, report: &MultiLoopReport<S>) {
    let loops = words::count(kernel.loops().len() as i128, "loop");
    let machine = kernel.loops().first().map_or("", |p| p.resources().name.as_str());
    let title =
        Line::of(kernel.name(), Ink::Bold).and(&format!(" on {machine}, {loops} with common warp groups"), Ink::Plain);
    page.line(&title);
    headline(page, kernel, report);
    intervals(page, kernel, report);
    if let Some(common) = report.outcome.schedule() {
        groups(page, kernel, report, common);
    }
    if !report.objectives.is_empty() {
        page.heading("Objectives of all loops after the sum, in this order");
        let mut table = Table::new().column("objective", Align::Left, 0).column("value", Align::Right, 0).column(
            "proof",
            Align::Left,
            0,
        );
        for objective in &report.objectives {
            let of = objective.index.map_or(String::new(), |k| format!(" of loop {k}"));
            table.row(vec![
                format!("{}{of}", search::level(objective.level)),
                words::grouped(objective.value),
                search::proof(objective.proved).into(),
            ]);
        }
        table.write(page);
    }
    if !report.rejections.is_empty() {
        page.heading("Intervals excluded together");
        for rejection in report.rejections.iter().take(MOST_REJECTIONS) {
            let each: Vec<String> = rejection.intervals.iter().map(|i| words::grouped(i.0)).collect();
            let smaller = if rejection.smaller { ", and all below" } else { "" };
            let text = format!("I = ({}){smaller}: {}.", each.join(", "), words::rejection(&rejection.reason));
            page.paragraph(2, &text, Ink::Plain);
        }
        if report.rejections.len() > MOST_REJECTIONS {
            page.paragraph(2, &format!("… and {} more.", report.rejections.len() - MOST_REJECTIONS), Ink::Dim);
        }
    }
    search::times(page, &report.phases);
}

fn headline<S>(page: &mut Page, kernel: &MultiLoopProblem, report: &MultiLoopReport<S>) {
    for (text, ink) in known(kernel, report) {
        page.paragraph(0, &text, ink);
    }
    let weights: Vec<String> = kernel.weights().iter().map(|w| words::grouped(i128::from(*w))).collect();
    page.paragraph(0, &format!("Weights: {}.", weights.join(", ")), Ink::Dim);
}

/// The result for all loops together, or the reason for none.
pub(crate) fn known<S>(kernel: &MultiLoopProblem, report: &MultiLoopReport<S>) -> Vec<(String, Ink)> {
    let sum = |cycles: &CommonGroups| format!("Sum of weight times I = {}", words::count(cycles.cycles.0, "cycle"));
    let lower = report.lower_bound;
    match &report.outcome {
        Outcome::Optimal { schedule } => {
            let proved = kernel.loops().first().map_or("optimal: proved".to_owned(), words::optimal);
            vec![(format!("{} ({proved})", sum(schedule)), Ink::Good)]
        }
        Outcome::Feasible { schedule } => {
            let gap = words::percent(i128::from(schedule.cycles.0 - lower.0), i128::from(lower.0));
            let text =
                format!("{} (feasible: at least {} is proved, gap {gap})", sum(schedule), words::grouped(lower.0));
            vec![(text, Ink::Hue(1))]
        }
        Outcome::Infeasible { reason } => {
            let text = match reason {
                RejectionReason::Exhausted { largest, all: false } => {
                    format!("No schedules exist with I <= {} (infeasible: proved).", words::grouped(largest.0))
                }
                _ => "No schedules exist at any intervals (infeasible: proved).".to_owned(),
            };
            vec![(text, Ink::Bad), (format!("Reason: {}.", words::rejection(reason)), Ink::Plain)]
        }
        Outcome::Unknown { stopped_by } => vec![
            ("No schedules were found (unknown).".to_owned(), Ink::Bad),
            (format!("The search was stopped by: {stopped_by}."), Ink::Plain),
        ],
    }
}

/// One line a loop.
fn intervals<S: AsRef<Schedule>>(page: &mut Page, kernel: &MultiLoopProblem, report: &MultiLoopReport<S>) {
    page.heading("Loops");
    let mut table = Table::new()
        .column("loop", Align::Left, 0)
        .column("weight", Align::Right, 1)
        .column("I", Align::Right, 0)
        .column("by itself", Align::Right, 0)
        .column("N", Align::Right, 2)
        .column("L", Align::Right, 2);
    for ((problem, weight), own) in kernel.loops().iter().zip(kernel.weights()).zip(&report.loops) {
        let schedule = own.outcome.schedule().map(AsRef::as_ref);
        let shown = |value: Option<i64>| value.map_or("-".to_owned(), words::grouped);
        table.row(vec![
            problem.graph().name().to_owned(),
            words::grouped(i128::from(*weight)),
            shown(schedule.map(|s| s.interval.0)),
            format!(">= {}", words::grouped(own.lower_bound.interval.0)),
            shown(schedule.map(|s| s.stages().into())),
            shown(schedule.map(|s| s.length.0)),
        ]);
    }
    table.write(page);
}

fn groups<S: AsRef<Schedule>>(
    page: &mut Page,
    kernel: &MultiLoopProblem,
    report: &MultiLoopReport<S>,
    common: &CommonGroups,
) {
    page.heading("Common warp groups");
    let mut table = Table::new()
        .column("group", Align::Right, 0)
        .column("role", Align::Left, 0)
        .column("warps", Align::Right, 2)
        .column("registers a thread", Align::Right, 0)
        .column("operations in each loop", Align::Left, 1);
    for group in &common.groups {
        let on = |s: &Schedule| s.placements.iter().filter(|p| p.group == group.id).count().to_string();
        let schedules = report.loops.iter().filter_map(|r| r.outcome.schedule());
        let operations: Vec<String> = schedules.map(|s| on(s.as_ref())).collect();
        table.row(vec![
            group.id.index().to_string(),
            group.role.to_string(),
            group.warps.to_string(),
            group.registers_per_thread.to_string(),
            operations.join(", "),
        ]);
    }
    table.write(page);
    let tied: BTreeSet<LoopOperation> = kernel.ties().iter().flat_map(|t| t.operations.iter().copied()).collect();
    let count = |index: usize| tied.iter().filter(|o| o.index == index).count();
    let each = kernel.loops().iter().enumerate();
    let each: Vec<String> = each.map(|(k, p)| format!("{} of {}", count(k), p.graph().operations().len())).collect();
    page.paragraph(2, &format!("Operations tied to another loop's: {}.", each.join(", ")), Ink::Plain);
}
