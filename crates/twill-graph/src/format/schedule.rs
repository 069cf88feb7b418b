//! The schedule format: the answer with the problem it answers, so that it can be replayed.

use super::{FormatError, GraphFile, VERSION, check_version, parse};
use crate::{
    Bytes, Channel, ChannelStorage, Columns, Cycles, GroupId, GroupRole, LoopGraph, LowerBound, ModelOptions,
    ModuloSchedule, ObjectiveValue, OpId, Outcome, Placement, Problem, Rejection, RejectionReason, Report, Resources,
    Ring, Schedule, SimulatedCycles, Source, Status, WarpGroup,
};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "twill-schedule";

/// A schedule file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFile {
    /// Always `twill-schedule`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// The outcome.
    pub status: Status,
    /// Why there is no schedule: the proof's reason, or what stopped the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<RejectionReason>,
    /// The reason for the end of a search without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// `I`, in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiation_interval: Option<Cycles>,
    /// `L`, in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Cycles>,
    /// `N = ⌈L / I⌉`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// No smaller initiation interval than this exists.
    pub lower_bound: LowerBound,
    /// No smaller interval exists for any assignment of operations to warp groups, where `problem.options` fix one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wider_bound: Option<Cycles>,
    /// The cycles of an iteration of the generated kernel by simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedCycles>,
    /// How the costs were normalised, if they were; all cycles are then normalised ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalisation: Option<NormalisationEntry>,
    /// The throughput-optimal modulo schedule without warps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulo: Option<ModuloSchedule>,
    /// Where every operation went.
    #[serde(default)]
    pub operations: Vec<PlacedOperation>,
    /// Warp groups in use.
    #[serde(default)]
    pub groups: Vec<GroupEntry>,
    /// Values that pass between groups.
    #[serde(default)]
    pub channels: Vec<ChannelEntry>,
    /// Ring buffers of streaming loads.
    #[serde(default)]
    pub rings: Vec<RingEntry>,
    /// Secondary objectives, in their order.
    #[serde(default)]
    pub objectives: Vec<ObjectiveValue>,
    /// Intervals that were excluded.
    #[serde(default)]
    pub rejections: Vec<Rejection>,
    /// Wall-clock seconds of each phase.
    #[serde(default)]
    pub seconds: IndexMap<String, f64>,
    /// The problem that this answers.
    pub problem: ProblemEntry,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// Cost normalisation (docs/model.md).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NormalisationEntry {
    /// `U`: the largest sum of the distinct costs.
    pub limit: u32,
    /// `F`: the largest `|C_i C'_j − C_j C'_i|`; proved least.
    pub error: i64,
    /// The largest factor by which a ratio of two costs changed, at least 1.
    pub distortion: f64,
}

/// A scheduled operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedOperation {
    /// Name in the graph.
    pub name: String,
    /// Its action.
    pub kind: String,
    /// Its line in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Issue cycle within its iteration.
    pub cycle: Cycles,
    /// `⌊cycle / I⌋`.
    pub stage: i64,
    /// Id of its warp group.
    pub group: usize,
    /// The unit it holds longest, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A warp group in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    /// Id, as operations name it.
    pub id: usize,
    /// Its purpose.
    pub role: GroupRole,
    /// Warps.
    pub warps: u32,
    /// Registers each of its threads is given.
    pub registers_per_thread: u32,
}

/// A channel between groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelEntry {
    /// The operation whose result passes.
    pub buffer: String,
    /// Producing group.
    pub from: usize,
    /// Reading group.
    pub to: usize,
    /// `handoff` (registers through shared memory), `shared_memory` or `tensor_memory`.
    pub memory: String,
    /// Bytes of one copy in shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Columns of one copy in tensor memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Copies.
    pub depth: u32,
}

/// A ring buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingEntry {
    /// The load that fills it.
    pub buffer: String,
    /// Bytes of one slot.
    pub bytes: Bytes,
    /// Slots.
    pub depth: u32,
}

/// The problem in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemEntry {
    /// The loop graph.
    pub graph: GraphFile,
    /// The machine's resources.
    pub resources: Resources,
    /// The model variant.
    #[serde(default)]
    pub options: ModelOptions,
}

impl ProblemEntry {
    /// A problem as files have it.
    pub fn new(problem: &Problem) -> ProblemEntry {
        ProblemEntry {
            graph: GraphFile::from_graph(problem.graph()),
            resources: problem.resources().clone(),
            options: *problem.options(),
        }
    }

    /// The problem; `file` is named in errors.
    pub(super) fn to_problem(&self, file: &str) -> Result<Problem, FormatError> {
        self.graph.check_version(file)?;
        Problem::new(self.graph.graph()?, self.resources.clone(), self.options)
            .map_err(|error| FormatError::Problem { file: file.to_owned(), error })
    }
}

impl ScheduleFile {
    /// Describes a report about `problem`.
    pub fn new<S: AsRef<Schedule>>(problem: &Problem, report: &Report<S>) -> ScheduleFile {
        let graph = problem.graph();
        let schedule = report.outcome.schedule().map(AsRef::as_ref);
        let (infeasible, stopped_by) = match &report.outcome {
            Outcome::Infeasible { reason } => (Some(reason.clone()), None),
            Outcome::Unknown { stopped_by } => (None, Some(stopped_by.clone())),
            Outcome::Optimal { .. } | Outcome::Feasible { .. } => (None, None),
        };
        ScheduleFile {
            format: FORMAT.into(),
            version: VERSION,
            status: report.outcome.status(),
            infeasible,
            stopped_by,
            initiation_interval: schedule.map(|s| s.interval),
            length: schedule.map(|s| s.length),
            stages: schedule.map(Schedule::stages),
            lower_bound: report.lower_bound.clone(),
            wider_bound: report.wider_bound,
            simulated: report.simulated,
            normalisation: None,
            modulo: report.modulo,
            operations: schedule.map(|s| placed(graph, s)).unwrap_or_default(),
            groups: schedule.map(group_entries).unwrap_or_default(),
            channels: schedule
                .map(|s| s.channels.iter().map(|c| channel_entry(graph, c)).collect())
                .unwrap_or_default(),
            rings: schedule
                .map(|s| {
                    s.rings
                        .iter()
                        .map(|r| RingEntry {
                            buffer: graph.operation(r.load).name.clone(),
                            bytes: r.bytes,
                            depth: r.depth,
                        })
                        .collect()
                })
                .unwrap_or_default(),
            objectives: report.objectives.clone(),
            rejections: report.rejections.clone(),
            seconds: report.phases.iter().map(|p| (p.name.clone(), p.seconds)).collect(),
            problem: ProblemEntry::new(problem),
            file: String::new(),
        }
    }

    /// Reads a schedule file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<ScheduleFile, FormatError> {
        let mut schedule: ScheduleFile = parse(text, file)?;
        schedule.within(file)?;
        Ok(schedule)
    }

    /// Takes its place in `file`, as a whole or as a part.
    pub(super) fn within(&mut self, file: &str) -> Result<(), FormatError> {
        check_version(file, FORMAT, &self.format, self.version)?;
        self.file = file.to_owned();
        Ok(())
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

    /// All that the file claims about `problem`; nothing about it is checked but that it is complete.
    ///
    /// # Errors
    /// When status and schedule do not go together, or the schedule misses an operation.
    pub fn report(&self, problem: &Problem) -> Result<Report, FormatError> {
        let missing = |why: &str| FormatError::Schedule { file: self.file.clone(), why: why.into() };
        let outcome = match self.status {
            Status::Optimal => Outcome::Optimal { schedule: self.schedule(problem)? },
            Status::Feasible => Outcome::Feasible { schedule: self.schedule(problem)? },
            Status::Infeasible => Outcome::Infeasible {
                reason: self.infeasible.clone().ok_or_else(|| missing("`infeasible` is missing"))?,
            },
            Status::Unknown => Outcome::Unknown { stopped_by: self.stopped_by.clone().unwrap_or_default() },
        };
        Ok(Report {
            outcome,
            lower_bound: self.lower_bound.clone(),
            modulo: self.modulo,
            rejections: self.rejections.clone(),
            objectives: self.objectives.clone(),
            wider_bound: self.wider_bound,
            simulated: self.simulated,
            phases: super::phases(&self.seconds),
        })
    }

    /// The schedule that the file claims for `problem`; nothing about it is checked but that it is
    /// complete.
    ///
    /// # Errors
    /// When there is none or it misses an operation.
    pub fn schedule(&self, problem: &Problem) -> Result<Schedule, FormatError> {
        let graph = problem.graph();
        let missing = |why: &str| FormatError::Schedule { file: self.file.clone(), why: why.into() };
        let (Some(interval), Some(length)) = (self.initiation_interval, self.length) else {
            return Err(missing("it has no schedule: `initiation_interval` or `length` is missing"));
        };
        let find = |place: &str, name: &str| {
            graph.find(name).ok_or_else(|| FormatError::UnknownOperation {
                file: self.file.clone(),
                place: place.into(),
                operation: name.into(),
            })
        };
        let mut placements: Vec<Option<Placement>> = vec![None; graph.operations().len()];
        for op in &self.operations {
            let id = find("operations", &op.name)?;
            placements[id.index()] = Some(Placement { cycle: op.cycle, group: GroupId::new(op.group) });
        }
        let placements: Option<Vec<Placement>> = placements.into_iter().collect();
        let channels: Result<Vec<Channel>, FormatError> = self
            .channels
            .iter()
            .map(|c| {
                let storage = match (c.memory.as_str(), c.bytes, c.columns) {
                    ("handoff", Some(bytes), None) => ChannelStorage::Handoff(bytes),
                    ("shared_memory", Some(bytes), None) => ChannelStorage::Shared(bytes),
                    ("tensor_memory", None, Some(columns)) => ChannelStorage::Tensor(columns),
                    _ => return Err(missing("a channel's `memory` does not go with its `bytes` and `columns`")),
                };
                let value = find("channels", &c.buffer)?;
                let (from, to) = (GroupId::new(c.from), GroupId::new(c.to));
                Ok(Channel { value, from, to, storage, depth: c.depth })
            })
            .collect();
        let rings: Result<Vec<Ring>, FormatError> = self
            .rings
            .iter()
            .map(|r| Ok(Ring { load: find("rings", &r.buffer)?, bytes: r.bytes, depth: r.depth }))
            .collect();
        Ok(Schedule {
            interval,
            length,
            placements: placements
                .ok_or_else(|| missing("`operations` does not place every operation of the graph"))?,
            groups: self
                .groups
                .iter()
                .map(|g| WarpGroup {
                    id: GroupId::new(g.id),
                    role: g.role,
                    warps: g.warps,
                    registers_per_thread: g.registers_per_thread,
                })
                .collect(),
            channels: channels?,
            rings: rings?,
        })
    }
}

impl AsRef<Schedule> for Schedule {
    fn as_ref(&self) -> &Schedule {
        self
    }
}

fn placed(graph: &LoopGraph, schedule: &Schedule) -> Vec<PlacedOperation> {
    let one = |id: OpId| {
        let op = graph.operation(id);
        PlacedOperation {
            name: op.name.clone(),
            kind: op.kind.clone(),
            source: op.source.clone(),
            cycle: schedule.placement(id).cycle,
            stage: schedule.stage(id),
            group: schedule.placement(id).group.index(),
            unit: op.reservations.iter().rev().max_by_key(|r| r.cycles).map(|r| r.unit.clone()),
        }
    };
    graph.op_ids().map(one).collect()
}

fn group_entries(schedule: &Schedule) -> Vec<GroupEntry> {
    schedule.groups.iter().map(GroupEntry::of).collect()
}

impl GroupEntry {
    pub(super) fn of(g: &WarpGroup) -> GroupEntry {
        GroupEntry { id: g.id.index(), role: g.role, warps: g.warps, registers_per_thread: g.registers_per_thread }
    }
}

fn channel_entry(graph: &LoopGraph, channel: &Channel) -> ChannelEntry {
    let (memory, bytes, columns) = match channel.storage {
        ChannelStorage::Handoff(bytes) => ("handoff", Some(bytes), None),
        ChannelStorage::Shared(bytes) => ("shared_memory", Some(bytes), None),
        ChannelStorage::Tensor(columns) => ("tensor_memory", None, Some(columns)),
    };
    ChannelEntry {
        buffer: graph.operation(channel.value).name.clone(),
        from: channel.from.index(),
        to: channel.to.index(),
        memory: memory.into(),
        bytes,
        columns,
        depth: channel.depth,
    }
}
