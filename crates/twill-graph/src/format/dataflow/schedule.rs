//! The dataflow schedule format: a graph, what was asked of it, start steps, and what they cost.

use super::super::{FormatError, VERSION, check_version, parse};
use super::DataflowFile;
use crate::{DataflowObjective, DataflowProblem, StartSteps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const FORMAT: &str = "twill-dataflow-schedule";

/// A dataflow schedule file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowScheduleFile {
    /// Always `twill-dataflow-schedule`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// The graph.
    pub graph: DataflowFile,
    /// The objective.
    pub objective: DataflowObjectiveEntry,
    /// All operations are finished by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_bound: Option<u64>,
    /// The initiation interval, of a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<u64>,
    /// Start of each operation, in their order.
    pub steps: Vec<u64>,
    /// The result and its method.
    pub summary: DataflowSummary,
}

/// The objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DataflowObjectiveEntry {
    /// Peaks of resources and communication, weighted.
    Resources {
        /// Weight of the peaks.
        peak: u64,
        /// Weight of communication.
        communication: u64,
    },
    /// Peak storage.
    Storage,
    /// The latest finish.
    Latency,
}

/// An answer in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowSummary {
    /// Name of the graph.
    pub graph: String,
    /// Operations.
    pub operations: usize,
    /// Dependences.
    pub dependences: usize,
    /// The scheduler.
    pub engine: String,
    /// The seed of random choices.
    pub seed: u64,
    /// The objective and its bound.
    pub objective: DataflowValue,
    /// Latest finish, in steps.
    pub latency: Option<i128>,
    /// `D`, if there was a bound.
    pub latency_bound: Option<u64>,
    /// `II`, of a loop.
    pub interval: Option<u64>,
    /// No schedule has a smaller interval, of a loop.
    pub least_interval: Option<u64>,
    /// Most units in use in one step, by resource.
    pub peaks: BTreeMap<String, i128>,
    /// `Σ communication · (s_to + δ·II − s_from)`.
    pub communication: Option<i128>,
    /// Most storage that is live in one step.
    pub storage: Option<i128>,
    /// The objective of what legalising the start gave, before any search.
    pub at_start: Option<i128>,
    /// Gradients taken.
    pub gradients: u64,
    /// The GPU that computed them; none where processors did.
    #[serde(default)]
    pub gpu: Option<String>,
    /// Where the time went.
    pub seconds: DataflowSeconds,
    /// Who found the schedule, and when; none where no schedule was found.
    #[serde(default)]
    pub found: Option<DataflowFound>,
    /// Seconds since the command began, and the objective found then.
    pub trace: Vec<(f64, i128)>,
    /// The part of the search that found each entry of `trace`.
    #[serde(default)]
    pub trace_by: Vec<String>,
}

/// The part of a search that found a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowFound {
    /// A baseline, `start`, `gradient`, `annealing`, `ejection`, `windows` or `exact`.
    pub by: String,
    /// Seconds since the command began.
    pub seconds: f64,
}

/// An objective's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowValue {
    /// `resources`, `storage` or `latency`.
    pub kind: String,
    /// The schedule, replayed by the checker; none where no schedule was found.
    pub value: Option<i128>,
    /// No schedule has a smaller one.
    pub lower_bound: i128,
}

/// Seconds by the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowSeconds {
    /// Reading the graph.
    pub reading: f64,
    /// The lower bound.
    pub bound: f64,
    /// The search.
    pub search: f64,
    /// The replay.
    pub replay: f64,
}

impl DataflowScheduleFile {
    /// Describes a schedule of `problem`.
    pub fn new(problem: &DataflowProblem, steps: &StartSteps, summary: DataflowSummary) -> DataflowScheduleFile {
        DataflowScheduleFile {
            format: FORMAT.into(),
            version: VERSION,
            graph: DataflowFile::from_graph(&problem.graph),
            objective: match problem.objective {
                DataflowObjective::Resources { peak, communication } => {
                    DataflowObjectiveEntry::Resources { peak, communication }
                }
                DataflowObjective::Storage => DataflowObjectiveEntry::Storage,
                DataflowObjective::Latency => DataflowObjectiveEntry::Latency,
            },
            latency_bound: problem.latency_bound,
            interval: problem.interval,
            steps: steps.steps.clone(),
            summary,
        }
    }

    /// Returns whether a text is such a file, or means to be one.
    pub fn is_named_in(text: &str) -> bool {
        super::super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<DataflowScheduleFile, FormatError> {
        let mut schedule: DataflowScheduleFile = parse(text, file)?;
        check_version(file, FORMAT, &schedule.format, schedule.version)?;
        schedule.graph.read_from(file);
        Ok(schedule)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The request.
    ///
    /// # Errors
    /// When the graph makes no sense.
    pub fn problem(&self) -> Result<DataflowProblem, FormatError> {
        Ok(DataflowProblem {
            graph: self.graph.graph()?,
            latency_bound: self.latency_bound,
            interval: self.interval,
            objective: match self.objective {
                DataflowObjectiveEntry::Resources { peak, communication } => {
                    DataflowObjective::Resources { peak, communication }
                }
                DataflowObjectiveEntry::Storage => DataflowObjective::Storage,
                DataflowObjectiveEntry::Latency => DataflowObjective::Latency,
            },
        })
    }

    /// The claimed schedule.
    pub fn start_steps(&self) -> StartSteps {
        StartSteps { interval: self.interval, steps: self.steps.clone() }
    }
}
