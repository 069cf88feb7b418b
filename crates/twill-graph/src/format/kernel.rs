//! The kernel schedule format: several loops, each as a schedule file, with the resources that they share.

use super::{FormatError, GroupEntry, ScheduleFile, VERSION, check_version, parse};
use crate::{
    CommonGroups, Cycles, GroupId, KernelObjective, KernelRejection, LoopOperation, MultiLoopProblem, MultiLoopReport,
    Outcome, RejectionReason, Report, Schedule, Status, Tie, TieReason, WarpGroup,
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "twill-kernel-schedule";

/// A kernel schedule file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelScheduleFile {
    /// Always `twill-kernel-schedule`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the kernel.
    pub name: String,
    /// The outcome for all loops together.
    pub status: Status,
    /// Why there are no schedules: the proof's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<RejectionReason>,
    /// The reason for the end of a search without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// The weight of each loop's interval in the objective, in the order of the loops.
    pub weights: Vec<u64>,
    /// `Σ weight · I`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Cycles>,
    /// No smaller `cycles` exist.
    pub lower_bound: Cycles,
    /// Warp groups in use by any loop, the same in all.
    #[serde(default)]
    pub groups: Vec<GroupEntry>,
    /// Operations that run on the same group.
    #[serde(default)]
    pub ties: Vec<TieEntry>,
    /// Secondary objectives of all loops together, in their order.
    #[serde(default)]
    pub objectives: Vec<KernelObjective>,
    /// Intervals that were excluded for all loops together.
    #[serde(default)]
    pub rejections: Vec<KernelRejection>,
    /// Wall-clock seconds of what concerns all loops.
    #[serde(default)]
    pub seconds: IndexMap<String, f64>,
    /// The loops, in the order of the text.
    pub loops: Vec<ScheduleFile>,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// Operations that run on the same warp group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TieEntry {
    /// Why.
    pub reason: TieReason,
    /// Which.
    pub operations: Vec<TiedEntry>,
}

/// An operation of one of the loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TiedEntry {
    /// Position in `loops`, from 0.
    #[serde(rename = "loop")]
    pub index: usize,
    /// Name in that loop's graph.
    pub operation: String,
}

impl KernelScheduleFile {
    /// Describes a report about `kernel`.
    pub fn new<S: AsRef<Schedule>>(kernel: &MultiLoopProblem, report: &MultiLoopReport<S>) -> KernelScheduleFile {
        let common = report.outcome.schedule();
        let (infeasible, stopped_by) = match &report.outcome {
            Outcome::Infeasible { reason } => (Some(reason.clone()), None),
            Outcome::Unknown { stopped_by } => (None, Some(stopped_by.clone())),
            Outcome::Optimal { .. } | Outcome::Feasible { .. } => (None, None),
        };
        let tied = |o: &LoopOperation| TiedEntry { index: o.index, operation: kernel.operation(*o).name.clone() };
        let tie = |t: &Tie| TieEntry { reason: t.reason, operations: t.operations.iter().map(tied).collect() };
        KernelScheduleFile {
            format: FORMAT.into(),
            version: VERSION,
            name: kernel.name().to_owned(),
            status: report.outcome.status(),
            infeasible,
            stopped_by,
            weights: kernel.weights().to_vec(),
            cycles: common.map(|c| c.cycles),
            lower_bound: report.lower_bound,
            groups: common.map(|c| c.groups.iter().map(GroupEntry::of).collect()).unwrap_or_default(),
            ties: kernel.ties().iter().map(tie).collect(),
            objectives: report.objectives.clone(),
            rejections: report.rejections.clone(),
            seconds: report.phases.iter().map(|p| (p.name.clone(), p.seconds)).collect(),
            loops: kernel.loops().iter().zip(&report.loops).map(|(p, r)| ScheduleFile::new(p, r)).collect(),
            file: String::new(),
        }
    }

    /// Returns whether a text says that it is of this format.
    pub fn is_one(text: &str) -> bool {
        super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a kernel schedule file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<KernelScheduleFile, FormatError> {
        let mut kernel: KernelScheduleFile = parse(text, file)?;
        check_version(file, FORMAT, &kernel.format, kernel.version)?;
        kernel.file = file.to_owned();
        for (index, one) in kernel.loops.iter_mut().enumerate() {
            one.within(&format!("{file}: loop {index}"))?;
        }
        Ok(kernel)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The problem that the file answers.
    ///
    /// # Errors
    /// When a loop is not well formed, or the loops do not go together.
    pub fn problem(&self) -> Result<MultiLoopProblem, FormatError> {
        let loops: Result<Vec<_>, FormatError> = self.loops.iter().map(ScheduleFile::problem).collect();
        let loops = loops?;
        let mut ties = Vec::new();
        for entry in &self.ties {
            let mut operations = Vec::new();
            for TiedEntry { index, operation } in &entry.operations {
                let found = loops.get(*index).and_then(|p| p.graph().find(operation));
                let op = found.ok_or_else(|| FormatError::UnknownOperation {
                    file: self.file.clone(),
                    place: format!("a tie of loop {index}"),
                    operation: operation.clone(),
                })?;
                operations.push(LoopOperation { index: *index, op });
            }
            ties.push(Tie { reason: entry.reason, operations });
        }
        MultiLoopProblem::new(self.name.clone(), loops, self.weights.clone(), ties)
            .map_err(|error| FormatError::Kernel { file: self.file.clone(), error })
    }

    /// All that the file claims about `problem`; nothing about it is checked but that it is complete, and that
    /// `cycles` is the weighted sum.
    ///
    /// # Errors
    /// When status and schedules do not go together, or a schedule misses an operation.
    pub fn report(&self, problem: &MultiLoopProblem) -> Result<MultiLoopReport, FormatError> {
        let missing = |why: &str| FormatError::Schedule { file: self.file.clone(), why: why.into() };
        let common = || {
            let (groups, schedules) = self.schedules(problem)?;
            Ok(CommonGroups { groups, cycles: problem.cycles(schedules.iter().map(|s| s.interval)) })
        };
        let outcome = match self.status {
            Status::Optimal => Outcome::Optimal { schedule: common()? },
            Status::Feasible => Outcome::Feasible { schedule: common()? },
            Status::Infeasible => Outcome::Infeasible {
                reason: self.infeasible.clone().ok_or_else(|| missing("`infeasible` is missing"))?,
            },
            Status::Unknown => Outcome::Unknown { stopped_by: self.stopped_by.clone().unwrap_or_default() },
        };
        let loops: Result<Vec<Report>, FormatError> =
            self.loops.iter().zip(problem.loops()).map(|(file, p)| file.report(p)).collect();
        Ok(MultiLoopReport {
            outcome,
            lower_bound: self.lower_bound,
            loops: loops?,
            rejections: self.rejections.clone(),
            objectives: self.objectives.clone(),
            phases: super::phases(&self.seconds),
        })
    }

    /// The schedules that the file claims for the loops of `problem`, and their common groups; nothing
    /// about them is checked but that they are complete, and that `cycles` is their weighted sum.
    ///
    /// # Errors
    /// When there are none, one misses an operation, or the sum is another.
    pub fn schedules(&self, problem: &MultiLoopProblem) -> Result<(Vec<WarpGroup>, Vec<Schedule>), FormatError> {
        let each = self.loops.iter().zip(problem.loops());
        let schedules: Result<Vec<Schedule>, FormatError> = each.map(|(file, p)| file.schedule(p)).collect();
        let schedules = schedules?;
        let cycles = problem.cycles(schedules.iter().map(|s| s.interval));
        if self.cycles != Some(cycles) {
            let why = format!("`cycles` is not the sum of weight times initiation interval, {}", cycles.0);
            return Err(FormatError::Schedule { file: self.file.clone(), why });
        }
        let group = |g: &GroupEntry| WarpGroup {
            id: GroupId::new(g.id),
            role: g.role,
            warps: g.warps,
            registers_per_thread: g.registers_per_thread,
        };
        Ok((self.groups.iter().map(group).collect(), schedules))
    }
}
