//! The trace format: a kernel's times on a GPU versus its schedule.

use super::{FormatError, VERSION, check_version, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "twill-trace";

/// A trace file. All times are cycles of the multiprocessor's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Always `twill-trace`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the kernel.
    pub name: String,
    /// Name of the machine that it was scheduled for.
    pub machine: String,
    /// The GPU that it ran on.
    pub gpu: String,
    /// The date: `YYYY-MM-DD`.
    pub date: String,
    /// The revision of the code that was measured, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The level of the timestamps: `operations`, `segments` of them or `iterations`. All but the last keep operations
    /// apart, which takes time.
    pub timestamps: String,
    /// The kernel's loops, in the order of the text.
    pub loops: Vec<TracedLoop>,
}

/// The measurements of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedLoop {
    /// Position among the kernel's loops, from 0.
    #[serde(rename = "loop")]
    pub index: usize,
    /// Cycles from one iteration to the next.
    pub initiation_interval: Compared,
    /// The operations, in the order in which the schedule issues them.
    pub operations: Vec<TracedOperation>,
    /// A few steady iterations of one CTA, in the order of their starts. Iteration k of the schedule is at
    /// `cycle + k * initiation_interval`; here the first iteration that is listed is where its own cycles are.
    pub events: Vec<TraceEvent>,
}

/// Prediction versus measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// By the schedule.
    pub predicted: f64,
    /// The median over the steady state.
    pub measured: f64,
}

/// An operation within its iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedOperation {
    /// Its name in the loop's graph.
    pub operation: String,
    /// Its warp group.
    pub group: usize,
    /// By the schedule: from its issue until it is over.
    pub predicted: Span,
    /// Medians over the steady iterations, aligned so that the first operation that is no load running ahead starts as
    /// predicted. The end of an asynchronous operation is where a wait for it is over, its start if nobody waits.
    pub measured: Span,
}

/// From one cycle to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first cycle.
    pub start: f64,
    /// The first cycle after it.
    pub end: f64,
}

/// An operation of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceEvent {
    /// Its name in the loop's graph.
    pub operation: String,
    /// Its warp group.
    pub group: usize,
    /// Its iteration, from 0 at the first that is listed.
    pub iteration: u32,
    /// The first cycle.
    pub start: f64,
    /// The first cycle after it.
    pub end: f64,
}

impl TraceFile {
    /// A file of these loops; `run` is the GPU and the date.
    pub fn new(
        name: String,
        machine: String,
        run: [String; 2],
        timestamps: String,
        loops: Vec<TracedLoop>,
    ) -> TraceFile {
        let [gpu, date] = run;
        let (format, version) = (FORMAT.into(), VERSION);
        TraceFile { format, version, name, machine, gpu, date, revision: None, timestamps, loops }
    }

    /// Returns whether a text says that it is of this format.
    pub fn is_named_in(text: &str) -> bool {
        super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a trace file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<TraceFile, FormatError> {
        let trace: TraceFile = parse(text, file)?;
        check_version(file, FORMAT, &trace.format, trace.version)?;
        Ok(trace)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
