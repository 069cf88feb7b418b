//! Pictures of schedules for documents: SVG of the timeline and of the dependence graph, and DOT of the graph.
//!
//! The SVG stands by itself: no script, nothing is loaded, light and dark colours as the reader prefers them.

mod dot;
mod graph;
mod layers;
mod routes;
mod svg;
#[cfg(test)]
mod tests;
mod timeline;

pub use dot::graph_dot;

use crate::run;
use twill_graph::{Problem, Schedule};

/// How to draw a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineOptions {
    /// Iterations to draw, at least 1; `None` for as many as show the steady state for two intervals.
    pub iterations: Option<u32>,
    /// Width in pixels, from 600 to 20000; `None` for 1200.
    pub width: Option<u32>,
}

/// How to draw a dependence graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptions {
    /// True if to draw dependences that carry no value and only order their ends.
    pub orders: bool,
}

impl Default for GraphOptions {
    fn default() -> Self {
        GraphOptions { orders: true }
    }
}

/// Iterations that a timeline shows unless it is told otherwise: all stages, then the steady state for two intervals.
pub fn timeline_iterations(schedule: &Schedule) -> u32 {
    run::iterations(schedule, 2)
}

/// The first iterations of a schedule as SVG: a row for each warp group, for what it started, and for each instance of
/// a functional unit.
///
/// Every operation is a `g` with the attributes `data-operation`, `data-iteration` and `data-cycle` (from the loop's
/// beginning), and a tooltip. The same arguments give the same text.
pub fn timeline_svg(problem: &Problem, schedule: &Schedule, options: TimelineOptions) -> String {
    timelines_svg(&[(problem, schedule)], options)
}

/// [`timeline_svg`] of several loops, one below the other.
pub fn timelines_svg(loops: &[(&Problem, &Schedule)], options: TimelineOptions) -> String {
    svg::document(loops.iter().map(|(problem, schedule)| timeline::draw(problem, schedule, options)).collect())
}

/// Schedules with a title each, one below the other on one time axis: as many iterations of each, so that the shorter
/// timeline is the faster schedule.
pub fn compared_svg(schedules: &[(&str, &Problem, &Schedule)], options: TimelineOptions) -> String {
    svg::document(timeline::compared(schedules, options))
}

/// A loop's dependence graph as SVG: layers from the top to the bottom, with a schedule coloured by warp group;
/// dependences between iterations are dashed, with their distance.
///
/// Every operation is a `g` with the attribute `data-operation`, every dependence one with `data-from`, `data-to` and
/// `data-distance`. The same arguments give the same text.
pub fn graph_svg(problem: &Problem, schedule: Option<&Schedule>, options: GraphOptions) -> String {
    graphs_svg(&[(problem, schedule)], options)
}

/// [`graph_svg`] of several loops, one below the other.
pub fn graphs_svg(loops: &[(&Problem, Option<&Schedule>)], options: GraphOptions) -> String {
    svg::document(loops.iter().map(|(problem, schedule)| graph::draw(problem, *schedule, options)).collect())
}
