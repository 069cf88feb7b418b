//! Bounds that need no search: from below on interval, length and stages, from above on the interval
//! (docs/model.md).

use crate::constraints::assignment;
use crate::constraints::{bandwidth, concurrency, exclusive, resource};
use crate::variables::longest_paths;
use twill_graph::proof::BoundWitness;
use twill_graph::saturate;
use twill_graph::{
    Cycles, Dependence, DependenceId, Families, Family, GroupRole, Liveness, LowerBound, LowerBoundKind, OpId,
    Operation, Problem, StageWindow, Unit, UnitId,
};

/// The best bound on schedules that keep these constraints and that needs no search.
pub(crate) fn lower_bound(problem: &Problem, families: Families) -> LowerBound {
    let trivial = LowerBound { interval: Cycles(1), kind: LowerBoundKind::Trivial };
    let mut best = if families.has(Family::Resource) { resource_bound(problem) } else { trivial };
    let recurrence = families.has(Family::Dependence).then(|| recurrence_bound(problem)).flatten();
    let bandwidth = families.has(Family::Bandwidth).then(|| bandwidth::bound(problem)).flatten();
    let work = families.has(Family::Exclusive).then(|| group_work_bound(problem, families)).flatten();
    for other in [recurrence, bandwidth, work].into_iter().flatten() {
        if other.interval > best.interval {
            best = other;
        }
    }
    best
}

/// The proof of [`lower_bound`].
pub(crate) fn witness(problem: &Problem, bound: &LowerBound) -> BoundWitness {
    let graph = problem.graph();
    match &bound.kind {
        LowerBoundKind::Resource { unit, .. } => {
            problem.resources().unit(unit).map_or(BoundWitness::Trivial, BoundWitness::Resource)
        }
        LowerBoundKind::Recurrence { .. } => {
            let cycle = positive_cycle(problem, bound.interval.0 - 1).unwrap_or_default();
            let id = |d: &Dependence| graph.dependences().iter().position(|other| std::ptr::eq(other, d));
            BoundWitness::Recurrence(cycle.into_iter().filter_map(id).map(DependenceId::new).collect())
        }
        LowerBoundKind::SharedBandwidth { .. } => BoundWitness::SharedBandwidth,
        LowerBoundKind::GroupWork { .. } => BoundWitness::GroupWork,
        LowerBoundKind::Operation { operation, .. } => {
            let op = graph.op_ids().find(|&op| graph.operation(op).name == *operation);
            op.map_or(BoundWitness::Trivial, BoundWitness::Operation)
        }
        LowerBoundKind::Trivial | LowerBoundKind::Search { .. } => BoundWitness::Trivial,
    }
}

/// The families that a bound without search follows from.
pub(crate) fn families_of(problem: &Problem, bound: &LowerBoundKind) -> Families {
    match bound {
        LowerBoundKind::Resource { .. } => Families::NONE.with(Family::Resource),
        LowerBoundKind::Recurrence { .. } => Families::NONE.with(Family::Dependence),
        LowerBoundKind::SharedBandwidth { .. } => Families::NONE.with(Family::Bandwidth),
        LowerBoundKind::Operation { .. } => Families::NONE.with(Family::Exclusive),
        // Elsewhere than on compute groups there is room only if there are other groups.
        LowerBoundKind::GroupWork { issues, .. } => {
            let exclusive = Families::NONE.with(Family::Exclusive);
            let work = if *issues > 0 { exclusive.with(Family::Concurrency) } else { exclusive };
            let is_anywhere =
                assignment::is_free(problem) && problem.groups().iter().all(|g| g.role == GroupRole::Compute);
            if is_anywhere { work } else { work.with(Family::Assignment) }
        }
        LowerBoundKind::Trivial | LowerBoundKind::Search { .. } => Families::ALL,
    }
}

/// ResMII: `max_f ⌈Σ busy cycles of f / capacity(f)⌉`, at least 1.
fn resource_bound(problem: &Problem) -> LowerBound {
    let graph = problem.graph();
    let bound = |(index, unit): (usize, &Unit)| {
        let id = UnitId::new(index);
        let busy = Cycles(resource::busy(problem, id));
        let holders = graph.op_ids().filter(|&op| resource::reservations(problem, op, id).next().is_some());
        let operations = holders.map(|op| graph.operation(op).name.clone()).collect();
        let kind = LowerBoundKind::Resource { unit: unit.name.clone(), busy, capacity: unit.capacity, operations };
        LowerBound { interval: Cycles(busy.div_ceil(Cycles(unit.capacity.into()))), kind }
    };
    let bounds = problem.resources().units.iter().enumerate().map(bound);
    // The first of the largest; without any unit in use, one cycle an iteration remains.
    let largest = bounds.rev().max_by_key(|b| b.interval).filter(|b| b.interval > Cycles::ZERO);
    largest.unwrap_or(LowerBound { interval: Cycles(1), kind: LowerBoundKind::Trivial })
}

/// RecMII: `max over cycles ⌈Σd / Σδ⌉`, with such a cycle.
fn recurrence_bound(problem: &Problem) -> Option<LowerBound> {
    let dependences = problem.graph().dependences();
    let total: i64 = dependences.iter().map(|d| d.delay.0).sum();
    // A cycle has a distance of at least 1, so no interval above the sum of all delays is needed.
    let (mut infeasible, mut feasible) = (0, total.max(1));
    positive_cycle(problem, infeasible)?;
    while infeasible + 1 < feasible {
        let middle = infeasible + (feasible - infeasible) / 2;
        if positive_cycle(problem, middle).is_some() {
            infeasible = middle;
        } else {
            feasible = middle;
        }
    }
    let cycle = positive_cycle(problem, infeasible)?;
    let name = |op: OpId| problem.graph().operation(op).name.clone();
    let mut operations: Vec<String> = cycle.iter().map(|d| name(d.from)).collect();
    operations.extend(cycle.last().map(|d| name(d.to)));
    Some(LowerBound {
        interval: Cycles(feasible),
        kind: LowerBoundKind::Recurrence {
            operations,
            delay: cycle.iter().map(|d| d.delay).sum(),
            distance: cycle.iter().map(|d| d.distance).sum(),
        },
    })
}

/// A cycle with `Σ (d − δI) > 0`, in order (Bellman–Ford).
fn positive_cycle(problem: &Problem, interval: i64) -> Option<Vec<&Dependence>> {
    let graph = problem.graph();
    let count = graph.operations().len();
    let weight = |d: &Dependence| d.delay.0 - i64::from(d.distance) * interval;
    let mut longest = vec![0_i64; count];
    let mut by: Vec<Option<&Dependence>> = vec![None; count];
    let mut changed = None;
    for _ in 0..=count {
        changed = None;
        for d in graph.dependences() {
            let reach = longest[d.from.index()] + weight(d);
            if reach > longest[d.to.index()] {
                longest[d.to.index()] = reach;
                by[d.to.index()] = Some(d);
                changed = Some(d.to);
            }
        }
        changed?;
    }
    // Still improving after |V| rounds: walking back |V| steps lands on the cycle.
    let mut at = changed?;
    for _ in 0..count {
        at = by[at.index()]?.from;
    }
    let mut cycle = Vec::new();
    let start = at;
    loop {
        let d = by[at.index()]?;
        cycle.push(d);
        at = d.from;
        if at == start {
            break;
        }
    }
    cycle.reverse();
    Some(cycle)
}

/// With exclusive issue, the synchronous work of the compute groups fits their number, and each
/// synchronous operation fits by itself. Where operations are assigned to groups, each group's own work does.
/// Asynchronous operations that wait are issued in cycles of their own ([`issues_alone`]).
fn group_work_bound(problem: &Problem, families: Families) -> Option<LowerBound> {
    if !problem.options().exclusive_issue {
        return None;
    }
    let graph = problem.graph();
    let issues_of = |ops: &[OpId]| {
        let alone = |op: &&OpId| families.has(Family::Concurrency) && issues_alone(problem, **op);
        saturate::<u32>(ops.iter().filter(alone).count())
    };
    let all: Vec<OpId> = graph.op_ids().filter(|op| computes(problem, *op, families)).collect();
    let of_all = (synchronous_work(problem, &all), issues_of(&all));
    let ((work, issues), groups) = match families.has(Family::Assignment) {
        true if assignment::is_free(problem) => (of_all, problem.resources().compute_groups.maximum),
        true => {
            let of_group = |group| {
                let here = |op: &OpId| assignment::candidates(problem, *op) == [group];
                let ops: Vec<OpId> = all.iter().copied().filter(here).collect();
                (synchronous_work(problem, &ops), issues_of(&ops))
            };
            let compute = problem.group_ids().filter(|g| problem.groups()[g.index()].role == GroupRole::Compute);
            (compute.map(of_group).max_by_key(|(work, issues)| work.0 + i64::from(*issues)).unwrap_or_default(), 1)
        }
        false => (of_all, saturate::<u32>(problem.groups().len())),
    };
    let longest = graph.operations().iter().filter(|op| op.is_synchronous()).max_by_key(|op| op.occupancy)?;
    let shared = Cycles((work + Cycles(issues.into())).div_ceil(Cycles(groups.into())));
    if longest.occupancy > shared {
        let kind = LowerBoundKind::Operation { operation: longest.name.clone(), cycles: longest.occupancy };
        return Some(LowerBound { interval: longest.occupancy, kind });
    }
    Some(LowerBound { interval: shared, kind: LowerBoundKind::GroupWork { work, issues, groups } })
}

/// Synchronous cycles of an iteration on compute groups; without assignment every group of the pool may do them.
pub(crate) fn compute_work(problem: &Problem, families: Families) -> Cycles {
    let ops: Vec<OpId> = problem.graph().op_ids().filter(|op| computes(problem, *op, families)).collect();
    synchronous_work(problem, &ops)
}

fn computes(problem: &Problem, op: OpId, families: Families) -> bool {
    !families.has(Family::Assignment) || assignment::role(problem, op) == GroupRole::Compute
}

fn synchronous_work(problem: &Problem, ops: &[OpId]) -> Cycles {
    let ops = ops.iter().map(|op| problem.graph().operation(*op));
    ops.filter(|op| op.is_synchronous()).map(|op| op.occupancy).sum()
}

/// Returns whether an asynchronous operation takes a cycle of its group for itself: it waits, wherever it is, so that
/// no synchronous operation runs when it is issued (`concurrency`), and no other that waits is issued then.
fn issues_alone(problem: &Problem, op: OpId) -> bool {
    let graph = problem.graph();
    let waits = graph.dependences().iter().any(|d| d.to == op && d.from != op && d.blocking);
    waits && !graph.operation(op).is_synchronous() && concurrency::window(problem, op) > 0
}

/// Returns whether an interval is out of reach for one operation alone: what it conflicts on.
pub(crate) fn self_conflict(problem: &Problem, interval: i64, families: Families) -> Option<(OpId, String)> {
    if families.has(Family::Resource)
        && let Some((op, unit)) = resource::self_conflict(problem, interval)
    {
        return Some((op, problem.resources().units[unit.index()].name.clone()));
    }
    let exclusive = families.has(Family::Exclusive);
    let too_long = if exclusive { exclusive::self_conflict(problem, interval) } else { None };
    too_long.map(|op| (op, "issue slots of its warp group".into()))
}

/// Returns whether every reservation starts with its operation: then phase 1 is monotone.
pub(crate) fn tables_start_at_issue(problem: &Problem) -> bool {
    problem.graph().operations().iter().all(|op| op.reservations.iter().all(|r| r.start == Cycles::ZERO))
}

/// Returns whether feasibility at an interval implies feasibility at every larger one (docs/model.md).
pub(crate) fn is_monotone(problem: &Problem) -> bool {
    let options = problem.options();
    tables_start_at_issue(problem)
        && options.liveness == Liveness::Folded
        && options.stage_window == StageWindow::Complete
}

/// The interval above which nothing new is possible: `Σ_v (2·max(span, completion) + transfer) +
/// Σ_e (d + handoff + hold)`, or what shared memory needs for the bytes of an iteration if that is more.
pub(crate) fn largest_interval(problem: &Problem) -> i64 {
    let graph = problem.graph();
    let rigid = |op: &Operation| 2 * op.span().max(op.completion()).0 + op.transfer_latency.0;
    let operations: i64 = graph.operations().iter().map(rigid).sum();
    let dependences: i64 =
        graph.dependences().iter().map(|d| (d.delay + graph.operation(d.from).handoff + d.hold).0).sum();
    let bandwidth = bandwidth::bound(problem).map_or(0, |bound| bound.interval.0);
    operations.saturating_add(dependences).max(bandwidth)
}

/// No iteration is shorter: the longest path of dependences, and every unit's cycles one after the
/// other on all its instances.
pub(crate) fn least_length(problem: &Problem, interval: i64) -> i64 {
    let graph = problem.graph();
    let span = |op: OpId| graph.operation(op).span().0;
    let paths = longest_paths(problem, interval).unwrap_or_default();
    let ends = paths.iter().flat_map(|row| graph.op_ids().map(|op| row[op.index()].max(0) + span(op)));
    ends.max().unwrap_or(1).max(resource_bound(problem).interval.0)
}

/// No schedule has fewer stages.
pub(crate) fn least_stages(problem: &Problem, interval: i64) -> u32 {
    let stages = Cycles(least_length(problem, interval)).div_ceil(Cycles(interval));
    saturate::<u32>(stages).max(1)
}
