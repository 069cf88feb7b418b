//! What a traced kernel records, as `kernel.json` says it.

use serde::Serialize;
use twill_codegen::ir::WarpProgram;
use twill_codegen::ir::{Detail, Moment};

/// The buffer of a traced kernel.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TraceEntry {
    parameter: String,
    iterations: u32,
    bytes: u64,
    detail: &'static str,
    groups: Vec<GroupEntry>,
    timestamps: Vec<TimestampEntry>,
}

/// A group, by its number in the schedule.
#[derive(Clone, Debug, Serialize)]
struct GroupEntry {
    id: usize,
    name: String,
}

#[derive(Clone, Debug, Serialize)]
struct TimestampEntry {
    id: usize,
    #[serde(rename = "loop")]
    index: usize,
    operation: String,
    group: usize,
    what: &'static str,
}

impl TraceEntry {
    /// That of a kernel that is traced.
    pub(super) fn of(kernel: &WarpProgram) -> Option<TraceEntry> {
        let trace = kernel.trace.as_ref()?;
        let timestamps = trace.timestamps.iter().enumerate().map(|(id, timestamp)| TimestampEntry {
            id,
            index: timestamp.index,
            operation: timestamp.operation.clone(),
            group: timestamp.group.index(),
            what: match timestamp.moment {
                Moment::Issue => "issue",
                Moment::End => "end",
                Moment::Completed => "completed",
            },
        });
        Some(TraceEntry {
            parameter: trace.parameter.clone(),
            iterations: trace.iterations,
            bytes: trace.bytes(),
            detail: match trace.detail {
                Detail::Operations => "operations",
                Detail::Segments => "segments",
                Detail::Iterations => "iterations",
            },
            groups: kernel.groups.iter().map(|g| GroupEntry { id: g.id.index(), name: g.name.clone() }).collect(),
            timestamps: timestamps.collect(),
        })
    }
}
