//! A scheduling problem: a loop graph on a machine, under one model variant.

use crate::{FixedGroup, GroupId, LoopGraph, ModelOptions, OpId, Reserved, Resources, ResourcesError, UnitId, grouped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// A loop graph, the machine it runs on, and the model variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    graph: LoopGraph,
    resources: Resources,
    options: ModelOptions,
    unit_of: Vec<Vec<UnitId>>,
    groups: Vec<Group>,
}

/// A member of the pool of warp groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its purpose.
    pub role: GroupRole,
    /// Warps that work.
    pub warps: u32,
}

/// The role of a warp group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupRole {
    /// Runs all variable-latency operations and nothing else.
    VariableLatency,
    /// Issues tensor operations that one warp issues.
    Issue,
    /// Computes.
    Compute,
}

impl fmt::Display for GroupRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GroupRole::VariableLatency => "variable latency",
            GroupRole::Issue => "issue",
            GroupRole::Compute => "compute",
        })
    }
}

/// The error for a graph that makes no problem on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// A unit is used but not declared.
    #[error(
        "operation `{operation}` uses the unit `{unit}`, which machine `{machine}` does not declare; it has {}",
        list(declared)
    )]
    UnknownUnit {
        /// The operation.
        operation: String,
        /// The unit.
        unit: String,
        /// The machine.
        machine: String,
        /// Units that it has.
        declared: Vec<String>,
    },
    /// The machine makes no sense.
    #[error(transparent)]
    Resources(#[from] ResourcesError),
    /// The storage kept during the whole loop does not fit by itself.
    #[error(
        "the loop `{graph}` keeps {} {what} during all iterations, and machine `{machine}` has {}; choose smaller tiles",
        grouped(*.needed), grouped(*.available)
    )]
    Reserved {
        /// The loop.
        graph: String,
        /// The machine.
        machine: String,
        /// The scarce resource.
        what: &'static str,
        /// Needed.
        needed: u64,
        /// At hand.
        available: u64,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

impl Problem {
    /// States the problem of `graph` on a machine.
    ///
    /// # Errors
    /// When the machine's numbers make no sense or the graph names a unit it does not have.
    pub fn new(graph: LoopGraph, resources: Resources, options: ModelOptions) -> Result<Problem, ProblemError> {
        resources.check()?;
        let mut unit_of = Vec::with_capacity(graph.operations().len());
        for op in graph.operations() {
            let units: Result<Vec<UnitId>, ProblemError> = op
                .reservations
                .iter()
                .map(|r| {
                    resources.unit(&r.unit).ok_or_else(|| ProblemError::UnknownUnit {
                        operation: op.name.clone(),
                        unit: r.unit.clone(),
                        machine: resources.name.clone(),
                        declared: resources.units.iter().map(|u| u.name.clone()).collect(),
                    })
                })
                .collect();
            unit_of.push(units?);
        }
        let Reserved { shared, tensor } = graph.reserved();
        for (what, needed, available) in [
            ("bytes of shared memory", shared.0, resources.shared_memory.0),
            ("columns of tensor memory", tensor.0, resources.tensor_memory.0),
        ] {
            if needed > available {
                let (graph, machine) = (graph.name().to_owned(), resources.name.clone());
                return Err(ProblemError::Reserved { graph, machine, what, needed, available });
            }
        }
        let fixed = |role, group: Option<FixedGroup>| group.map(|g| Group { role, warps: g.warps });
        let groups = fixed(GroupRole::VariableLatency, resources.variable_latency_group)
            .into_iter()
            .chain(fixed(GroupRole::Issue, resources.issue_group))
            .chain(
                (0..resources.compute_groups.maximum)
                    .map(|_| Group { role: GroupRole::Compute, warps: resources.compute_groups.warps }),
            )
            .collect();
        Ok(Problem { graph, resources, options, unit_of, groups })
    }

    /// The loop.
    pub fn graph(&self) -> &LoopGraph {
        &self.graph
    }

    /// The machine.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The model variant.
    pub fn options(&self) -> &ModelOptions {
        &self.options
    }

    /// The pool: the fixed groups, then as many compute groups as a schedule may use.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Ids of the pool's groups.
    pub fn group_ids(&self) -> impl DoubleEndedIterator<Item = GroupId> + use<> {
        (0..self.groups.len()).map(GroupId::new)
    }

    /// The registers of a fixed member of the pool; `None` for compute groups.
    pub fn fixed_group(&self, role: GroupRole) -> Option<FixedGroup> {
        match role {
            GroupRole::VariableLatency => self.resources.variable_latency_group,
            GroupRole::Issue => self.resources.issue_group,
            GroupRole::Compute => None,
        }
    }

    /// Units of an operation's reservations, in their order.
    pub fn units_of(&self, op: OpId) -> &[UnitId] {
        &self.unit_of[op.index()]
    }

    /// The same graph and machine under another model variant.
    pub fn with_options(&self, options: ModelOptions) -> Problem {
        Problem { options, ..self.clone() }
    }
}
