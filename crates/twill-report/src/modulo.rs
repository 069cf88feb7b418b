//! A modulo schedule without warps: the interval with its proof, and what fills each limited resource.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::{TextOptions, words};
use twill_check::Verified;
use twill_graph::{Cycles, IssueTimes, ModuloProblem, Outcome, Report, UnitId};

/// A report as text, no line of it wider than `options.width` (or 40, if that is more).
pub fn modulo_text(problem: &ModuloProblem, report: &Report<Verified<IssueTimes>>, options: TextOptions) -> String {
    let mut page = Page::new(options.width.max(crate::LEAST_WIDTH), options.color);
    let limited = problem.operations().iter().filter(|op| problem.resources()[op.resource.index()].limit.is_some());
    let title = format!(
        "{}: {}, {} of them on limited resources, {}",
        problem.name(),
        words::count(problem.operations().len() as i64, "operation"),
        limited.count(),
        words::count(problem.dependences().len() as i64, "dependence"),
    );
    page.paragraph(0, &title, Ink::Plain);
    let schedule = report.outcome.schedule();
    let known = match (&report.outcome, schedule) {
        (Outcome::Optimal { .. }, Some(s)) => format!("I = {} cycles (optimal: proved)", words::grouped(s.interval.0)),
        (_, Some(s)) => format!(
            "I = {} cycles (not proved least: I >= {})",
            words::grouped(s.interval.0),
            words::grouped(report.lower_bound.interval.0)
        ),
        (Outcome::Unknown { stopped_by }, None) => format!("no schedule found yet: stopped by {stopped_by}"),
        (_, None) => "no schedule exists".into(),
    };
    page.paragraph(0, &known, Ink::Bold);
    page.paragraph(0, &format!("Bound: {}.", words::bounded(&report.lower_bound)), Ink::Plain);
    if let Some(schedule) = schedule {
        let length = schedule.times.iter().max().map_or(0, |t| t.0) + 1;
        let overlap = words::count(schedule.stages(), "overlapped iteration");
        page.paragraph(0, &format!("{overlap}; the last operation starts at cycle {}.", length - 1), Ink::Plain);
        resources(&mut page, problem, schedule.interval);
    }
    crate::search::write(&mut page, report);
    page.finish()
}

fn resources(page: &mut Page, problem: &ModuloProblem, interval: Cycles) {
    page.heading("Limited resources");
    let mut table = Table::new().column("resource", Align::Left, 0).column("instances", Align::Right, 0);
    table = table.column("operations", Align::Right, 0).column("in use", Align::Right, 0);
    for (index, resource) in problem.resources().iter().enumerate() {
        let Some(limit) = resource.limit else { continue };
        let users = problem.operations().iter().filter(|op| op.resource == UnitId::new(index)).count();
        let busy = users as i128 * i128::from(resource.blocking);
        let share = words::percent(busy, i128::from(limit) * i128::from(interval.0));
        table.row(vec![resource.name.clone(), limit.to_string(), users.to_string(), share]);
    }
    table.write(page);
}
