//! The pipeline format: a modulo schedule without warps, with the problem it answers. A format of its own, so that nobody
//! takes it for a schedule: it has no groups, and promises nothing about registers and memories.

use super::{FormatError, NormalisationEntry, ProblemEntry, VERSION, check_version, parse};
use crate::{Cycles, LowerBound, Outcome, Pipeline, Problem, Report, Status};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "twill-pipeline";

/// A pipeline file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineFile {
    /// Always `twill-pipeline`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// The outcome for `I`.
    pub status: Status,
    /// The reason for the end of a search without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// `I`, in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiation_interval: Option<Cycles>,
    /// `L`, in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Cycles>,
    /// True if no shorter pipeline exists at this interval.
    #[serde(default)]
    pub length_proved: bool,
    /// `N = ⌈L / I⌉`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// No smaller initiation interval than this exists.
    pub lower_bound: LowerBound,
    /// How the costs were normalised, if they were; all cycles are then normalised ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalisation: Option<NormalisationEntry>,
    /// `M`: issue cycle of each operation within its iteration.
    #[serde(default)]
    pub cycles: IndexMap<String, Cycles>,
    /// Wall-clock seconds of each phase.
    #[serde(default)]
    pub seconds: IndexMap<String, f64>,
    /// The problem that this answers; of its machine only the units count.
    pub problem: ProblemEntry,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

impl PipelineFile {
    /// Describes a report about `problem`.
    pub fn new<S: AsRef<Pipeline>>(problem: &Problem, report: &Report<S>) -> PipelineFile {
        let names = problem.graph().operations().iter().map(|op| op.name.clone());
        let pipeline = report.outcome.schedule().map(AsRef::as_ref);
        PipelineFile {
            format: FORMAT.into(),
            version: VERSION,
            status: report.outcome.status(),
            stopped_by: match &report.outcome {
                Outcome::Unknown { stopped_by } => Some(stopped_by.clone()),
                _ => None,
            },
            initiation_interval: pipeline.map(|p| p.interval),
            length: pipeline.map(|p| p.length),
            length_proved: report.modulo.is_some_and(|m| m.length_proved),
            stages: pipeline.map(Pipeline::stages),
            lower_bound: report.lower_bound.clone(),
            normalisation: None,
            cycles: pipeline.map(|p| names.zip(p.cycles.iter().copied()).collect()).unwrap_or_default(),
            seconds: report.phases.iter().map(|p| (p.name.clone(), p.seconds)).collect(),
            problem: ProblemEntry::new(problem),
            file: String::new(),
        }
    }

    /// Returns whether a text says that it is of this format.
    pub fn is_named_in(text: &str) -> bool {
        super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a pipeline file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<PipelineFile, FormatError> {
        let mut pipeline: PipelineFile = parse(text, file)?;
        check_version(file, FORMAT, &pipeline.format, pipeline.version)?;
        pipeline.file = file.to_owned();
        Ok(pipeline)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The problem that the file answers.
    ///
    /// # Errors
    /// When the graph or the machine is not well formed.
    pub fn problem(&self) -> Result<Problem, FormatError> {
        self.problem.to_problem(&self.file)
    }

    /// The pipeline that the file claims for `problem`; nothing about it is checked but that it is complete.
    ///
    /// # Errors
    /// When there is none, or it does not place exactly the operations of the graph.
    pub fn pipeline(&self, problem: &Problem) -> Result<Pipeline, FormatError> {
        let missing = |why: &str| FormatError::Schedule { file: self.file.clone(), why: why.into() };
        let (Some(interval), Some(length)) = (self.initiation_interval, self.length) else {
            return Err(missing("it has no pipeline: `initiation_interval` or `length` is missing"));
        };
        let operations = problem.graph().operations();
        let cycles: Option<Vec<Cycles>> = operations.iter().map(|op| self.cycles.get(&op.name).copied()).collect();
        match cycles {
            Some(cycles) if self.cycles.len() == operations.len() => Ok(Pipeline { interval, length, cycles }),
            _ => Err(missing("`cycles` does not place exactly the operations of the graph")),
        }
    }
}
