//! The first iterations as they overlap, by warp group.

use crate::ink::{Ink, Page, columns};
use crate::steady::group_label;
use crate::timeline::{self, Axis, Bar, Label, Short};
use twill_graph::saturate;
use twill_graph::{Execution, GroupId, LoopGraph, OpId, Problem, Schedule};

const FILLS: [char; 3] = ['─', '═', '~'];
/// The first characters of the bars of iterations, for those too short to be filled.
const EDGES: [char; 3] = [timeline::EDGE, '▎', '▊'];

/// Bars of the first iterations' operations of one kind on one group.
fn bars(graph: &LoopGraph, schedule: &Schedule, group: GroupId, execution: Execution, iterations: u32) -> Vec<Bar> {
    let here = |op: &OpId| schedule.placement(*op).group == group && graph.operation(*op).execution == execution;
    let of = |op: OpId| {
        (0..iterations).map(move |i| {
            let start = schedule.placement(op).cycle + schedule.interval * i;
            Bar {
                start: start.0,
                end: (start + graph.operation(op).span()).0,
                edge: EDGES[i as usize % EDGES.len()],
                label: Label { prefix: format!("{i}:"), name: graph.operation(op).name.clone(), suffix: String::new() },
                fill: FILLS[i as usize % FILLS.len()],
                ink: Ink::Hue(i as usize),
                from_left: false,
                to_right: false,
            }
        })
    };
    graph.op_ids().filter(here).flat_map(of).collect()
}

/// Writes the timeline of the first two or three iterations.
pub(crate) fn write(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let graph = problem.graph();
    let iterations = schedule.stages().clamp(2, 3);
    page.heading(&format!("The first {iterations} iterations"));
    let group_rows = schedule.groups.iter().map(|g| columns(&group_label(g.id)) + 6);
    let label = group_rows.max().unwrap_or(0).min(page.width() / 3) + 4;
    let span = schedule.interval.0.saturating_mul(i64::from(iterations) - 1).saturating_add(schedule.length.0);
    let axis = Axis::new(span, page.width().saturating_sub(label + 1), schedule.interval.0);
    let marks: Vec<i64> = {
        // Marks that would fill the page say nothing.
        let step = schedule.interval.0.max(1);
        let count = saturate::<usize>(span / step);
        if count > axis.columns() / 3 { Vec::new() } else { (1..).map(|k| k * step).take(count).collect() }
    };
    let unit = schedule.interval.0;
    let step = axis.step(unit);
    // On a coarse scale, the multiples of the interval.
    let step = if step < unit || unit % 2 == 1 { step } else { step.div_euclid(unit).max(1) * unit };
    page.line(&axis.ruler(label, step));
    let names: Vec<&str> = graph.operations().iter().map(|op| op.name.as_str()).collect();
    let mut short = Short::default();
    for group in &schedule.groups {
        let name = group_label(group.id);
        for (what, execution) in [("work", Execution::Synchronous), ("async", Execution::Asynchronous)] {
            let bars = bars(graph, schedule, group.id, execution, iterations);
            short += timeline::write(page, &axis, (&format!("  {name} {what}"), label), bars, &names, &marks);
        }
    }
    let fills: Vec<String> = (0..iterations)
        .map(|i| format!("{1}{i}:x{0}{0}{0}", FILLS[i as usize % FILLS.len()], EDGES[i as usize % EDGES.len()]))
        .collect();
    let mut legend = format!("{}; iterations: {}", axis.scale(), fills.join(" "));
    if !marks.is_empty() {
        legend.push_str("; |: a multiple of I");
    }
    if graph.operations().iter().any(|op| op.streaming) {
        legend.push_str("; streaming loads are shown at their latest, they run ahead as far as their rings allow");
    }
    legend.push_str(&short.told());
    page.paragraph(2, &format!("{legend}."), Ink::Dim);
}
