//! Why an initiation interval is what it is: what excludes smaller ones, and what would change it
//! (docs/explain.md).

use crate::{Bytes, Cycles, Families, Family, LowerBound, Rejection, RejectionReason, Schedule, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a search, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The outcome.
    pub status: Status,
    /// Why there is no schedule, where that is proved.
    pub infeasible: Option<RejectionReason>,
    /// `I` of the best schedule.
    pub interval: Option<Cycles>,
    /// Its bound.
    pub lower_bound: LowerBound,
    /// Every interval that was excluded, ascending.
    pub rejections: Vec<ExplainedRejection>,
    /// The values of `I` if something were different.
    pub what_ifs: Vec<WhatIf>,
}

/// An interval that was excluded, and why.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedRejection {
    /// The search's record.
    #[serde(flatten)]
    pub rejection: Rejection,
    /// A bound that needs no search and lies above the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<LowerBound>,
    /// Constraint families that together leave no schedule at this interval.
    pub conflict: Conflict,
    /// True if the same families exclude every smaller interval too.
    pub smaller_too: bool,
}

/// Constraint families that together leave no schedule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Conflict {
    /// True if every member is proved to be needed: without it the others have a schedule.
    pub minimal: bool,
    /// The families, and the units of `resource` each by itself.
    pub members: Vec<Member>,
}

/// A family that takes part in a conflict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Member {
    /// The family.
    pub family: Family,
    /// The unit, if the kind is `resource`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// True if it is proved that the other members have a schedule without it.
    pub needed: bool,
    /// True if the whole problem has a schedule without it; absent when that is not settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffices: Option<bool>,
    /// The requirement versus the available amount.
    pub demands: Vec<Demand>,
    /// How the schedule that was found without it breaks it, as its replay says.
    pub breaches: Vec<Breach>,
    /// That schedule.
    #[serde(skip)]
    pub witness: Option<Witness>,
}

/// A schedule that keeps some of the constraints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The schedule.
    pub schedule: Schedule,
    /// The constraints that it keeps.
    pub keeps: Families,
    /// Units of which it does not keep `resource`.
    pub lifted: Vec<String>,
}

/// An amount that a schedule at the interval needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Demand {
    /// The quantity.
    pub quantity: Quantity,
    /// The least amount with which the conflict is no more (of `handoff_cycles`: the largest; of `unit_cycles`,
    /// `shared_traffic` and `synchronous_cycles`: the work of one iteration); absent when no amount is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<u64>,
    /// The available amount (for `handoff_cycles`: the cycles that handoffs take).
    pub available: u64,
    /// True if `required` is proved; otherwise it is known to be enough, but less might be.
    pub proved: bool,
    /// True if the whole problem has a schedule with `required`, all else being equal; otherwise only the members of
    /// the conflict have, and the whole problem needs at least as much.
    pub suffices: bool,
}

/// The purpose of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Cycles for which one iteration holds a unit, against `I` times its instances.
    UnitCycles,
    /// Bytes that one iteration moves through shared memory, against `I` times what it moves in a cycle.
    SharedTraffic,
    /// Synchronous cycles of an iteration on compute groups, against `I` times the groups.
    SynchronousCycles,
    /// Compute groups of the pool.
    ComputeGroups,
    /// Registers that a thread of a compute group can address.
    RegistersPerThread,
    /// The same, with a register file that gives them to every group.
    RegistersPerThreadAndFile,
    /// Words of the register file.
    RegisterFile,
    /// Bytes of shared memory.
    SharedMemory,
    /// Columns of tensor memory.
    TensorMemory,
    /// Cycles of the longest handoff.
    HandoffCycles,
}

/// How a schedule breaks a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Breach {
    /// The violation in words.
    pub violation: String,
    /// The operations that it is about.
    pub operations: Vec<String>,
}

/// The values of `I` if something were different.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// The difference.
    #[serde(flatten)]
    pub change: Change,
    /// The outcome then.
    pub status: Status,
    /// The best `I` known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiation_interval: Option<Cycles>,
    /// By how much it differs, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// The bound then.
    pub lower_bound: LowerBound,
    /// Where search bounds it: families that together leave nothing smaller, as few as were found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflict: Vec<Family>,
    /// How that is known.
    pub known_by: KnownBy,
}

/// Something that could be different.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// The most compute groups that a schedule may use.
    ComputeGroups {
        /// How many.
        groups: u32,
    },
    /// The shared memory of a thread block.
    SharedMemory {
        /// All of it.
        bytes: Bytes,
    },
    /// Registers of the threads of compute groups.
    Registers {
        /// Most that a thread can address.
        per_thread: u32,
        /// Words of the register file.
        words: u64,
    },
    /// A unit twice as fast.
    UnitTwiceAsFast {
        /// The unit.
        unit: String,
    },
    /// Shared memory twice as fast.
    SharedBandwidth {
        /// Bytes that it moves in a cycle.
        bytes_per_cycle: Bytes,
    },
    /// Passing a register value to another group takes no time.
    FreeHandoffs,
    /// Operations may run on any warp group, where the search kept each sub-tile on one.
    AnyAssignment,
    /// Sub-tiles along M.
    SubTiles {
        /// How many.
        sub_tiles: u32,
    },
}

/// How the effect of a change is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The bound of the changed problem is not below `I`, and the schedule still holds.
    Bound,
    /// Nothing that changes takes part in the conflict below `I`, and the schedule still holds.
    Conflict,
    /// The schedule does not use what is taken away.
    Schedule,
    /// The changed problem was searched.
    Search,
}
