//! One question of an explanation: is there a schedule at an interval under fewer constraints?

use crate::bounds;
use crate::constraints::{registers, shared_memory, tensor_memory};
use crate::extract;
use crate::limits::Meter;
use crate::query::{self, Verdict};
use std::collections::BTreeSet;
use twill_graph::{Families, Family, GroupRole, Problem, Resources, Schedule, UnitId};

/// More than any schedule holds of a unit.
const PLENTY_OF_INSTANCES: u32 = 1 << 16;

/// Asks questions with a limited effort each.
pub(crate) struct Asker {
    pub(crate) meter: Meter,
    pub(crate) work: u64,
}

/// The rest of a problem: the families that are kept, and the units that are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relaxation {
    pub(crate) families: Families,
    pub(crate) lifted: BTreeSet<UnitId>,
}

impl Relaxation {
    pub(crate) fn of(families: Families) -> Relaxation {
        Relaxation { families, lifted: BTreeSet::new() }
    }

    pub(crate) fn without(&self, family: Family) -> Relaxation {
        Relaxation { families: self.families.without(family), ..self.clone() }
    }

    pub(crate) fn without_unit(&self, unit: UnitId) -> Relaxation {
        let mut copy = self.clone();
        copy.lifted.insert(unit);
        copy
    }
}

/// Whether a problem has a schedule at an interval.
pub(crate) enum Feasibility {
    Feasible(Box<Sample>),
    /// Proved.
    Infeasible,
    /// It took too much work.
    Unknown,
}

/// A schedule, and what it uses.
pub(crate) struct Sample {
    pub(crate) schedule: Schedule,
    pub(crate) shared: u64,
    pub(crate) tensor: u64,
    /// Registers of a thread of the compute group that holds most, with the reserve; not in whole granules.
    pub(crate) per_thread: u64,
    /// Registers of all groups.
    pub(crate) file: u64,
}

impl Asker {
    /// Asks about what is left of a problem.
    pub(crate) fn ask(&self, problem: &Problem, interval: i64, relaxation: &Relaxation) -> Feasibility {
        if relaxation.lifted.is_empty() {
            return self.ask_as_is(problem, interval, relaxation.families);
        }
        let lift = |resources: &mut Resources| {
            for unit in &relaxation.lifted {
                resources.units[unit.index()].capacity = PLENTY_OF_INSTANCES;
            }
        };
        match changed(problem, lift) {
            Some(lifted) => self.ask_as_is(&lifted, interval, relaxation.families),
            None => Feasibility::Unknown,
        }
    }

    fn ask_as_is(&self, problem: &Problem, interval: i64, families: Families) -> Feasibility {
        if bounds::lower_bound(problem, families).interval.0 > interval {
            return Feasibility::Infeasible;
        }
        self.meter.allow(Some(self.work));
        match query::exists(problem, interval, families, &self.meter) {
            Verdict::Excluded { .. } => Feasibility::Infeasible,
            Verdict::Stopped => Feasibility::Unknown,
            Verdict::Found(found) => {
                let (e, candidate) = (&found.encoding, &found.candidate);
                let schedule = extract::schedule(e, candidate);
                let resources = problem.resources();
                let compute = schedule.groups.iter().filter(|g| g.role == GroupRole::Compute);
                let cost: u64 = compute.map(|g| resources.compute_group_cost(g.registers_per_thread)).sum();
                let fixed = resources.registers.words.saturating_sub(resources.compute_register_budget());
                let threads = resources.compute_group_cost(1);
                let reserve = u64::from(resources.registers.reserve_per_thread);
                let per_thread = registers::most_words(e, candidate).div_ceil(threads) + reserve;
                Feasibility::Feasible(Box::new(Sample {
                    shared: shared_memory::peak(e, candidate),
                    tensor: tensor_memory::peak(e, candidate),
                    per_thread,
                    file: fixed + cost,
                    schedule,
                }))
            }
        }
    }
}

/// The problem on a machine that is different.
pub(crate) fn changed(problem: &Problem, change: impl FnOnce(&mut Resources)) -> Option<Problem> {
    let mut resources = problem.resources().clone();
    change(&mut resources);
    Problem::new(problem.graph().clone(), resources, *problem.options()).ok()
}
