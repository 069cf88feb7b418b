//! Scheduling of large graphs: operations, dependences, resources and storage, with no warps.
//!
//! `s_v ∈ ℕ` is the step at which operation `v` starts. Always
//!
//! - `s_v + δ·II ≥ s_u + delay` for every dependence `(u, v)` of distance `δ`; without an interval only
//!   dependences of distance 0 count;
//! - `s_v + latency_v ≤ D`, the latency bound, where there is one.
//!
//! Usage of a resource at step `d`: `Σ amount` over uses with `s_v + offset ≤ d < s_v + offset + steps`; with an
//! interval, steps that are equal modulo `II` are added up, and where a resource has a limit, usage is at most that.
//!
//! Storage at step `d`: `Σ storage_v` over `s_v ≤ d < max (s_w + δ·II)` over the dependences `(v, w)` that carry the
//! value (all of them); again added up modulo `II`. A value that nobody reads takes no storage.

use crate::names::{self, NameFault};
use crate::{OpId, UnitId};
use std::collections::HashSet;
use thiserror::Error;

/// A kind of functional unit, of which there are several, or as many as needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataflowResource {
    /// Name, unique.
    pub name: String,
    /// Most that may be in use in one step; `None` when there is no limit.
    pub limit: Option<u64>,
}

/// An operation's use of a resource, in steps counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUse {
    /// The resource.
    pub resource: UnitId,
    /// First step.
    pub offset: u32,
    /// Steps, at least 1.
    pub steps: u32,
    /// Units of it, at least 1.
    pub amount: u64,
}

/// An operation of a [`Dataflow`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataflowOperation {
    /// Name, unique.
    pub name: String,
    /// Steps until it is finished.
    pub latency: u32,
    /// Its use of resources.
    pub uses: Vec<ResourceUse>,
    /// The storage of its result while it is live: bytes, or another unit of the graph.
    pub storage: u64,
}

/// `s_to + distance · II ≥ s_from + delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataflowDependence {
    /// The producer.
    pub from: OpId,
    /// The consumer.
    pub to: OpId,
    /// Steps between the two starts. 0 lets a consumer start in its producer's step (*chaining*); may be negative.
    pub delay: i64,
    /// Iterations between them; above 0 on back edges.
    pub distance: u32,
    /// Cost of each step between the two, in the sum of communication.
    pub communication: u64,
}

/// A graph of operations whose indices and numbers make sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataflow {
    name: String,
    operations: Vec<DataflowOperation>,
    dependences: Vec<DataflowDependence>,
    resources: Vec<DataflowResource>,
}

/// Start steps, and the interval at which iterations start if the graph is a loop: a claim until it has been replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartSteps {
    /// `II`.
    pub interval: Option<u64>,
    /// `s_v`, by operation.
    pub steps: Vec<u64>,
}

/// The objective; the formulations of "GauS" (Cai et al., arXiv 2602.20427, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataflowObjective {
    /// A: `peak · Σ_r max_d usage_r(d) + α · Σ communication · (s_to + δ·II − s_from)`, over resources `r`.
    Resources {
        /// Weight of the peaks.
        peak: u64,
        /// Weight of communication, `α`.
        communication: u64,
    },
    /// B, and with an interval C: peak storage.
    Storage,
    /// The latest finish, `max (s_v + latency_v)`.
    Latency,
}

/// A graph with a question. C*, the least interval and at it the least latency, asks this for one interval after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataflowProblem {
    /// The graph.
    pub graph: Dataflow,
    /// `D`: all operations are finished by then, if given.
    pub latency_bound: Option<u64>,
    /// `II`, for loops; without one, dependences of distance above 0 do not count.
    pub interval: Option<u64>,
    /// The objective.
    pub objective: DataflowObjective,
}

/// Why a graph cannot be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DataflowError {
    /// Nothing to schedule.
    #[error("the graph `{name}` has no operations")]
    Empty {
        /// The graph.
        name: String,
    },
    /// Two things share a name.
    #[error("two {what} are named `{name}`")]
    Duplicate {
        /// Their kind.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that cannot be shown.
    #[error("one of the {what} is named {name}: {fault}")]
    Name {
        /// The kind of thing that has the name.
        what: &'static str,
        /// The name in quotes, or its beginning.
        name: String,
        /// The fault.
        fault: NameFault,
    },
    /// An index outside its table.
    #[error("{what} {index} does not exist; there are {count}")]
    Index {
        /// The quantity.
        what: &'static str,
        /// The index.
        index: usize,
        /// Entries of the table.
        count: usize,
    },
    /// No resource of this name.
    #[error("there is no resource `{name}`; there are: {}", .known.join(", "))]
    NoResource {
        /// The name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A use of nothing, or of more than there ever is.
    #[error("`{operation}` takes {amount} of `{resource}` for {steps} steps; it must be 1 or more of each{limit}")]
    Use {
        /// The operation.
        operation: String,
        /// The resource.
        resource: String,
        /// Units.
        amount: u64,
        /// Steps.
        steps: u32,
        /// Words on the limit.
        limit: String,
    },
    /// A use of what is not there.
    #[error("`{operation}` uses `{resource}`, which is not among the resources")]
    UnknownResource {
        /// The operation.
        operation: String,
        /// The resource.
        resource: String,
    },
    /// Operations wait for each other within one iteration, at any interval.
    #[error("operations wait for each other within one iteration: {}", .cycle.join(" → "))]
    ZeroDistanceCycle {
        /// The operations around it, the first again at the end.
        cycle: Vec<String>,
    },
    /// Sums do not fit.
    #[error("{what} are too large: their sum exceeds 2^48")]
    TooLarge {
        /// The summands.
        what: &'static str,
    },
}

impl Dataflow {
    /// Most that delays, amounts, storage or communication may sum up to; sums of them are exact in an `f64`.
    pub const LARGEST: i64 = 1 << 48;

    /// Checks and builds a graph.
    ///
    /// # Errors
    /// When an index, a name or a number makes no sense, or operations of one iteration wait for each other.
    pub fn new(
        name: impl Into<String>,
        operations: Vec<DataflowOperation>,
        dependences: Vec<DataflowDependence>,
        resources: Vec<DataflowResource>,
    ) -> Result<Dataflow, DataflowError> {
        let graph = Dataflow { name: name.into(), operations, dependences, resources };
        graph.check_names()?;
        graph.check_indices()?;
        graph.check_numbers()?;
        match graph.order() {
            Ok(_) => Ok(graph),
            Err(cycle) => Err(DataflowError::ZeroDistanceCycle { cycle }),
        }
    }

    fn check_names(&self) -> Result<(), DataflowError> {
        if self.operations.is_empty() {
            return Err(DataflowError::Empty { name: self.name.clone() });
        }
        let operations = self.operations.iter().map(|op| ("operations", &op.name));
        let resources = self.resources.iter().map(|resource| ("resources", &resource.name));
        let named = operations.clone().chain(resources.clone()).chain([("graphs", &self.name)]);
        let mut faults = named.filter_map(|(what, name)| Some((what, name, names::fault_if_any(name)?)));
        if let Some((what, name, fault)) = faults.next() {
            return Err(DataflowError::Name { what, name: names::quoted(name), fault });
        }
        let mut seen = HashSet::new();
        match operations.chain(resources).find(|&named| !seen.insert(named)) {
            Some((what, name)) => Err(DataflowError::Duplicate { what, name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_indices(&self) -> Result<(), DataflowError> {
        let within = |what, index: usize, count: usize| {
            if index < count { Ok(()) } else { Err(DataflowError::Index { what, index, count }) }
        };
        for used in self.operations.iter().flat_map(|op| &op.uses) {
            within("resource", used.resource.index(), self.resources.len())?;
        }
        for end in self.dependences.iter().flat_map(|d| [d.from, d.to]) {
            within("operation", end.index(), self.operations.len())?;
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), DataflowError> {
        for op in &self.operations {
            for used in &op.uses {
                let resource = &self.resources[used.resource.index()];
                let above = resource.limit.filter(|&limit| used.amount > limit);
                if used.steps == 0 || used.amount == 0 || above.is_some() {
                    return Err(DataflowError::Use {
                        operation: op.name.clone(),
                        resource: resource.name.clone(),
                        amount: used.amount,
                        steps: used.steps,
                        limit: above.map(|limit| format!(", and there are {limit}")).unwrap_or_default(),
                    });
                }
            }
        }
        let fits = |what, sum: i128| {
            if sum <= i128::from(Self::LARGEST) { Ok(()) } else { Err(DataflowError::TooLarge { what }) }
        };
        let (operations, dependences) = (&self.operations, &self.dependences);
        fits("latencies", operations.iter().map(|op| i128::from(op.latency)).sum())?;
        fits("delays", dependences.iter().map(|d| i128::from(d.delay).abs()).sum())?;
        fits("storage", operations.iter().map(|op| i128::from(op.storage)).sum())?;
        fits("communication", dependences.iter().map(|d| i128::from(d.communication)).sum())?;
        let uses = operations.iter().flat_map(|op| &op.uses);
        fits("uses", uses.map(|u| i128::from(u.amount) * (i128::from(u.offset) + i128::from(u.steps))).sum())
    }

    /// All operations in an order in which dependences of distance 0 go forward; the same for the same graph.
    ///
    /// # Errors
    /// The cycle, its first operation again at the end.
    pub fn order(&self) -> Result<Vec<OpId>, Vec<String>> {
        let count = self.operations.len();
        let mut missing = vec![0_usize; count];
        // Readers by producer, one row after another: a million small lists take more than the graph.
        let within = || self.dependences.iter().filter(|d| d.distance == 0);
        let mut end = vec![0_usize; count];
        for d in within() {
            missing[d.to.index()] += 1;
            end[d.from.index()] += 1;
        }
        let mut sum = 0;
        for end in &mut end {
            sum += std::mem::replace(end, sum);
        }
        let mut readers = vec![0_u32; sum];
        for d in within() {
            // From the beginning of its row, this comes to its end.
            readers[end[d.from.index()]] = d.to.index() as u32;
            end[d.from.index()] += 1;
        }
        let mut order: Vec<OpId> = (0..count).filter(|&v| missing[v] == 0).map(OpId::new).collect();
        let mut next = 0;
        while let Some(&op) = order.get(next) {
            next += 1;
            let first = if op.index() == 0 { 0 } else { end[op.index() - 1] };
            for &reader in &readers[first..end[op.index()]] {
                let reader = reader as usize;
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    order.push(OpId::new(reader));
                }
            }
        }
        if order.len() == count { Ok(order) } else { Err(self.cycle(&missing)) }
    }

    /// A cycle among the operations that still miss something: from any of them, walk back along what it misses.
    fn cycle(&self, missing: &[usize]) -> Vec<String> {
        let mut before: Vec<usize> = vec![usize::MAX; missing.len()];
        for d in self.dependences.iter().filter(|d| d.distance == 0 && missing[d.from.index()] > 0) {
            before[d.to.index()] = d.from.index();
        }
        let mut at = missing.iter().position(|&m| m > 0).unwrap_or(0);
        // After |V| steps back the walk is on a cycle.
        for _ in 0..missing.len() {
            at = before[at];
        }
        let (start, mut cycle) = (at, vec![self.operations[at].name.clone()]);
        loop {
            at = before[at];
            cycle.push(self.operations[at].name.clone());
            if at == start {
                cycle.reverse();
                return cycle;
            }
        }
    }

    /// Name of the graph.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All operations; [`OpId::index`] is the position.
    pub fn operations(&self) -> &[DataflowOperation] {
        &self.operations
    }

    /// All dependences.
    pub fn dependences(&self) -> &[DataflowDependence] {
        &self.dependences
    }

    /// All resources; [`UnitId::index`] is the position.
    pub fn resources(&self) -> &[DataflowResource] {
        &self.resources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str) -> DataflowOperation {
        DataflowOperation { name: name.into(), latency: 1, uses: Vec::new(), storage: 0 }
    }

    fn after(from: usize, to: usize, distance: u32) -> DataflowDependence {
        DataflowDependence { from: OpId::new(from), to: OpId::new(to), delay: 1, distance, communication: 0 }
    }

    fn graph(dependences: Vec<DataflowDependence>) -> Result<Dataflow, DataflowError> {
        Dataflow::new("g", ["a", "b", "c", "d"].map(operation).into(), dependences, Vec::new())
    }

    #[test]
    fn a_cycle_within_an_iteration_is_named_without_what_hangs_on_it() {
        let error = graph(vec![after(0, 1, 0), after(1, 2, 0), after(2, 1, 0), after(2, 3, 0)]);
        let cycle = ["b", "c", "b"].map(String::from).to_vec();
        assert_eq!(error, Err(DataflowError::ZeroDistanceCycle { cycle }));
    }

    #[test]
    fn back_edges_do_not_order() {
        let order = graph(vec![after(3, 0, 0), after(0, 3, 1), after(0, 1, 0)]).map(|g| g.order().unwrap_or_default());
        let order: Vec<usize> = order.unwrap_or_default().into_iter().map(OpId::index).collect();
        assert_eq!(order, [2, 3, 0, 1]);
    }

    #[test]
    fn a_use_beyond_the_limit_is_refused() {
        let resource = DataflowResource { name: "alu".into(), limit: Some(2) };
        let uses = vec![ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: 3 }];
        let error = Dataflow::new("g", vec![DataflowOperation { uses, ..operation("a") }], Vec::new(), vec![resource]);
        let message = error.err().map(|e| e.to_string());
        assert_eq!(
            message.as_deref(),
            Some("`a` takes 3 of `alu` for 1 steps; it must be 1 or more of each, and there are 2")
        );
    }
}
