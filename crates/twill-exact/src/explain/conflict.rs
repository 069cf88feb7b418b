//! A minimal set of constraint families that leave no schedule at an interval, by deletion: leave
//! out one family after the other, and keep it out when there is still no schedule.
//!
//! The rest is infeasible, and the schedule found without a member, which keeps at least the
//! other members, proves that the member is needed (Chinneck & Dravnieks, "Locating minimal
//! infeasible constraint sets in linear programs", ORSA J. Computing 3(2), 1991).

use super::ask::{Asker, Feasibility, Relaxation, Sample};
use super::demand;
use crate::constraints::{bandwidth, resource};
use std::collections::BTreeMap;
use twill_graph::{Conflict, Families, Family, Member, ModelOptions, Problem, Storage, UnitId, Witness};

/// How much to find out about a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The participants.
    Members,
    /// And what they require.
    Whole,
}

/// The order in which families are left out: what is tried late tends to remain, and what people
/// think of first should.
const ORDER: [Family; 10] = [
    Family::Concurrency,
    Family::TensorMemory,
    Family::SharedMemory,
    Family::Registers,
    Family::Handoff,
    Family::Assignment,
    Family::Exclusive,
    Family::Bandwidth,
    Family::Resource,
    Family::Dependence,
];

/// Something that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Family(Family),
    Unit(UnitId),
}

impl Part {
    fn left_out_of(self, relaxation: &Relaxation) -> Relaxation {
        match self {
            Part::Family(family) => relaxation.without(family),
            Part::Unit(unit) => relaxation.without_unit(unit),
        }
    }
}

/// The conflict within `start`, of which it is known that it leaves no schedule; and what remains of
/// `start`.
pub(crate) fn conflict(
    asker: &Asker,
    problem: &Problem,
    interval: i64,
    start: Relaxation,
    depth: Depth,
) -> (Conflict, Relaxation) {
    let idle = idle(problem);
    let families = start.families.iter().filter(|f| !idle.has(*f)).collect();
    let mut set = Relaxation { families, ..start };
    let mut witnesses: BTreeMap<Part, (Box<Sample>, Relaxation)> = BTreeMap::new();
    let families = ORDER.into_iter().map(Part::Family).filter(|p| has(&set, *p)).collect();
    delete(asker, problem, interval, &mut set, families, &mut witnesses);
    if set.families.has(Family::Resource) {
        let units = units(problem).into_iter().filter(|u| !set.lifted.contains(u)).map(Part::Unit).collect();
        delete(asker, problem, interval, &mut set, units, &mut witnesses);
    }
    let mut parts: Vec<Part> = Vec::new();
    for family in set.families.iter() {
        match family {
            Family::Resource => {
                let held = units(problem).into_iter().rev().filter(|u| !set.lifted.contains(u));
                parts.extend(held.map(Part::Unit));
            }
            _ => parts.push(Part::Family(family)),
        }
    }
    let member = |part| member(asker, problem, interval, (part, &set), witnesses.remove(&part), depth);
    let members: Vec<Member> = parts.into_iter().map(member).collect();
    let minimal = members.iter().all(|m| m.needed);
    (Conflict { minimal, members }, set)
}

fn has(set: &Relaxation, part: Part) -> bool {
    match part {
        Part::Family(family) => set.families.has(family),
        Part::Unit(unit) => set.families.has(Family::Resource) && !set.lifted.contains(&unit),
    }
}

/// Leaves out of `set` what it does not need of `parts`; those that take too much work once more,
/// when there is less left.
fn delete(
    asker: &Asker,
    problem: &Problem,
    interval: i64,
    set: &mut Relaxation,
    parts: Vec<Part>,
    witnesses: &mut BTreeMap<Part, (Box<Sample>, Relaxation)>,
) {
    let mut open = parts;
    for _ in 0..2 {
        let mut again = Vec::new();
        for part in std::mem::take(&mut open) {
            let without = part.left_out_of(set);
            match asker.ask(problem, interval, &without) {
                Feasibility::Infeasible => *set = without,
                Feasibility::Feasible(sample) => {
                    witnesses.insert(part, (sample, without));
                }
                Feasibility::Unknown => again.push(part),
            }
        }
        open = again;
    }
}

fn member(
    asker: &Asker,
    problem: &Problem,
    interval: i64,
    (part, set): (Part, &Relaxation),
    witness: Option<(Box<Sample>, Relaxation)>,
    depth: Depth,
) -> Member {
    let needed = witness.is_some();
    let (family, unit) = match part {
        Part::Family(family) => (family, None),
        Part::Unit(unit) => (Family::Resource, Some(unit)),
    };
    let alone = part.left_out_of(&Relaxation::of(Families::ALL));
    let (mut suffices, mut sample) = match witness {
        Some((sample, kept)) if kept == alone => (Some(true), Some((sample, kept))),
        witness => (None, witness),
    };
    let mut demands = Vec::new();
    if depth == Depth::Whole {
        if suffices.is_none() {
            match asker.ask(problem, interval, &alone) {
                Feasibility::Feasible(found) => {
                    suffices = Some(true);
                    sample = Some((found, alone));
                }
                Feasibility::Infeasible => suffices = Some(false),
                Feasibility::Unknown => {}
            }
        }
        let (found, least) = match unit {
            Some(unit) => (vec![demand::unit_cycles(problem, interval, unit)], None),
            None => {
                let keeps = if suffices == Some(true) { &Relaxation::of(Families::ALL) } else { set };
                demand::of(asker, problem, interval, family, keeps, sample.as_ref().map(|s| &*s.0))
            }
        };
        demands = found;
        // The schedule that needs least shows best what it is about.
        if let (Some(least), Some(shown)) = (least, sample.as_mut()) {
            shown.0 = least;
            if suffices != Some(true) {
                shown.1 = part.left_out_of(set);
            }
        }
    }
    let name = |u: &UnitId| problem.resources().units[u.index()].name.clone();
    let witness = sample.map(|(sample, kept)| {
        let lifted = kept.lifted.iter().map(name).collect();
        Witness { schedule: sample.schedule, keeps: kept.families, lifted }
    });
    let unit = unit.as_ref().map(name);
    Member { family, unit, needed, suffices, demands, breaches: Vec::new(), witness }
}

/// Families that say nothing about this problem.
fn idle(problem: &Problem) -> Families {
    let graph = problem.graph();
    let ModelOptions { exclusive_issue, .. } = *problem.options();
    let tensor = graph.operations().iter().any(|op| matches!(op.storage, Storage::Tensor(_)));
    let memory = graph.operations().iter().any(|op| op.storage != Storage::None);
    let idle = [
        (Family::Exclusive, !exclusive_issue),
        (Family::TensorMemory, !tensor),
        (Family::SharedMemory, !memory),
        (Family::Bandwidth, bandwidth::bound(problem).is_none()),
    ];
    idle.into_iter().filter(|(_, idle)| *idle).map(|(family, _)| family).collect()
}

/// Units that some operation holds, the least loaded first.
fn units(problem: &Problem) -> Vec<UnitId> {
    let mut units: Vec<UnitId> = (0..problem.resources().units.len()).map(UnitId::new).collect();
    units.retain(|&u| resource::busy(problem, u) > 0);
    units.sort_by_key(|&u| resource::busy(problem, u) / i64::from(problem.resources().units[u.index()].capacity));
    units
}
