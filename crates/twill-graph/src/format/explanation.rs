//! The explanation format: why an interval is what it is. It is written, not read.

use super::VERSION;
use crate::{
    Cycles, ExplainedRejection, Explanation, IterationTraffic, LowerBound, Problem, RejectionReason, Source, Status,
    WhatIf,
};
use schemars::JsonSchema;
use serde::Serialize;

const FORMAT: &str = "twill-explanation";

/// An explanation file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExplanationFile {
    /// Always `twill-explanation`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the loop.
    pub name: String,
    /// Name of the machine.
    pub machine: String,
    /// The outcome.
    pub status: Status,
    /// Why there is no schedule, where that is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<RejectionReason>,
    /// `I` of the best schedule, in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiation_interval: Option<Cycles>,
    /// Its bound.
    pub lower_bound: LowerBound,
    /// Every interval that was excluded, ascending, with the constraints that exclude it.
    pub rejections: Vec<ExplainedRejection>,
    /// The values of `I` if something were different.
    pub what_ifs: Vec<WhatIf>,
    /// The bytes and FLOP of an iteration; absent where they are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<IterationTraffic>,
    /// Where the operations stand in the kernel.
    pub operations: Vec<PlaceEntry>,
}

/// Where an operation stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceEntry {
    /// Name in the graph.
    pub name: String,
    /// Its action.
    pub kind: String,
    /// Its line in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

impl ExplanationFile {
    /// Describes an explanation of `problem`.
    pub fn new(problem: &Problem, explanation: &Explanation) -> ExplanationFile {
        let place = |op: &crate::Operation| PlaceEntry {
            name: op.name.clone(),
            kind: op.kind.clone(),
            source: op.source.clone(),
        };
        ExplanationFile {
            format: FORMAT.into(),
            version: VERSION,
            name: problem.graph().name().into(),
            machine: problem.resources().name.clone(),
            status: explanation.status,
            infeasible: explanation.infeasible.clone(),
            initiation_interval: explanation.interval,
            lower_bound: explanation.lower_bound.clone(),
            rejections: explanation.rejections.clone(),
            what_ifs: explanation.what_ifs.clone(),
            traffic: Some(problem.graph().traffic()).filter(|t| *t != IterationTraffic::default()),
            operations: problem.graph().operations().iter().map(place).collect(),
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
