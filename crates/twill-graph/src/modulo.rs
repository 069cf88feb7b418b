//! The modulo scheduling problem by itself: operations, dependences and resources that limit how many operations start in
//! a slot. No warps, registers or memories.
//!
//! `t_v + δI ≥ t_u + d` for every dependence, and in every slot `r` at most `limit` operations of a
//! resource hold it: `#{(v, k) : 0 ≤ k < blocking, (t_v + k) mod I = r} ≤ limit` (Rau, "Iterative Modulo
//! Scheduling", MICRO 1994).

use crate::names::{self, NameFault};
use crate::saturate;
use crate::{Cycles, OpId, UnitId};
use std::collections::HashSet;
use thiserror::Error;

/// A resource of which operations take one instance each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuloResource {
    /// Name.
    pub name: String,
    /// Instances; `None` when there are always enough.
    pub limit: Option<u32>,
    /// Cycles for which an operation holds its instance, at least 1.
    pub blocking: u32,
}

/// An operation of a [`ModuloProblem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuloOperation {
    /// Name, unique.
    pub name: String,
    /// The resource it starts on.
    pub resource: UnitId,
}

/// `t_to + distance · I ≥ t_from + delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuloDependence {
    /// The producer.
    pub from: OpId,
    /// The consumer.
    pub to: OpId,
    /// Cycles between the two starts; may be negative.
    pub delay: Cycles,
    /// Iterations between them.
    pub distance: u32,
}

/// A modulo scheduling problem whose indices and numbers make sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuloProblem {
    name: String,
    operations: Vec<ModuloOperation>,
    dependences: Vec<ModuloDependence>,
    resources: Vec<ModuloResource>,
}

/// An initiation interval and when each operation starts: a claim until it has been replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueTimes {
    /// `I`.
    pub interval: Cycles,
    /// `t_v ≥ 0`, by operation.
    pub times: Vec<Cycles>,
}

impl IssueTimes {
    /// Iterations that overlap: `⌊max t / I⌋ + 1`.
    pub fn stages(&self) -> i64 {
        self.times.iter().map(|t| t.stage(self.interval)).max().unwrap_or(0) + 1
    }
}

/// The error for an invalid modulo scheduling problem.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModuloError {
    /// Nothing to schedule.
    #[error("the loop `{name}` has no operations")]
    Empty {
        /// The loop.
        name: String,
    },
    /// Two operations share a name.
    #[error("two operations are named `{operation}`")]
    DuplicateOperation {
        /// The name.
        operation: String,
    },
    /// Two resources share a name.
    #[error("two resources are named `{resource}`")]
    DuplicateResource {
        /// The name.
        resource: String,
    },
    /// A name that cannot be shown.
    #[error("{what} is named {name}: {fault}")]
    Name {
        /// The kind of thing that has the name.
        what: &'static str,
        /// The name in quotes, or its beginning.
        name: String,
        /// The fault.
        fault: NameFault,
    },
    /// A resource nothing can start on.
    #[error("resource `{resource}`: `{field}` is 0; it must be at least 1")]
    Zero {
        /// The resource.
        resource: String,
        /// The quantity that is 0.
        field: &'static str,
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
    /// Operations wait for each other within one iteration, at any interval.
    #[error("operations wait for each other within one iteration: {}", .cycle.join(" → "))]
    ZeroDistanceCycle {
        /// The operations around it, the first again at the end.
        cycle: Vec<String>,
    },
    /// The longest conceivable path does not fit 2^60 cycles.
    #[error("delays and distances are too large: their sum over all dependences exceeds 2^60 cycles")]
    TooLarge,
}

impl ModuloProblem {
    /// Checks and builds a problem.
    ///
    /// # Errors
    /// When an index, a name or a number makes no sense.
    pub fn new(
        name: impl Into<String>,
        operations: Vec<ModuloOperation>,
        dependences: Vec<ModuloDependence>,
        resources: Vec<ModuloResource>,
    ) -> Result<ModuloProblem, ModuloError> {
        let problem = ModuloProblem { name: name.into(), operations, dependences, resources };
        problem.check_names()?;
        problem.check_indices()?;
        problem.check_numbers()?;
        match problem.zero_distance_cycle() {
            Some(cycle) => Err(ModuloError::ZeroDistanceCycle { cycle }),
            None => Ok(problem),
        }
    }

    fn check_names(&self) -> Result<(), ModuloError> {
        if self.operations.is_empty() {
            return Err(ModuloError::Empty { name: self.name.clone() });
        }
        let operations = self.operations.iter().map(|op| ("an operation", &op.name));
        let resources = self.resources.iter().map(|r| ("a resource", &r.name));
        let named = operations.chain(resources).chain([("the loop", &self.name)]);
        let mut faults = named.filter_map(|(what, name)| Some((what, name, names::fault_if_any(name)?)));
        if let Some((what, name, fault)) = faults.next() {
            return Err(ModuloError::Name { what, name: names::quoted(name), fault });
        }
        let mut seen = HashSet::new();
        if let Some(twice) = self.operations.iter().find(|op| !seen.insert(op.name.as_str())) {
            return Err(ModuloError::DuplicateOperation { operation: twice.name.clone() });
        }
        let mut seen = HashSet::new();
        if let Some(twice) = self.resources.iter().find(|r| !seen.insert(r.name.as_str())) {
            return Err(ModuloError::DuplicateResource { resource: twice.name.clone() });
        }
        Ok(())
    }

    fn check_indices(&self) -> Result<(), ModuloError> {
        let within = |what, index: usize, count: usize| {
            if index < count { Ok(()) } else { Err(ModuloError::Index { what, index, count }) }
        };
        for op in &self.operations {
            within("resource", op.resource.index(), self.resources.len())?;
        }
        for end in self.dependences.iter().flat_map(|d| [d.from, d.to]) {
            within("operation", end.index(), self.operations.len())?;
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ModuloError> {
        for resource in &self.resources {
            let field = match (resource.limit, resource.blocking) {
                (Some(0), _) => "limit",
                (_, 0) => "blocking",
                _ => continue,
            };
            return Err(ModuloError::Zero { resource: resource.name.clone(), field });
        }
        // No path is longer than all delays and distances together, at any interval that is tried.
        let (mut delays, mut distances) = (0_i128, 0_i128);
        for d in &self.dependences {
            delays += i128::from(d.delay.0).abs();
            distances += i128::from(d.distance);
        }
        let sequential = i128::from(self.sequential());
        if sequential < i128::from(i64::MAX) && delays + (distances + 1) * sequential <= 1 << 60 {
            Ok(())
        } else {
            Err(ModuloError::TooLarge)
        }
    }

    /// Returns whether dependences of distance 0 have an order, so that there is no cycle at all (Kahn).
    fn is_ordered(&self) -> bool {
        let count = self.operations.len();
        let (mut missing, mut readers) = (vec![0_usize; count], vec![Vec::new(); count]);
        for d in self.dependences.iter().filter(|d| d.distance == 0) {
            missing[d.to.index()] += 1;
            readers[d.from.index()].push(d.to.index());
        }
        let mut ready: Vec<usize> = (0..count).filter(|&v| missing[v] == 0).collect();
        let mut done = 0;
        while let Some(v) = ready.pop() {
            done += 1;
            for &reader in &readers[v] {
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    ready.push(reader);
                }
            }
        }
        done == count
    }

    /// A cycle of dependences of distance 0 with a positive sum of delays (Bellman–Ford, which takes long where there is much to
    /// look at, and is seldom needed).
    fn zero_distance_cycle(&self) -> Option<Vec<String>> {
        if self.is_ordered() {
            return None;
        }
        let count = self.operations.len();
        let mut longest = vec![0_i64; count];
        let mut by: Vec<Option<usize>> = vec![None; count];
        let mut changed = None;
        for _ in 0..=count {
            changed = None;
            for d in self.dependences.iter().filter(|d| d.distance == 0) {
                let reach = longest[d.from.index()] + d.delay.0;
                if reach > longest[d.to.index()] {
                    (longest[d.to.index()], by[d.to.index()]) = (reach, Some(d.from.index()));
                    changed = Some(d.to.index());
                }
            }
            changed?;
        }
        // Still improving after |V| rounds: walking back |V| steps lands on the cycle.
        let mut at = changed?;
        for _ in 0..count {
            at = by[at]?;
        }
        let (start, mut cycle) = (at, vec![self.operations[at].name.clone()]);
        loop {
            at = by[at]?;
            cycle.push(self.operations[at].name.clone());
            if at == start {
                cycle.reverse();
                return Some(cycle);
            }
        }
    }

    /// An interval at which iterations need not overlap: all delays and reservations one after the other, at
    /// least 1.
    pub fn sequential(&self) -> i64 {
        let delays = self.dependences.iter().map(|d| i128::from(d.delay.0.max(0)));
        let held = self.operations.iter().map(|op| i128::from(self.resources[op.resource.index()].blocking));
        saturate::<i64>(delays.chain(held).sum::<i128>()).max(1)
    }

    /// Name of the loop.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All operations; [`OpId::index`] is the position.
    pub fn operations(&self) -> &[ModuloOperation] {
        &self.operations
    }

    /// All dependences.
    pub fn dependences(&self) -> &[ModuloDependence] {
        &self.dependences
    }

    /// All resources; [`UnitId::index`] is the position.
    pub fn resources(&self) -> &[ModuloResource] {
        &self.resources
    }

    /// The resource of an operation.
    pub fn resource_of(&self, op: OpId) -> &ModuloResource {
        &self.resources[self.operations[op.index()].resource.index()]
    }
}
