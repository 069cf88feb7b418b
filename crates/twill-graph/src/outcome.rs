//! The outcome of a search, and its duration.

use crate::format::is_default;
use crate::{Bytes, Cycles, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The answer of a scheduler, generic in the schedule: `Schedule` is a claim,
/// `twill_check::Verified<Schedule>` has been replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<S = Schedule> {
    /// No smaller initiation interval exists; proved.
    Optimal {
        /// The schedule.
        schedule: S,
    },
    /// A schedule, but a smaller initiation interval is not excluded.
    Feasible {
        /// The schedule.
        schedule: S,
    },
    /// No schedule exists; proved.
    Infeasible {
        /// Why.
        reason: RejectionReason,
    },
    /// Stopped before anything was found.
    Unknown {
        /// The reason for the end of the search.
        stopped_by: String,
    },
}

/// [`Outcome`] without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Proven optimal.
    Optimal,
    /// A schedule with a bound.
    Feasible,
    /// Proven infeasible.
    Infeasible,
    /// Stopped with nothing.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Optimal => "optimal",
            Status::Feasible => "feasible",
            Status::Infeasible => "infeasible",
            Status::Unknown => "unknown",
        })
    }
}

impl<S> Outcome<S> {
    /// The outcome.
    pub fn status(&self) -> Status {
        match self {
            Outcome::Optimal { .. } => Status::Optimal,
            Outcome::Feasible { .. } => Status::Feasible,
            Outcome::Infeasible { .. } => Status::Infeasible,
            Outcome::Unknown { .. } => Status::Unknown,
        }
    }

    /// The schedule, if there is one.
    pub fn schedule(&self) -> Option<&S> {
        match self {
            Outcome::Optimal { schedule } | Outcome::Feasible { schedule } => Some(schedule),
            Outcome::Infeasible { .. } | Outcome::Unknown { .. } => None,
        }
    }

    /// The same answer about another form of the schedule.
    ///
    /// # Errors
    /// The error that `change` returns.
    pub fn try_map<T, E>(self, change: impl FnOnce(S) -> Result<T, E>) -> Result<Outcome<T>, E> {
        Ok(match self {
            Outcome::Optimal { schedule } => Outcome::Optimal { schedule: change(schedule)? },
            Outcome::Feasible { schedule } => Outcome::Feasible { schedule: change(schedule)? },
            Outcome::Infeasible { reason } => Outcome::Infeasible { reason },
            Outcome::Unknown { stopped_by } => Outcome::Unknown { stopped_by },
        })
    }
}

/// Everything a search reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<S = Schedule> {
    /// The answer.
    pub outcome: Outcome<S>,
    /// The largest initiation interval below which nothing exists, and why.
    pub lower_bound: LowerBound,
    /// The modulo schedule of phase 1, if it was reached.
    pub modulo: Option<ModuloSchedule>,
    /// Every interval that was excluded on the way, ascending.
    pub rejections: Vec<Rejection>,
    /// Secondary objectives in their order, as far as they were reached.
    pub objectives: Vec<ObjectiveValue>,
    /// Least interval that is proved for any assignment of operations to warp groups, where the search kept to one.
    pub wider_bound: Option<Cycles>,
    /// The cycles of an iteration of the generated kernel by simulation, where it was simulated.
    pub simulated: Option<SimulatedCycles>,
    /// Wall-clock time of each phase.
    pub phases: Vec<Phase>,
}

/// Cycles of an iteration by simulation of the warp programs that a schedule becomes (docs/simulation.md). The interval is a bound
/// that knows units, dependences and storage; this also knows barriers, issue slots and the order within warp groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedCycles {
    /// An iteration.
    pub cycles: Cycles,
    /// An iteration if threads took no time: copies and MMAs alone.
    pub copies_and_mmas: Cycles,
    /// Cycles of an iteration by SASS estimate, where the kernel was assembled before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sass: Option<Cycles>,
}

impl<S> Report<S> {
    /// The same report about another form of the schedule.
    ///
    /// # Errors
    /// The error that `change` returns.
    pub fn try_map<T, E>(self, change: impl FnOnce(S) -> Result<T, E>) -> Result<Report<T>, E> {
        Ok(Report {
            outcome: self.outcome.try_map(change)?,
            lower_bound: self.lower_bound,
            modulo: self.modulo,
            rejections: self.rejections,
            objectives: self.objectives,
            wider_bound: self.wider_bound,
            simulated: self.simulated,
            phases: self.phases,
        })
    }
}

/// The throughput-optimal modulo schedule that ignores warps (phase 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuloSchedule {
    /// Least interval; proved.
    pub initiation_interval: Cycles,
    /// Length of the shortest schedule found at that interval.
    pub length: Cycles,
    /// True if no shorter one exists.
    pub length_proved: bool,
}

/// No initiation interval below `interval` exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LowerBound {
    /// The bound, in cycles.
    pub interval: Cycles,
    /// Why, with the witness.
    #[serde(flatten)]
    pub kind: LowerBoundKind,
}

/// A lower bound on the initiation interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "witness", rename_all = "snake_case")]
pub enum LowerBoundKind {
    /// A unit is busy this long in every iteration (ResMII).
    Resource {
        /// The unit.
        unit: String,
        /// Cycles for which one iteration holds it, summed over instances.
        busy: Cycles,
        /// Its instances.
        capacity: u32,
        /// The operations that hold it.
        operations: Vec<String>,
    },
    /// A cycle of dependences (RecMII).
    Recurrence {
        /// The operations around it.
        operations: Vec<String>,
        /// Sum of delays.
        delay: Cycles,
        /// Sum of distances.
        distance: u32,
    },
    /// Shared memory moves this many bytes in every iteration.
    SharedBandwidth {
        /// Bytes of an iteration.
        bytes: Bytes,
        /// Bytes that it moves in a cycle.
        bytes_per_cycle: Bytes,
        /// The operations that move them, those that move most first.
        operations: Vec<String>,
    },
    /// All warp groups together cannot execute the synchronous work, and issue what waits, any faster.
    GroupWork {
        /// Synchronous cycles of an iteration.
        work: Cycles,
        /// Asynchronous operations that wait, and take a cycle of their group each.
        #[serde(default, skip_serializing_if = "is_default")]
        issues: u32,
        /// Compute groups.
        groups: u32,
    },
    /// One synchronous operation alone keeps its warp group busy this long.
    Operation {
        /// The operation.
        operation: String,
        /// Its cycles.
        cycles: Cycles,
    },
    /// An interval has at least one cycle.
    Trivial,
    /// Search excluded every smaller interval down to the next simpler bound.
    Search {
        /// The bound before search.
        from: Cycles,
    },
}

/// An initiation interval that was excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// The interval.
    pub interval: Cycles,
    /// Numbers of stages up to this were covered; all of them when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// Why.
    #[serde(flatten)]
    pub reason: RejectionReason,
}

/// Why something cannot be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RejectionReason {
    /// An operation overlaps its own next iteration on a unit.
    SelfConflict {
        /// The operation.
        operation: String,
        /// The unit, or the warp group's issue slot.
        resource: String,
    },
    /// Dependences, units and bandwidth alone leave no schedule within the length.
    Throughput {
        /// Conflicts that the search went through; 0 when propagation sufficed.
        conflicts: u64,
    },
    /// The joint search was exhausted.
    Search {
        /// Conflicts that the search went through; 0 when propagation sufficed.
        conflicts: u64,
    },
    /// No group of the pool may run an operation.
    NoGroup {
        /// The operation.
        operation: String,
        /// The requirement that no group meets.
        why: String,
    },
    /// Storage that is needed at any initiation interval exceeds what there is.
    Storage {
        /// `registers`, `shared memory` or `tensor memory`.
        memory: String,
        /// Least that is needed.
        required: u64,
        /// At hand.
        available: u64,
        /// The values that need it.
        values: Vec<String>,
    },
    /// A register value cannot stay on one group, as it must.
    Handoff {
        /// Producer.
        from: String,
        /// Consumer.
        to: String,
        /// Why they are on different groups.
        why: String,
    },
    /// Every interval up to the largest allowed was excluded.
    Exhausted {
        /// The largest interval tried.
        largest: Cycles,
        /// True if that excludes every larger one too.
        all: bool,
    },
    /// The loops of one kernel have no schedules with common groups and registers.
    OtherLoops {
        /// The resource that they cannot share.
        why: String,
    },
}

/// The objective after the initiation interval, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveLevel {
    /// Overlapped copies of the loop.
    Stages,
    /// Compute groups.
    ComputeGroups,
    /// Words of register handoffs, in units of 64 words, at least 1 each.
    HandoffWords,
    /// Distinct pairs of a value and a group that reads it without having made it.
    Channels,
    /// Length of one iteration in cycles.
    Length,
    /// The most registers a thread of any compute group is given.
    RegistersPerThread,
}

/// One level of the objective, as reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveValue {
    /// Which.
    pub level: ObjectiveLevel,
    /// Its value.
    pub value: i64,
    /// True if it is proved that no smaller one exists, the levels before it being equal.
    pub proved: bool,
}

/// Time spent in one part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Which part.
    pub name: String,
    /// Wall-clock seconds.
    pub seconds: f64,
}
