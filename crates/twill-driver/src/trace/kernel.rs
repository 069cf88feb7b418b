//! What a traced kernel says in its `kernel.json` of what it records.

use super::TraceError;
use serde::Deserialize;
use twill_graph::LoopGraph;

/// A kernel that records its time.
#[derive(Clone, Debug)]
pub struct TracedKernel {
    /// Its name.
    pub name: String,
    /// Iterations that it records, each a row of the buffer.
    pub(super) iterations: usize,
    /// What its timestamps are at.
    pub(super) detail: String,
    /// Timestamps, each a column of a row.
    pub(super) timestamps: Vec<Timestamp>,
    file: String,
}

/// The part of `kernel.json` that says what is recorded.
#[derive(Deserialize)]
struct KernelFile {
    format: String,
    version: u32,
    name: String,
    trace: Option<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    iterations: usize,
    detail: String,
    timestamps: Vec<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Timestamp {
    id: usize,
    #[serde(rename = "loop")]
    index: usize,
    operation: String,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Issue,
    End,
    Completed,
}

impl TracedKernel {
    /// Reads a `kernel.json`; `file` is named in errors.
    ///
    /// # Errors
    /// When it is not one, or its kernel records nothing.
    pub fn from_json(text: &str, file: &str) -> Result<TracedKernel, TraceError> {
        let wrong = |why: String| TraceError::Kernel { file: file.to_owned(), why };
        let read: KernelFile = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if (read.format.as_str(), read.version) != ("twill-kernel", 1) {
            return Err(wrong("it is no twill-kernel of version 1".into()));
        }
        let Some(Trace { iterations, detail, timestamps }) = read.trace else {
            return Err(TraceError::NotTraced { file: file.to_owned() });
        };
        if timestamps.is_empty() || timestamps.iter().enumerate().any(|(k, timestamp)| timestamp.id != k) {
            return Err(wrong("its timestamps are not numbered from 0".into()));
        }
        Ok(TracedKernel { name: read.name, iterations, detail, timestamps, file: file.to_owned() })
    }

    /// That timestamps of a loop are of its operations.
    pub(super) fn check_names(&self, index: usize, graph: &LoopGraph) -> Result<(), TraceError> {
        let unknown = |timestamp: &&Timestamp| timestamp.index == index && graph.find(&timestamp.operation).is_none();
        match self.timestamps.iter().find(unknown) {
            None => Ok(()),
            Some(timestamp) => {
                let why = format!(
                    "it timestamps `{}`, which loop {index} of the schedule next to it does not have",
                    timestamp.operation
                );
                Err(TraceError::Kernel { file: self.file.clone(), why })
            }
        }
    }

    /// Where the timestamps of an operation are in a row: its issue, and its end or landing.
    pub(super) fn marks_of(&self, index: usize, operation: &str) -> (Option<usize>, Vec<usize>) {
        let own = || self.timestamps.iter().filter(|m| m.index == index && m.operation == operation);
        let issue = own().find(|m| m.what == What::Issue).map(|m| m.id);
        (issue, own().filter(|m| m.what != What::Issue).map(|m| m.id).collect())
    }
}
