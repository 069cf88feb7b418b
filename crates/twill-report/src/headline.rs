//! The first lines: what was reached, how sure that is, and what bounds it.

use crate::ink::{Ink, Line, Page, columns, elide};
use crate::{estimate, words};
use twill_graph::{ModuloSchedule, Outcome, Problem, RejectionReason, Report, Schedule};

/// Writes name, machine, status, interval, stages, length and bound.
pub(crate) fn write<S: AsRef<Schedule>>(page: &mut Page, problem: &Problem, report: &Report<S>) {
    let graph = problem.graph();
    let operations = words::count(graph.operations().len() as i128, "operation");
    let machine = format!(" on {}", problem.resources().name);
    let name = elide(graph.name(), page.width().saturating_sub(columns(&machine)));
    let mut title = Line::of(&name, Ink::Bold).and(&machine, Ink::Plain);
    let operations = format!(", {operations}");
    if title.columns() + columns(&operations) <= page.width() {
        title.push(&operations, Ink::Dim);
    }
    page.line(&title);
    for (text, ink) in known(problem, report) {
        page.paragraph(0, &text, ink);
    }
    estimate::write(page, report);
    page.paragraph(0, &estimate::space(problem, report), Ink::Plain);
    page.paragraph(0, &format!("Bound: {}.", words::bounded(&report.lower_bound)), Ink::Plain);
    if let Some(ModuloSchedule { initiation_interval: interval, length, length_proved }) = report.modulo {
        let relation = if length_proved { "=" } else { "<=" };
        let (interval, length) = (words::grouped(interval.0), words::grouped(length.0));
        let text = format!("Without warps: I = {interval}, L {relation} {length}.");
        page.paragraph(0, &text, Ink::Dim);
    }
}

/// The result, or the reason for none, in two lines.
pub(crate) fn known<S: AsRef<Schedule>>(problem: &Problem, report: &Report<S>) -> [(String, Ink); 2] {
    let lower = &report.lower_bound;
    match &report.outcome {
        Outcome::Optimal { schedule } => reached(schedule.as_ref(), &words::optimal(problem), Ink::Good),
        Outcome::Feasible { schedule } => {
            let interval = schedule.as_ref().interval;
            let gap = words::percent(i128::from(interval.0 - lower.interval.0), i128::from(lower.interval.0));
            let status = if interval <= lower.interval {
                "feasible, at the bound".to_owned()
            } else {
                format!("feasible: at least {} is proved, gap {gap}", words::grouped(lower.interval.0))
            };
            reached(schedule.as_ref(), &status, Ink::Hue(1))
        }
        Outcome::Infeasible { reason } => {
            let text = match reason {
                RejectionReason::Exhausted { largest, all: false } => {
                    format!("No schedule exists with I <= {} (infeasible: proved).", words::grouped(largest.0))
                }
                _ => words::nothing_exists(problem) + ".",
            };
            [(text, Ink::Bad), (format!("Reason: {}.", words::rejection(reason)), Ink::Plain)]
        }
        Outcome::Unknown { stopped_by } => [
            ("No schedule was found (unknown).".to_owned(), Ink::Bad),
            (format!("The search was stopped by: {stopped_by}."), Ink::Plain),
        ],
    }
}

fn reached(schedule: &Schedule, status: &str, ink: Ink) -> [(String, Ink); 2] {
    let interval = format!("I = {} ({status})", words::count(schedule.interval.0, "cycle"));
    let text = format!(
        "N = {}, L = {}, {} in use",
        words::count(schedule.stages(), "overlapped iteration"),
        words::count(schedule.length.0, "cycle"),
        words::count(schedule.groups.len() as i128, "warp group")
    );
    [(interval, ink), (text, Ink::Plain)]
}
