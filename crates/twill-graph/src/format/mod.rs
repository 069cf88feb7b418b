//! Text formats: loop graphs, schedules, schedules of several loops, pipelines without warps and explanations as JSON,
//! versioned, with published JSON Schemas (`docs/schema/`); graphs of operations, of our own and of others ([`read_dataflow`]);
//! and loops of HatScheT in GraphML as they are ([`read_graphml`]).
//!
//! ```
//! let text = r#"{
//!   "format": "twill-graph", "version": 1, "name": "copy",
//!   "operations": [
//!     { "name": "load", "units": [{ "unit": "tma", "cycles": 256 }], "execution": "asynchronous",
//!       "issue_width": 1, "result": { "shared_memory": 32768 }, "variable_latency": true, "streaming": true },
//!     { "name": "scale", "units": [{ "unit": "fma", "cycles": 128 }], "result": { "registers": 16384 } }
//!   ],
//!   "dependences": [ { "from": "load", "to": "scale" } ]
//! }"#;
//! let file = twill_graph::format::GraphFile::from_json(text, "copy.json").unwrap();
//! assert_eq!(file.graph().unwrap().dependences()[0].delay.0, 0); // a streaming load runs ahead
//! ```

mod certificate;
mod dataflow;
mod explanation;
mod graph;
mod graphml;
mod kernel;
mod modulo;
mod pipeline;
mod schedule;
mod trace;

pub use certificate::{BoundEntry, CertificateFile, ConflictEntry, WitnessEntry};
pub use dataflow::{
    DataflowDependenceEntry, DataflowFile, DataflowFound, DataflowObjectiveEntry, DataflowOperationEntry,
    DataflowOptions, DataflowResourceEntry, DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowUseEntry,
    DataflowValue, loop_dataflow, modulo_dataflow, read_dataflow,
};
pub use explanation::{ExplanationFile, PlaceEntry};
pub use graph::{DependenceEntry, GraphFile, MachineReference, OperationEntry, ReservedEntry, ResultEntry, UnitEntry};
pub use graphml::{NamedText, read_graphml};
pub use kernel::{KernelScheduleFile, TieEntry, TiedEntry};
pub use modulo::ModuloFile;
pub use pipeline::PipelineFile;
pub use schedule::{
    ChannelEntry, GroupEntry, NormalisationEntry, PlacedOperation, ProblemEntry, RingEntry, ScheduleFile,
};
pub use trace::{Compared, Span, TraceEvent, TraceFile, TracedLoop, TracedOperation};

use crate::{DataflowError, GraphError, KernelError, ModuloError, ProblemError};
use thiserror::Error;

/// Version of all formats; files of another version are refused.
pub const VERSION: u32 = 1;

/// Why a file could not be read.
#[derive(Debug, Error)]
pub enum FormatError {
    /// Not JSON, or not of the format's shape.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// 1-based line.
        line: usize,
        /// 1-based column.
        column: usize,
        /// The defect.
        message: String,
    },
    /// Another format or version.
    #[error("{file}: expected format `{expected}` version {version}, found `{found}` version {found_version}")]
    Version {
        /// The file.
        file: String,
        /// The format this reader is for.
        expected: &'static str,
        /// The version this reader is for.
        version: u32,
        /// The format that the file names.
        found: String,
        /// The version the file says it has.
        found_version: u32,
    },
    /// A dependence or placement names an operation that is not there.
    #[error("{file}: {place} names the operation `{operation}`, which is not in the file")]
    UnknownOperation {
        /// The file.
        file: String,
        /// Where.
        place: String,
        /// The name.
        operation: String,
    },
    /// The graph is not well formed.
    #[error("{file}: {error}")]
    Graph {
        /// The file.
        file: String,
        /// The fault.
        error: GraphError,
    },
    /// The graph does not go with its machine.
    #[error("{file}: {error}")]
    Problem {
        /// The file.
        file: String,
        /// The fault.
        error: ProblemError,
    },
    /// A loop without warps is not well formed.
    #[error("{file}: {error}")]
    Modulo {
        /// The file.
        file: String,
        /// The fault.
        error: ModuloError,
    },
    /// A graph of operations is not well formed.
    #[error("{file}: {error}")]
    Dataflow {
        /// The file.
        file: String,
        /// The fault.
        error: DataflowError,
    },
    /// The loops do not go together.
    #[error("{file}: {error}")]
    Kernel {
        /// The file.
        file: String,
        /// The fault.
        error: KernelError,
    },
    /// A file that lacks something: a schedule, or part of one, or a file that must accompany it.
    #[error("{file}: {why}")]
    Schedule {
        /// The file.
        file: String,
        /// The missing part.
        why: String,
    },
}

/// Parses JSON and keeps the place of an error.
fn parse<T: serde::de::DeserializeOwned>(text: &str, file: &str) -> Result<T, FormatError> {
    // serde would take an array of the fields, in their order, for the object.
    if let Some(at) = text.find(|c: char| !c.is_whitespace()).filter(|&at| text[at..].starts_with('[')) {
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
        let message = "expected an object, found an array".to_owned();
        return Err(FormatError::Syntax { file: file.to_owned(), line, column, message });
    }
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        // serde_json ends its message with the place, which stands before it here.
        let place = format!(" at line {line} column {column}");
        let message = message.strip_suffix(&place).map(str::to_owned).unwrap_or(message);
        FormatError::Syntax { file: file.to_owned(), line, column, message }
    })
}

fn check_version(file: &str, expected: &'static str, found: &str, found_version: u32) -> Result<(), FormatError> {
    if found == expected && found_version == VERSION {
        return Ok(());
    }
    Err(FormatError::Version {
        file: file.to_owned(),
        expected,
        version: VERSION,
        found: found.to_owned(),
        found_version,
    })
}

/// Wall-clock times by their names.
fn phases(seconds: &indexmap::IndexMap<String, f64>) -> Vec<crate::Phase> {
    seconds.iter().map(|(name, seconds)| crate::Phase { name: name.clone(), seconds: *seconds }).collect()
}

/// The format that a text of JSON says it is of.
fn named_format(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
    }
    serde_json::from_str(text).map(|head: Head| head.format).ok()
}

/// The JSON Schema of the graph format.
pub fn graph_schema() -> serde_json::Value {
    schemars::schema_for!(GraphFile).to_value()
}

/// The JSON Schema of the dataflow format.
pub fn dataflow_schema() -> serde_json::Value {
    schemars::schema_for!(DataflowFile).to_value()
}

/// The JSON Schema of the explanation format.
pub fn explanation_schema() -> serde_json::Value {
    schemars::schema_for!(ExplanationFile).to_value()
}

/// The JSON Schema of the schedule format.
pub fn schedule_schema() -> serde_json::Value {
    schemars::schema_for!(ScheduleFile).to_value()
}

/// The JSON Schema of the kernel schedule format.
pub fn kernel_schedule_schema() -> serde_json::Value {
    schemars::schema_for!(KernelScheduleFile).to_value()
}

/// The JSON Schema of the pipeline format.
pub fn pipeline_schema() -> serde_json::Value {
    schemars::schema_for!(PipelineFile).to_value()
}

/// The JSON Schema of the trace format.
pub fn trace_schema() -> serde_json::Value {
    schemars::schema_for!(TraceFile).to_value()
}

/// The default of a field that may be left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
