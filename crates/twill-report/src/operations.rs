//! The table of operations.

use crate::ink::{Ink, Page};
use crate::table::{Align, Table};
use crate::words;
use std::collections::BTreeSet;
use twill_graph::{Problem, Schedule, Source};

/// Name of the file, without its folder.
fn file(source: &Source) -> &str {
    source.file.rsplit(['/', '\\']).next().unwrap_or(&source.file)
}

/// Writes every operation with its place, in the order of issue.
pub(crate) fn write(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let graph = problem.graph();
    page.heading("Operations");
    let files: BTreeSet<&str> = graph.operations().iter().filter_map(|op| op.source.as_ref()).map(file).collect();
    let only = files.first().filter(|_| files.len() == 1);
    if let Some(only) = only {
        page.paragraph(2, &format!("Lines are of {only}."), Ink::Dim);
    }
    let mut table = Table::new()
        .column("operation", Align::Left, 0)
        .column("kind", Align::Left, 6)
        .column("line", if only.is_some() { Align::Right } else { Align::Left }, 3)
        .column("cycle", Align::Right, 0)
        .column("stage", Align::Right, 2)
        .column("slot", Align::Right, 7)
        .column("group", Align::Right, 1)
        .column("unit", Align::Left, 5)
        .column("cycles", Align::Right, 4)
        .column("runs", Align::Left, 8);
    let mut order: Vec<_> = graph.op_ids().collect();
    order.sort_by_key(|&op| (schedule.placement(op).cycle, op));
    for id in order {
        let op = graph.operation(id);
        let place = schedule.placement(id);
        let units: Vec<&str> = op.reservations.iter().map(|r| r.unit.as_str()).collect();
        table.row(vec![
            op.name.clone(),
            op.kind.clone(),
            op.source.as_ref().map_or_else(String::new, |source| match only {
                Some(_) => source.line.to_string(),
                None => format!("{}:{}", file(source), source.line),
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
