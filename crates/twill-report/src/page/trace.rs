//! What was measured on a GPU, beside what was predicted: the file that `twill trace` writes.

use serde::{Deserialize, Serialize};

/// A trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Always `twill-trace`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the kernel.
    pub name: String,
    /// The machine that it was scheduled for.
    pub machine: String,
    /// What it ran on.
    pub gpu: String,
    /// When.
    pub date: String,
    /// Of Twill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The loops.
    pub loops: Vec<TraceLoop>,
}

/// What was measured of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceLoop {
    /// Position of the loop, from 0.
    #[serde(rename = "loop")]
    pub index: usize,
    /// Cycles from one iteration to the next.
    pub initiation_interval: Interval,
    /// Each operation, within an iteration.
    pub operations: Vec<TraceOperation>,
    /// What happened in a few iterations of one thread block.
    pub events: Vec<TraceEvent>,
}

/// An initiation interval, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Of the schedule.
    pub predicted: f64,
    /// Median over the steady state.
    pub measured: f64,
}

/// An operation within an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceOperation {
    /// Name in the graph.
    pub operation: String,
    /// Its warp group.
    pub group: usize,
    /// As scheduled.
    pub predicted: TraceTime,
    /// Median, aligned so that the first operation of the loop starts as predicted.
    pub measured: TraceTime,
}

/// From when to when, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceTime {
    /// The first cycle.
    pub start: f64,
    /// The cycle after the last.
    pub end: f64,
}

/// An operation of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEvent {
    /// Name in the graph.
    pub operation: String,
    /// Its warp group.
    pub group: usize,
    /// The iteration.
    pub iteration: i64,
    /// The first cycle.
    pub start: f64,
    /// The cycle after the last.
    pub end: f64,
}
