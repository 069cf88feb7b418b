//! Paths of edges through a layered drawing.

use super::layers::{Edge, Layout};
use super::svg::number;
use std::fmt::Write;

/// Height of a box.
pub(super) const BOX: f64 = 36.0;
/// Between layers.
pub(super) const BETWEEN: f64 = 40.0;
/// Length of an arrow's head, and half its width.
const HEAD: (f64, f64) = (7.0, 3.5);
/// How far loops stand out.
pub(super) const BULGE: f64 = 22.0;

/// A drawn edge.
pub(super) struct Route {
    /// Its line.
    pub path: String,
    /// The corners of its head.
    pub head: String,
    /// Where a label may stand.
    pub label: (f64, f64),
}

/// The upper side of a layer's boxes.
pub(super) fn top(layer: usize) -> f64 {
    layer as f64 * (BOX + BETWEEN)
}

/// The routes of all edges, in their order.
pub(super) fn routes(layout: &Layout, widths: &[f64], edges: &[Edge]) -> Vec<Route> {
    let ports = ports(layout, widths, edges);
    edges
        .iter()
        .zip(&layout.bends)
        .zip(ports)
        .map(|((edge, bends), ports)| {
            if edge.from == edge.to || layout.layers[edge.from] == layout.layers[edge.to] {
                return within_layer(layout, widths, edge);
            }
            let downwards = layout.layers[edge.from] < layout.layers[edge.to];
            let upper = if downwards { edge.from } else { edge.to };
            let lower = if downwards { edge.to } else { edge.from };
            let begin = (ports.0, top(layout.layers[upper]) + BOX);
            let end = (ports.1, top(layout.layers[lower]));
            along(begin, end, bends, downwards)
        })
        .collect()
}

/// Where edges between layers leave their upper box and reach their lower one: spread over the side, in the order of
/// where they lead.
fn ports(layout: &Layout, widths: &[f64], edges: &[Edge]) -> Vec<(f64, f64)> {
    let mut ports: Vec<(f64, f64)> = vec![(0.0, 0.0); edges.len()];
    let mut sides: Vec<[Vec<(f64, usize)>; 2]> = vec![[Vec::new(), Vec::new()]; widths.len()];
    for (index, (edge, bends)) in edges.iter().zip(&layout.bends).enumerate() {
        let (from, to) = (layout.layers[edge.from], layout.layers[edge.to]);
        if from == to {
            continue;
        }
        let (upper, lower) = if from < to { (edge.from, edge.to) } else { (edge.to, edge.from) };
        let first = bends.first().map_or(layout.centres[lower], |bend| bend.1);
        let last = bends.last().map_or(layout.centres[upper], |bend| bend.1);
        sides[upper][0].push((first, index));
        sides[lower][1].push((last, index));
    }
    for (node, sides) in sides.iter_mut().enumerate() {
        for (side, ends) in sides.iter_mut().enumerate() {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
            let share = (widths[node] - 16.0).max(0.0) / (ends.len() + 1) as f64;
            for (place, (_, edge)) in ends.iter().enumerate() {
                let x = layout.centres[node] - (widths[node] - 16.0).max(0.0) / 2.0 + share * (place + 1) as f64;
                *(if side == 0 { &mut ports[*edge].0 } else { &mut ports[*edge].1 }) = x;
            }
        }
    }
    ports
}

/// A line from an upper box to a lower one, with its head at the lower or at the upper end.
fn along(begin: (f64, f64), end: (f64, f64), bends: &[(usize, f64)], downwards: bool) -> Route {
    let (from, to) = if downwards { (begin.1, end.1 - HEAD.0) } else { (begin.1 + HEAD.0, end.1) };
    let mut path = format!("M{} {}", number(begin.0), number(from));
    let mut at = (begin.0, from);
    let mut label = (f64::midpoint(begin.0, end.0), f64::midpoint(from, to));
    for (place, &(layer, x)) in bends.iter().enumerate() {
        curve(&mut path, at, (x, top(layer)));
        at = (x, top(layer) + BOX);
        let _ = write!(path, "V{}", number(at.1));
        if place == bends.len() / 2 {
            label = (x, top(layer) + BOX / 2.0);
        }
    }
    curve(&mut path, at, (end.0, to));
    let (tip, back) = if downwards { (end, -HEAD.0) } else { (begin, HEAD.0) };
    let head = [(tip.0, tip.1), (tip.0 - HEAD.1, tip.1 + back), (tip.0 + HEAD.1, tip.1 + back)];
    Route { path, head: corners(&head), label }
}

/// An edge within a layer, or of a box to itself: out of the right side, and back from the right.
fn within_layer(layout: &Layout, widths: &[f64], edge: &Edge) -> Route {
    let right = |node: usize| layout.centres[node] + widths[node] / 2.0;
    let y = top(layout.layers[edge.from]);
    if edge.from == edge.to {
        let x = right(edge.from);
        let (low, high) = (y + BOX - 9.0, y + 9.0);
        let out = x + BULGE;
        let path = format!(
            "M{} {}C{} {} {} {} {} {}",
            number(x),
            number(low),
            number(out),
            number(low + 6.0),
            number(out),
            number(high - 6.0),
            number(x + HEAD.0),
            number(high)
        );
        let head = [(x, high), (x + HEAD.0, high - HEAD.1), (x + HEAD.0, high + HEAD.1)];
        return Route { path, head: corners(&head), label: (x + BULGE * 0.8, y + BOX / 2.0) };
    }
    let (from, to) = (layout.centres[edge.from], layout.centres[edge.to]);
    let (begin, end, low) = (y + BOX, y + BOX + HEAD.0, y + BOX + BULGE);
    let path = format!(
        "M{} {}C{} {} {} {} {} {}",
        number(from),
        number(begin),
        number(from),
        number(low),
        number(to),
        number(low),
        number(to),
        number(end)
    );
    let head = [(to, begin), (to - HEAD.1, end), (to + HEAD.1, end)];
    Route { path, head: corners(&head), label: (f64::midpoint(from, to), low - 2.0) }
}

/// A curve that leaves and arrives vertically.
fn curve(path: &mut String, from: (f64, f64), to: (f64, f64)) {
    let middle = number(f64::midpoint(from.1, to.1));
    let _ = write!(path, "C{} {middle} {} {middle} {} {}", number(from.0), number(to.0), number(to.0), number(to.1));
}

fn corners(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}
