//! One interval of the steady state, on functional units and warp groups, and how busy the units
//! are in it.

use crate::ink::{Ink, Page, columns, elide};
use crate::table::{Align, Table};
use crate::timeline::{self, Axis, Bar, Label, Short};
use crate::words;
use twill_graph::saturate;
use twill_graph::{Cycles, GroupId, LoopGraph, OpId, Problem, Schedule, UnitId};

/// Bars wrap around the end of the interval at most this often.
const MOST_WRAPS: i64 = 6;

/// After a name: nothing, `'` one stage later, `'4` four stages later.
fn primes(stage: i64) -> String {
    match usize::try_from(stage) {
        Ok(primes @ 0..=3) => "'".repeat(primes),
        _ => format!("'{stage}"),
    }
}

/// Operations of one sub-tile share a colour.
pub(crate) fn ink(graph: &LoopGraph, op: OpId) -> Ink {
    graph.operation(op).sub_tile.map_or(Ink::Plain, |s| Ink::Hue(s as usize))
}

/// Label of a group in timelines.
pub(crate) fn group_label(group: GroupId) -> String {
    format!("group {}", group.index())
}

/// A stretch of time folded into `[0, interval)`.
fn fold(start: i64, cycles: i64, interval: i64, bar: &Bar) -> Vec<Bar> {
    let mut pieces = Vec::new();
    let first = start.rem_euclid(interval);
    let end = first.saturating_add(cycles.max(1));
    let mut from = 0;
    while from < end && saturate::<i64>(pieces.len()) < MOST_WRAPS {
        let begin = from.max(first);
        let stop = end.min(from + interval);
        pieces.push(Bar {
            start: begin - from,
            end: stop - from,
            from_left: begin > first,
            to_right: stop < end,
            ..bar.clone()
        });
        from += interval;
    }
    // The name stands in the longest part.
    let longest = (0..pieces.len()).max_by_key(|&k| (pieces[k].end - pieces[k].start, std::cmp::Reverse(k)));
    for (k, piece) in pieces.iter_mut().enumerate() {
        if Some(k) != longest {
            piece.label = Label::default();
        }
    }
    pieces
}

fn bar(graph: &LoopGraph, schedule: &Schedule, op: OpId) -> Bar {
    Bar {
        start: 0,
        end: 0,
        edge: timeline::EDGE,
        label: Label { name: graph.operation(op).name.clone(), suffix: primes(schedule.stage(op)), ..Label::default() },
        fill: '─',
        ink: ink(graph, op),
        from_left: false,
        to_right: false,
    }
}

fn unit_bars(problem: &Problem, schedule: &Schedule, unit: UnitId) -> Vec<Bar> {
    let graph = problem.graph();
    let of = |op: OpId| {
        let reservations = graph.operation(op).reservations.iter().zip(problem.units_of(op));
        reservations.filter(move |(_, u)| **u == unit).flat_map(move |(r, _)| {
            let start = schedule.placement(op).cycle + r.start;
            fold(start.0, r.cycles.0, schedule.interval.0.max(1), &bar(graph, schedule, op))
        })
    };
    graph.op_ids().flat_map(of).collect()
}

fn work_bars(graph: &LoopGraph, schedule: &Schedule, group: GroupId) -> Vec<Bar> {
    let here = |op: &OpId| schedule.placement(*op).group == group && graph.operation(*op).is_synchronous();
    let of = |op: OpId| {
        let cycles = graph.operation(op).occupancy.0;
        fold(schedule.slot(op).0, cycles, schedule.interval.0.max(1), &bar(graph, schedule, op))
    };
    graph.op_ids().filter(here).flat_map(of).collect()
}

/// Marks where a group issues asynchronous operations, as wide as their names.
fn issue_marks(graph: &LoopGraph, schedule: &Schedule, group: GroupId, axis: &Axis) -> Vec<Bar> {
    let here = |op: &OpId| schedule.placement(*op).group == group && !graph.operation(*op).is_synchronous();
    let mut marks: Vec<Bar> = Vec::new();
    for op in graph.op_ids().filter(here) {
        let mut mark = Bar { edge: '^', fill: '·', ..bar(graph, schedule, op) };
        // In columns, not cycles: the names must not overlap.
        let width = 1 + columns(&mark.label.name) + columns(&mark.label.suffix);
        let at = axis.column(schedule.slot(op).0).min(axis.columns() - 1);
        (mark.start, mark.end) = (at as i64, (at + width + 1) as i64);
        if at + width > axis.columns() {
            // At the end of the row, the name stands before the mark.
            mark.label.suffix.push('^');
            mark.edge = '·';
            mark.start = at.saturating_sub(width) as i64;
            mark.end = at as i64 + 1;
        }
        marks.push(mark);
    }
    marks
}

/// Units that any operation holds, in the machine's order.
fn units_in_use(problem: &Problem) -> impl Iterator<Item = UnitId> {
    let units = problem.resources().units.len();
    (0..units).map(UnitId::new).filter(|u| problem.graph().op_ids().any(|op| problem.units_of(op).contains(u)))
}

/// Writes the timeline of the steady state.
pub(crate) fn write(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let graph = problem.graph();
    page.heading(&format!("Steady state, I = {}", words::grouped(schedule.interval.0)));
    let unit_name = |unit: UnitId| problem.resources().units[unit.index()].name.as_str();
    let names = units_in_use(problem).map(|u| columns(unit_name(u)));
    let groups = schedule.groups.iter().map(|g| columns(&group_label(g.id)) + 6);
    let label = names.chain(groups).max().unwrap_or(0).min(page.width() / 3) + 4;
    let axis = Axis::new(schedule.interval.0, page.width().saturating_sub(label + 1), schedule.interval.0);
    page.line(&axis.ruler(label, axis.step(schedule.interval.0)));
    let names: Vec<&str> = graph.operations().iter().map(|op| op.name.as_str()).collect();
    let mut short = Short::default();
    for unit in units_in_use(problem) {
        let name = format!("  {}", elide(unit_name(unit), label - 4));
        short += timeline::write(page, &axis, (&name, label), unit_bars(problem, schedule, unit), &names, &[]);
    }
    for group in &schedule.groups {
        let name = format!("  {}", group_label(group.id));
        let work = format!("{name} work");
        short += timeline::write(page, &axis, (&work, label), work_bars(graph, schedule, group.id), &names, &[]);
        let marks = issue_marks(graph, schedule, group.id, &axis);
        let columns = Axis::new(axis.columns() as i64, axis.columns(), 1);
        let issue = format!("{name} issue");
        short += timeline::write(page, &columns, (&issue, label), marks, &names, &[]);
    }
    let mut legend = format!("{}; {}: a bar begins", axis.scale(), timeline::EDGE);
    let latest = graph.op_ids().map(|op| schedule.stage(op)).max().unwrap_or(0);
    if latest > 0 {
        legend.push_str("; x' is of the iteration before that of x");
    }
    if latest > 1 {
        legend.push_str(", x'' two before");
    }
    if graph.operations().iter().any(|op| !op.is_synchronous()) {
        legend.push_str("; ^x: x is issued here and runs by itself");
    }
    let wraps = |op: OpId| schedule.slot(op) + graph.operation(op).span() > schedule.interval;
    if graph.op_ids().any(wraps) {
        legend.push_str("; > <: goes on in the next interval");
    }
    legend.push_str(&short.told());
    page.paragraph(2, &format!("{legend}."), Ink::Dim);
}

/// Cycles for which one iteration holds a unit, over all instances.
fn busy(problem: &Problem, unit: UnitId) -> Cycles {
    let graph = problem.graph();
    let of = |op: OpId| {
        let reservations = graph.operation(op).reservations.iter().zip(problem.units_of(op));
        reservations.filter(|(_, u)| **u == unit).map(|(r, _)| r.cycles).sum::<Cycles>()
    };
    graph.op_ids().map(of).sum()
}

/// A row of the table of units: its name, cycles of an iteration for which it is held, and its instances.
struct Use<'a> {
    name: &'a str,
    busy: Cycles,
    instances: u32,
}

/// The use of units, and of shared memory for the bytes that it moves where their number is limited.
fn uses(problem: &Problem) -> Vec<Use<'_>> {
    let unit = |unit: UnitId| {
        let info = &problem.resources().units[unit.index()];
        Use { name: &info.name, busy: busy(problem, unit), instances: info.capacity }
    };
    let mut uses: Vec<Use> = units_in_use(problem).map(unit).collect();
    let bytes = problem.graph().traffic().shared.0;
    if let Some(rate) = problem.resources().shared_bytes_per_cycle.filter(|_| bytes > 0) {
        let cycles = saturate::<i64>(bytes.div_ceil(rate.0.max(1)));
        uses.push(Use { name: SHARED_MEMORY, busy: Cycles(cycles), instances: 1 });
    }
    uses
}

/// The name of shared memory among the units.
const SHARED_MEMORY: &str = "smem";

/// Writes how busy each functional unit is, and shared memory.
pub(crate) fn write_utilisation(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    const BAR: usize = 25;
    page.heading("Functional units");
    let mut table = Table::new()
        .column("unit", Align::Left, 0)
        .column("busy", Align::Right, 0)
        .column("of", Align::Right, 2)
        .column("instances", Align::Right, 3)
        .column("busy %", Align::Right, 0)
        .column("", Align::Left, 1);
    let uses = uses(problem);
    for Use { name, busy, instances } in &uses {
        let busy = i128::from(busy.0);
        let available = i128::from(schedule.interval.0) * i128::from(*instances);
        let filled = saturate::<usize>(busy * BAR as i128 / available.max(1)).min(BAR);
        table.row(vec![
            (*name).to_owned(),
            words::grouped(busy),
            words::grouped(available),
            instances.to_string(),
            words::percent(busy, available),
            format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled)),
        ]);
    }
    if uses.is_empty() {
        page.paragraph(2, "No operation holds a functional unit.", Ink::Dim);
        return;
    }
    table.write(page);
}
