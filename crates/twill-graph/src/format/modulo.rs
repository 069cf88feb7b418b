//! Modulo schedules without warps as JSON, for reading by others.

use crate::{Cycles, IssueTimes, LowerBound, ModuloProblem, Rejection, Report, Status};
use indexmap::IndexMap;
use serde::Serialize;

/// The report of a search for a modulo schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModuloFile {
    /// Always `twill-modulo`.
    pub format: &'static str,
    /// Always 1.
    pub version: u32,
    /// Name of the loop.
    pub name: String,
    /// The outcome.
    pub status: Status,
    /// `I`, if a schedule was found.
    pub initiation_interval: Option<Cycles>,
    /// Iterations that overlap.
    pub stages: Option<i64>,
    /// Below it nothing exists.
    pub lower_bound: LowerBound,
    /// Start of each operation in iteration 0.
    pub times: IndexMap<String, Cycles>,
    /// Intervals that were excluded.
    pub rejections: Vec<Rejection>,
    /// Wall-clock seconds of each phase.
    pub seconds: IndexMap<String, f64>,
}

impl ModuloFile {
    /// A report with the names of its problem.
    pub fn new<S: AsRef<IssueTimes>>(problem: &ModuloProblem, report: &Report<S>) -> ModuloFile {
        let schedule = report.outcome.schedule().map(AsRef::as_ref);
        let names = problem.operations().iter().map(|op| op.name.clone());
        ModuloFile {
            format: "twill-modulo",
            version: super::VERSION,
            name: problem.name().to_owned(),
            status: report.outcome.status(),
            initiation_interval: schedule.map(|s| s.interval),
            stages: schedule.map(IssueTimes::stages),
            lower_bound: report.lower_bound.clone(),
            times: schedule.map(|s| names.zip(s.times.iter().copied()).collect()).unwrap_or_default(),
            rejections: report.rejections.clone(),
            seconds: report.phases.iter().map(|p| (p.name.clone(), p.seconds)).collect(),
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Plain data always serialises.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
