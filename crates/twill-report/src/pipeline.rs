//! A pipeline without warps: interval and length with their proofs, one steady-state iteration on the functional units, and
//! when each operation issues.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::{TextOptions, search, steady, words};
use twill_check::Verified;
use twill_graph::{Outcome, Pipeline, Problem, RejectionReason, Report, Schedule};

/// A report as text, no line of it wider than `options.width` (or 40, if that is more).
pub fn pipeline_text(problem: &Problem, report: &Report<Verified<Pipeline>>, options: TextOptions) -> String {
    let mut page = Page::new(options.width.max(crate::LEAST_WIDTH), options.color);
    let size = words::count(problem.graph().operations().len() as i128, "operation");
    let title = format!("{} on {}, {size}", problem.graph().name(), problem.resources().name);
    page.paragraph(0, &title, Ink::Bold);
    let known = match (&report.outcome, report.outcome.schedule()) {
        (Outcome::Optimal { .. }, Some(p)) => {
            format!("I = {} ({})", words::count(p.interval.0, "cycle"), words::optimal(problem))
        }
        (_, Some(p)) => {
            format!("I = {} (feasible: optimality not proved)", words::count(p.interval.0, "cycle"))
        }
        (Outcome::Infeasible { reason: RejectionReason::Exhausted { largest, all: false } }, _) => {
            format!("No pipeline exists with I <= {} (infeasible: proved).", words::grouped(largest.0))
        }
        (Outcome::Unknown { stopped_by }, _) => {
            format!("No pipeline was found; the search was stopped by: {stopped_by}.")
        }
        _ => "No pipeline exists at any interval (infeasible: proved).".to_owned(),
    };
    page.paragraph(0, &known, if report.outcome.schedule().is_some() { Ink::Good } else { Ink::Bad });
    if let Some(pipeline) = report.outcome.schedule() {
        let least = report.modulo.is_some_and(|m| m.length_proved);
        let text = format!(
            "N = {}, L = {} ({})",
            words::count(pipeline.stages(), "overlapped iteration"),
            words::count(pipeline.length.0, "cycle"),
            if least { "least at this I: proved" } else { "not proved least" }
        );
        page.paragraph(0, &text, Ink::Plain);
    }
    page.paragraph(0, &format!("Bound: {}.", words::bounded(&report.lower_bound)), Ink::Plain);
    page.paragraph(
        0,
        "Software pipelining alone: dependences and functional units. No warps, registers or memories: this is no \
         schedule that could run.",
        Ink::Dim,
    );
    if let Some(pipeline) = report.outcome.schedule() {
        let times = pipeline.times_alone();
        steady::write(&mut page, problem, &times);
        steady::write_utilisation(&mut page, problem, &times);
        operations(&mut page, problem, &times);
    }
    search::write(&mut page, report);
    page.finish()
}

/// Writes when every operation issues, in that order.
fn operations(page: &mut Page, problem: &Problem, times: &Schedule) {
    let graph = problem.graph();
    page.heading("Operations");
    let mut table = Table::new()
        .column("operation", Align::Left, 0)
        .column("kind", Align::Left, 3)
        .column("cycle", Align::Right, 0)
        .column("stage", Align::Right, 1)
        .column("slot", Align::Right, 2)
        .column("unit", Align::Left, 4)
        .column("cycles", Align::Right, 5);
    let mut order: Vec<_> = graph.op_ids().collect();
    order.sort_by_key(|&op| (times.placement(op).cycle, op));
    for id in order {
        let op = graph.operation(id);
        let units: Vec<&str> = op.reservations.iter().map(|r| r.unit.as_str()).collect();
        table.row(vec![
            op.name.clone(),
            op.kind.clone(),
            words::grouped(times.placement(id).cycle.0),
            words::grouped(times.stage(id)),
            words::grouped(times.slot(id).0),
            units.join("+"),
            words::grouped(op.occupancy.0),
        ]);
    }
    table.write(page);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::fixtures::{optimal, toy_attention};

    #[test]
    fn only_what_is_proved_is_called_optimal() {
        let (problem, schedule) = toy_attention();
        let cycles = schedule.placements.iter().map(|placed| placed.cycle).collect();
        let pipeline = Pipeline { interval: schedule.interval, length: schedule.length, cycles };
        let verified = twill_check::verify_pipeline(&problem, pipeline).unwrap();
        let proved = optimal(schedule, "tensor", &["S"]).try_map(|_| Ok::<_, ()>(verified.clone())).unwrap();
        let feasible = Report { outcome: Outcome::Feasible { schedule: verified }, ..proved.clone() };
        let text = |report| pipeline_text(&problem, report, TextOptions::default());
        assert!(text(&proved).contains("(optimal"), "{}", text(&proved));
        assert!(text(&feasible).contains("(feasible: optimality not proved)") && !text(&feasible).contains("(optimal"));
    }
}
