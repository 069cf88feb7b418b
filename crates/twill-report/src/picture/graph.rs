//! The dependence graph of a loop.

use super::GraphOptions;
use super::layers::{Edge, layout};
use super::routes::{BETWEEN, BOX, BULGE, Route, routes, top};
use super::svg::{Drawing, HUES, fitting, number, rectangle, text, width};
use crate::markup::escape;
use crate::words;
use std::fmt::Write;
use twill_graph::{Dependence, OpId, Problem, Schedule};

const MARGIN: f64 = 16.0;
const HEAD: f64 = 56.0;
const FOOT: f64 = 40.0;
/// Boxes are this wide at least and at most; longer names are cut.
const BOXES: (f64, f64) = (96.0, 230.0);
/// The picture is at least this wide, for its title and legend.
const NARROWEST: f64 = 620.0;

/// The colour of an operation's group.
pub(super) fn hue(schedule: &Schedule, op: OpId) -> usize {
    schedule.placement(op).group.index() % HUES
}

/// Groups in use: id and name.
pub(super) fn legend(schedule: &Schedule) -> impl Iterator<Item = (usize, String)> + '_ {
    schedule.groups.iter().map(|group| (group.id.index(), format!("group {} {}", group.id.index(), group.role)))
}

/// The graph of one loop.
pub(super) fn draw(problem: &Problem, schedule: Option<&Schedule>, options: GraphOptions) -> Drawing {
    let graph = problem.graph();
    let second: Vec<String> = graph.op_ids().map(|op| detail(problem, schedule, op)).collect();
    let widths: Vec<f64> = graph
        .op_ids()
        .map(|op| (width(&graph.operation(op).name).max(width(&second[op.index()])) + 18.0).clamp(BOXES.0, BOXES.1))
        .collect();
    let drawn = |d: &&Dependence| options.orders || d.carries_value;
    let dependences: Vec<&Dependence> = graph.dependences().iter().filter(drawn).collect();
    let edge = |d: &&Dependence| Edge { from: d.from.index(), to: d.to.index(), down: d.distance == 0 };
    let edges: Vec<Edge> = dependences.iter().map(edge).collect();
    let mut room = widths.clone();
    for node in edges.iter().filter(|edge| edge.from == edge.to).map(|edge| edge.from) {
        room[node] = widths[node] + 2.0 * BULGE;
    }
    let found = layout(&room, &edges);
    let routes = routes(&found, &widths, &edges);

    let full = (found.width + 2.0 * MARGIN + 24.0).max(NARROWEST);
    let left = (full - found.width) / 2.0;
    let title = format!("Dependences of {} on {}", graph.name(), problem.resources().name);
    let description = describe(problem, schedule);
    let mut out = String::new();
    text(&mut out, (MARGIN, 22.0), "title", &fitting(&title, full - 2.0 * MARGIN));
    text(&mut out, (MARGIN, 40.0), "faint", &fitting(&figures(problem, schedule), full - 2.0 * MARGIN));
    let _ = writeln!(out, "<g transform=\"translate({} {})\">", number(left), number(HEAD));
    for (dependence, route) in dependences.iter().zip(&routes) {
        line(&mut out, problem, dependence, route);
    }
    for op in graph.op_ids() {
        let place = (found.centres[op.index()], top(found.layers[op.index()]));
        node(&mut out, problem, schedule, op, place, (widths[op.index()], &second[op.index()]));
    }
    out.push_str("</g>\n");
    let layers = found.layers.iter().max().map_or(0, |most| most + 1);
    let bottom = HEAD + top(layers) - BETWEEN + 24.0;
    foot(&mut out, schedule, bottom + 8.0, full);
    Drawing { width: full, height: bottom + FOOT, title, description, body: out }
}

/// The text below an operation's name.
fn detail(problem: &Problem, schedule: Option<&Schedule>, op: OpId) -> String {
    match schedule {
        Some(schedule) => {
            let cycle = words::grouped(schedule.placement(op).cycle.0);
            format!("cycle {cycle}, stage {}", schedule.stage(op))
        }
        None => problem.graph().operation(op).kind.clone(),
    }
}

fn figures(problem: &Problem, schedule: Option<&Schedule>) -> String {
    let graph = problem.graph();
    let carried = graph.dependences().iter().filter(|d| d.distance > 0).count();
    let interval = schedule.map_or_else(String::new, |s| format!("; I = {} cycles", words::grouped(s.interval.0)));
    format!(
        "{}, {}, {carried} of them between iterations{interval}",
        words::count(graph.operations().len() as i128, "operation"),
        words::count(graph.dependences().len() as i128, "dependence")
    )
}

fn describe(problem: &Problem, schedule: Option<&Schedule>) -> String {
    let graph = problem.graph();
    let mut said = format!("{}.", figures(problem, schedule));
    for d in graph.dependences() {
        let _ = write!(said, " {} to {}", graph.operation(d.from).name, graph.operation(d.to).name);
        said.push_str(&if d.distance > 0 { format!(", distance {}.", d.distance) } else { ".".to_owned() });
    }
    said
}

fn line(out: &mut String, problem: &Problem, d: &Dependence, route: &Route) {
    let name = |op: OpId| problem.graph().operation(op).name.as_str();
    let (from, to) = (escape(name(d.from)), escape(name(d.to)));
    let class = match (d.distance > 0, d.carries_value) {
        (true, _) => "edge carried",
        (false, true) => "edge",
        (false, false) => "edge order",
    };
    let _ = write!(
        out,
        "<g class=\"{class}\" data-from=\"{from}\" data-to=\"{to}\" data-distance=\"{}\">\
         <title>{from} to {to}: {}, delay {} cycles</title><path d=\"{}\"/><polygon points=\"{}\"/>",
        d.distance,
        if d.distance > 0 { format!("distance {}", d.distance) } else { "same iteration".to_owned() },
        d.delay,
        route.path,
        route.head
    );
    if d.distance > 0 {
        text(out, (route.label.0, route.label.1 + 4.0), "middle", &d.distance.to_string());
    }
    out.push_str("</g>\n");
}

fn node(
    out: &mut String,
    problem: &Problem,
    schedule: Option<&Schedule>,
    op: OpId,
    (centre, top): (f64, f64),
    (wide, detail): (f64, &str),
) {
    let operation = problem.graph().operation(op);
    let class = schedule.map_or_else(|| "plain".to_owned(), |schedule| format!("hue{}", hue(schedule, op)));
    let name = escape(&operation.name);
    let source = operation.source.as_ref().map_or_else(String::new, |s| format!(", {}:{}", s.file, s.line));
    let group = schedule.map_or_else(String::new, |s| format!(", group {}", s.placement(op).group.index()));
    let tooltip = format!("{} ({}){group}{source}", operation.name, operation.kind);
    let _ = write!(out, "<g class=\"{class}\" data-operation=\"{name}\"><title>{}</title>", escape(&tooltip));
    let rect = if schedule.is_some() { "rx=\"5\"" } else { "rx=\"5\" class=\"row rule\"" };
    rectangle(out, (centre - wide / 2.0, top), (wide, BOX), rect);
    text(out, (centre, top + 15.0), "middle section", &fitting(&operation.name, wide - 10.0));
    text(out, (centre, top + 29.0), "middle", &fitting(detail, wide - 10.0));
    out.push_str("</g>\n");
}

/// The legend of colours and lines.
fn foot(out: &mut String, schedule: Option<&Schedule>, y: f64, full: f64) {
    let mut x = MARGIN;
    for (id, name) in schedule.into_iter().flat_map(legend) {
        rectangle(out, (x, y - 9.0), (11.0, 11.0), &format!("class=\"hue{}\" rx=\"2\"", id % HUES));
        text(out, (x + 16.0, y), "", &name);
        x += 16.0 + width(&name) + 16.0;
    }
    let note = "dashed: from an earlier iteration, with the distance; dotted: order only";
    text(out, (MARGIN, y + 18.0), "faint", &fitting(note, full - 2.0 * MARGIN));
}
