//! The table of operations.

use crate::ink::Page;
use crate::table::{Align, Table};
use crate::words;
use twill_graph::{Problem, Schedule};

/// Writes every operation with its place, in the order of issue.
pub(crate) fn write(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let graph = problem.graph();
    page.heading("Operations");
    let mut table = Table::new()
        .column("operation", Align::Left, 0)
        .column("kind", Align::Left, 4)
        .column("source", Align::Left, 6)
        .column("cycle", Align::Right, 0)
        .column("stage", Align::Right, 2)
        .column("slot", Align::Right, 3)
        .column("group", Align::Right, 1)
        .column("unit", Align::Left, 5)
        .column("cycles", Align::Right, 4)
        .column("runs", Align::Left, 7);
    let mut order: Vec<_> = graph.op_ids().collect();
    order.sort_by_key(|&op| (schedule.placement(op).cycle, op));
    for id in order {
        let op = graph.operation(id);
        let place = schedule.placement(id);
        let units: Vec<&str> = op.reservations.iter().map(|r| r.unit.as_str()).collect();
        table.row(vec![
            op.name.clone(),
            op.kind.clone(),
            op.source.as_ref().map_or_else(String::new, |s| {
                let file = s.file.rsplit(['/', '\\']).next().unwrap_or(&s.file);
                format!("{file}:{}", s.line)
            }),
            words::grouped(place.cycle.0),
            words::grouped(schedule.stage(id)),
            words::grouped(schedule.slot(id).0),
            place.group.index().to_string(),
            units.join("+"),
            words::grouped(op.occupancy.0),
            if op.is_synchronous() { "sync".into() } else { "async".into() },
        ]);
    }
    table.write(page);
}
