//! Several loops: the loops of one kernel under one warp assignment and one register budget
//! (docs/model.md, "Sibling loops").

use crate::names::{self, NameFault};
use crate::saturate;
use crate::{
    Cycles, LoopGraph, ObjectiveLevel, OpId, Outcome, Phase, Problem, RejectionReason, Report, Schedule, WarpGroup,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Loops that run one after the other on the same warp groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiLoopProblem {
    name: String,
    loops: Vec<Problem>,
    weights: Vec<u64>,
    ties: Vec<Tie>,
}

/// Operations that run on the same warp group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Why.
    pub reason: TieReason,
    /// Which; those of one loop may be several.
    pub operations: Vec<LoopOperation>,
}

/// Why operations are tied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TieReason {
    /// They make a value that one loop hands on to the next.
    Carried,
    /// They are the same operation of the source, in several loops.
    Corresponding,
}

/// An operation of one of the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopOperation {
    /// Which loop, from 0.
    pub index: usize,
    /// The operation of its graph.
    pub op: OpId,
}

/// The error for loops that make no common problem.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KernelError {
    /// There is nothing to schedule.
    #[error("the kernel `{kernel}` has no loops")]
    NoLoops {
        /// The kernel.
        kernel: String,
    },
    /// Two loop problems have different machines, or different model variants.
    #[error("the loops `{first}` and `{other}` differ in {what}; loops of one kernel share them")]
    Differ {
        /// The first loop.
        first: String,
        /// The one that differs.
        other: String,
        /// `machine` or `options`.
        what: &'static str,
    },
    /// A name that cannot be shown.
    #[error("a kernel is named {name}: {fault}")]
    Name {
        /// The name in quotes, or its beginning.
        name: String,
        /// The fault.
        fault: NameFault,
    },
    /// Not one weight a loop.
    #[error("{weights} trip counts for {loops} loops; give one for each, in the order of the text")]
    Weights {
        /// How many there are.
        weights: usize,
        /// How many there should be.
        loops: usize,
    },
    /// A weight out of range.
    #[error("the trip count of `{graph}` is {weight}; it must be from 1 to {most}", most = MultiLoopProblem::MOST_WEIGHT)]
    Weight {
        /// The loop.
        graph: String,
        /// Its weight.
        weight: u64,
    },
    /// A tie speaks of an operation that is not there.
    #[error("tie {tie} names operation {op} of loop {index}, which is not there")]
    Tie {
        /// Position of the tie, from 0.
        tie: usize,
        /// The loop.
        index: usize,
        /// The operation.
        op: usize,
    },
}

impl MultiLoopProblem {
    /// The largest weight of a loop.
    pub const MOST_WEIGHT: u64 = 1 << 20;

    /// States a problem of several loops. `weights`: trip counts, or what stands for them.
    ///
    /// # Errors
    /// When they do not share machine and options, or weights or ties do not go with them.
    pub fn new(
        name: impl Into<String>,
        loops: Vec<Problem>,
        weights: Vec<u64>,
        ties: Vec<Tie>,
    ) -> Result<MultiLoopProblem, KernelError> {
        let name = name.into();
        if let Some(fault) = names::fault_if_any(&name) {
            return Err(KernelError::Name { name: names::quoted(&name), fault });
        }
        let Some(first) = loops.first() else { return Err(KernelError::NoLoops { kernel: name }) };
        let title = |p: &Problem| p.graph().name().to_owned();
        for other in &loops {
            let differ = |what| KernelError::Differ { first: title(first), other: title(other), what };
            if other.resources() != first.resources() {
                return Err(differ("machine"));
            }
            if other.options() != first.options() {
                return Err(differ("options"));
            }
        }
        if weights.len() != loops.len() {
            return Err(KernelError::Weights { weights: weights.len(), loops: loops.len() });
        }
        let mut weighted = loops.iter().zip(&weights);
        if let Some((p, &weight)) = weighted.find(|(_, w)| !(1..=Self::MOST_WEIGHT).contains(*w)) {
            return Err(KernelError::Weight { graph: title(p), weight });
        }
        for (tie, LoopOperation { index, op }) in
            ties.iter().enumerate().flat_map(|(i, t)| t.operations.iter().map(move |o| (i, *o)))
        {
            if loops.get(index).is_none_or(|p| op.index() >= p.graph().operations().len()) {
                return Err(KernelError::Tie { tie, index, op: op.index() });
            }
        }
        Ok(MultiLoopProblem { name, loops, weights, ties })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The loops, in the order of the text; there is at least one.
    pub fn loops(&self) -> &[Problem] {
        &self.loops
    }

    /// The weight of each loop's interval: its trip count where it is known.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Operations that run on the same group.
    pub fn ties(&self) -> &[Tie] {
        &self.ties
    }

    /// The operation that a tie names.
    pub fn operation(&self, at: LoopOperation) -> &crate::Operation {
        self.loops[at.index].graph().operation(at.op)
    }

    /// `Σ weight · interval`.
    pub fn cycles(&self, intervals: impl IntoIterator<Item = Cycles>) -> Cycles {
        let each = self.weights.iter().zip(intervals);
        let weighted = each.map(|(&w, i)| saturate::<i64>(w).saturating_mul(i.0));
        Cycles(weighted.fold(0, i64::saturating_add))
    }
}

/// Ties between operations that are the same operation of the source: of one kind, at one place of
/// the source (line and column), in one of equally many sub-tiles, and the only such operation of
/// each loop that has one. Where a loop has two, none is tied.
pub fn corresponding(graphs: &[&LoopGraph]) -> Vec<Tie> {
    let mut places: BTreeMap<_, Vec<LoopOperation>> = BTreeMap::new();
    for (index, graph) in graphs.iter().enumerate() {
        let tiles: BTreeSet<u32> = graph.operations().iter().filter_map(|op| op.sub_tile).collect();
        for id in graph.op_ids() {
            let op = graph.operation(id);
            if let Some(source) = &op.source {
                let key = (source.clone(), op.kind.clone(), op.sub_tile, tiles.len());
                places.entry(key).or_default().push(LoopOperation { index, op: id });
            }
        }
    }
    let several = places.into_values().filter(|found| found.len() > 1);
    let unique = several.filter(|found| found.windows(2).all(|pair| pair[0].index < pair[1].index));
    let mut ties: Vec<Tie> = unique.map(|operations| Tie { reason: TieReason::Corresponding, operations }).collect();
    ties.sort_by(|a, b| a.operations.cmp(&b.operations));
    ties
}

/// The resources that the loops of a kernel share when all have a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonGroups {
    /// Groups in use by any loop, by ascending id; registers a thread are the same in all.
    pub groups: Vec<WarpGroup>,
    /// `Σ weight · I`.
    pub cycles: Cycles,
}

/// The report of a search for several loops.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiLoopReport<S = Schedule> {
    /// The answer for all loops together.
    pub outcome: Outcome<CommonGroups>,
    /// `Σ weight · I` is at least this.
    pub lower_bound: Cycles,
    /// Each loop: its schedule within the kernel; bound, rejections and phases are those of the
    /// loop by itself, and so is what `Outcome::Optimal` says of it.
    pub loops: Vec<Report<S>>,
    /// The combinations excluded for the loops together, though not for each by itself.
    pub rejections: Vec<KernelRejection>,
    /// Secondary objectives in their order, as far as they were reached.
    pub objectives: Vec<KernelObjective>,
    /// Wall-clock time of what concerns all loops.
    pub phases: Vec<Phase>,
}

impl<S> MultiLoopReport<S> {
    /// The same report about another form of the loops' schedules.
    ///
    /// # Errors
    /// The error that `change` returns.
    pub fn try_map<T, E>(
        self,
        change: impl FnMut((usize, Report<S>)) -> Result<Report<T>, E>,
    ) -> Result<MultiLoopReport<T>, E> {
        let loops: Result<Vec<Report<T>>, E> = self.loops.into_iter().enumerate().map(change).collect();
        Ok(MultiLoopReport {
            outcome: self.outcome,
            lower_bound: self.lower_bound,
            loops: loops?,
            rejections: self.rejections,
            objectives: self.objectives,
            phases: self.phases,
        })
    }
}

/// Intervals, one a loop, that no schedules with common groups have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelRejection {
    /// The intervals, in the order of the loops.
    pub intervals: Vec<Cycles>,
    /// True if all smaller ones are excluded with them.
    pub smaller: bool,
    /// Why.
    pub reason: RejectionReason,
}

/// One level of the objective after `Σ weight · I`, as reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelObjective {
    /// Which.
    pub level: ObjectiveLevel,
    /// The loop it is about; all of them when left out.
    #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Its value.
    pub value: i64,
    /// True if it is proved that no smaller one exists, the levels before it being equal.
    pub proved: bool,
}
