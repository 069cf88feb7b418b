//! Changes of the initiation interval: the problem with one thing different, solved.
//!
//! Much is known without solving. A change that only adds room keeps every schedule, so the interval
//! stays where a bound of the changed problem is not below it, or where nothing that changes takes
//! part in the conflict just below it.

use super::ExplainOptions;
use super::ask::{Asker, Relaxation, changed};
use super::conflict::{self, Depth};
use crate::bounds;
use crate::constraints::{bandwidth, resource};
use crate::limits::{Budget, Meter};
use crate::progress::Progress;
use crate::search::{SearchOptions, schedule};
use twill_graph::saturate;
use twill_graph::{
    Bytes, Change, Cycles, Dependence, ExplainedRejection, Families, Family, GroupRole, KnownBy, LoopGraph, LowerBound,
    LowerBoundKind, ModelOptions, Operation, Outcome, Problem, Report, Schedule, Status, UnitId, WarpAssignment,
    WhatIf,
};
use web_time::Instant;

/// Shared memory to add.
const MORE_BYTES: u64 = 16 << 10;
/// Registers a thread to add.
const MORE_REGISTERS: u32 = 24;
/// The registers that an instruction can address on any machine so far.
const ADDRESSABLE: u32 = 255;
/// Most compute groups that a problem may state.
const MOST_GROUPS: u32 = 16;

/// A changed problem.
struct Changed {
    change: Change,
    problem: Problem,
    /// Families that the change loosens; `None` when it takes something away.
    loosened: Option<Families>,
}

/// The answer without the changes.
struct Baseline {
    status: Status,
    interval: Option<Cycles>,
    bound: LowerBound,
    /// Families of the conflict at the last excluded interval, whose proof covers all below.
    conflict: Option<Families>,
    compute_groups: Option<u32>,
}

/// All changes that make sense for a problem.
pub(super) fn all<S: AsRef<Schedule>>(
    problem: &Problem,
    report: &Report<S>,
    last: Option<&ExplainedRejection>,
    options: &ExplainOptions,
    started: Instant,
    progress: &mut dyn FnMut(Progress),
) -> Vec<WhatIf> {
    let baseline = Baseline::new(report, last);
    let mut what_ifs = Vec::new();
    for changed in changes(problem) {
        progress(Progress::WhatIf { change: changed.change.clone() });
        let known = without_search(problem, &changed, &baseline);
        what_ifs.push(known.unwrap_or_else(|| {
            let keeps_schedules = changed.loosened.is_some();
            let left = options.budget.time.map(|time| time.saturating_sub(options.budget.clock.since(started)));
            let budget = Budget { time: left, ..options.budget.clone() };
            let options = ExplainOptions { budget, ..options.clone() };
            solve(&changed.problem, changed.change, &baseline, keeps_schedules, &options)
        }));
    }
    what_ifs
}

/// The interval of a changed problem, by search.
pub fn what_if<S: AsRef<Schedule>>(
    report: &Report<S>,
    change: Change,
    changed: &Problem,
    options: &ExplainOptions,
) -> WhatIf {
    solve(changed, change, &Baseline::new(report, None), false, options)
}

impl Baseline {
    fn new<S: AsRef<Schedule>>(report: &Report<S>, last: Option<&ExplainedRejection>) -> Baseline {
        let schedule = report.outcome.schedule().map(AsRef::as_ref);
        let compute = |s: &Schedule| s.groups.iter().filter(|g| g.role == GroupRole::Compute).count();
        // With a schedule at I, what matters is I − 1; without, the last interval.
        let last = last.filter(|l| schedule.is_none_or(|s| l.rejection.interval.0 + 1 == s.interval.0));
        Baseline {
            status: report.outcome.status(),
            interval: schedule.map(|s| s.interval),
            bound: report.lower_bound.clone(),
            conflict: last.filter(|l| l.smaller_too).map(|l| l.conflict.members.iter().map(|m| m.family).collect()),
            compute_groups: schedule.map(|s| saturate::<u32>(compute(s))),
        }
    }
}

fn changes(problem: &Problem) -> Vec<Changed> {
    let resources = problem.resources();
    let mut changes = Vec::new();
    let mut add = |change, problem: Option<Problem>, loosened| {
        changes.extend(problem.map(|problem| Changed { change, problem, loosened }));
    };
    let groups = resources.compute_groups.maximum;
    // One group keeps the other families if several groups keep them.
    let shared_among_groups = [Family::Exclusive, Family::Concurrency, Family::Registers].into_iter().collect();
    for (count, loosened) in [(groups + 1, Some(shared_among_groups)), (groups.saturating_sub(1), None)] {
        if (1..=MOST_GROUPS).contains(&count) {
            let with = changed(problem, |r| r.compute_groups.maximum = count);
            add(Change::ComputeGroups { groups: count }, with, loosened);
        }
    }
    let bytes = Bytes(resources.shared_memory.0 + MORE_BYTES);
    let with = changed(problem, |r| r.shared_memory = bytes);
    add(Change::SharedMemory { bytes }, with, Some(Families::NONE.with(Family::SharedMemory)));
    let file = resources.registers;
    let per_thread = (file.maximum_per_thread + MORE_REGISTERS).min(file.maximum_per_thread.max(ADDRESSABLE));
    let words = file.words + resources.compute_group_cost(MORE_REGISTERS) * u64::from(groups);
    let with = changed(problem, |r| {
        r.registers.maximum_per_thread = per_thread;
        r.registers.words = words;
    });
    add(Change::Registers { per_thread, words }, with, Some(Families::NONE.with(Family::Registers)));
    let mut units: Vec<UnitId> = (0..resources.units.len()).map(UnitId::new).collect();
    units.retain(|&u| resource::busy(problem, u) > 0);
    let load = |u: UnitId| resource::busy(problem, u) / i64::from(resources.units[u.index()].capacity);
    units.sort_by_key(|&u| std::cmp::Reverse(load(u)));
    for id in units {
        let unit = resources.units[id.index()].name.clone();
        let with = regraph(problem, twice_as_fast(problem, id));
        add(Change::UnitTwiceAsFast { unit }, with, Some(Families::ALL));
    }
    if let Some(rate) = resources.shared_bytes_per_cycle.filter(|_| bandwidth::bound(problem).is_some()) {
        let bytes_per_cycle = rate * 2;
        let with = changed(problem, |r| r.shared_bytes_per_cycle = Some(bytes_per_cycle));
        add(Change::SharedBandwidth { bytes_per_cycle }, with, Some(Families::NONE.with(Family::Bandwidth)));
    }
    let graph = problem.graph();
    let handed = |d: &Dependence| d.carries_value && d.from != d.to && d.distance == 0;
    let costs = |d: &Dependence| {
        let from = graph.operation(d.from);
        from.register_words().0 > 0 && from.handoff > Cycles::ZERO
    };
    if problem.options().cross_group_registers && graph.dependences().iter().any(|d| handed(d) && costs(d)) {
        let free = graph.map(|op| op.handoff = Cycles::ZERO, |_| {}).ok();
        add(Change::FreeHandoffs, regraph(problem, free), Some(Families::NONE.with(Family::Handoff)));
    }
    if problem.options().warp_assignment == WarpAssignment::BySubTile {
        let options = ModelOptions { warp_assignment: WarpAssignment::Free, ..*problem.options() };
        add(Change::AnyAssignment, Some(problem.with_options(options)), Some(Families::ALL));
    }
    changes
}

fn regraph(problem: &Problem, graph: Option<LoopGraph>) -> Option<Problem> {
    Problem::new(graph?, problem.resources().clone(), *problem.options()).ok()
}

/// Reservations of a unit take half their cycles, rounded up. An operation that ended with such a
/// reservation ends sooner, and latencies, delays and holds that follow from it shrink by as much.
fn twice_as_fast(problem: &Problem, unit: UnitId) -> Option<LoopGraph> {
    let graph = problem.graph();
    let name = &problem.resources().units[unit.index()].name;
    let last = |op: &Operation| op.reservations.iter().map(|r| r.start + r.cycles).max().unwrap_or_default();
    let faster = |op: &mut Operation| {
        let (before, completion) = (op.clone(), op.completion());
        for r in op.reservations.iter_mut().filter(|r| r.unit == *name) {
            r.cycles = Cycles(r.cycles.0 - r.cycles.0 / 2);
        }
        if last(&before) == before.occupancy {
            op.occupancy = last(op);
        }
        let saved = before.occupancy - op.occupancy;
        op.latency = less(op.latency, saved);
        op.transfer_latency = less(op.transfer_latency, saved);
        (saved, completion - op.completion())
    };
    let mut saved = Vec::new();
    let faster_graph = graph.map(|op| saved.push(faster(op)), |_| {}).ok()?;
    let shrink = |d: &mut Dependence| {
        d.delay = less(d.delay, saved[d.from.index()].0);
        d.hold = less(d.hold, saved[d.to.index()].1);
    };
    faster_graph.map(|_| {}, shrink).ok()
}

fn less(cycles: Cycles, saved: Cycles) -> Cycles {
    (cycles - saved).max(Cycles::ZERO)
}

/// The answer to a change that needs no search.
fn without_search(problem: &Problem, changed: &Changed, baseline: &Baseline) -> Option<WhatIf> {
    let settled = |lower_bound, known_by| WhatIf {
        change: changed.change.clone(),
        status: baseline.status,
        initiation_interval: baseline.interval,
        percent: baseline.interval.map(|_| 0.0),
        lower_bound,
        conflict: Vec::new(),
        known_by,
    };
    let Some(loosened) = changed.loosened else {
        let enough = changed.problem.resources().compute_groups.maximum;
        let unused = baseline.compute_groups.is_some_and(|used| used <= enough);
        return unused.then(|| settled(baseline.bound.clone(), KnownBy::Schedule));
    };
    if baseline.status == Status::Optimal {
        let bound = bounds::lower_bound(&changed.problem, Families::ALL);
        if baseline.interval.is_some_and(|i| bound.interval >= i) {
            return Some(settled(bound, KnownBy::Bound));
        }
    }
    // As the conflict stands, it is in the changed problem too.
    let untouched = |conflict: Families| conflict.iter().all(|family| !loosened.has(family));
    let proved = matches!(baseline.status, Status::Optimal | Status::Infeasible);
    let conflict = baseline.conflict.filter(|c| proved && untouched(*c) && bounds::is_monotone(problem))?;
    debug_assert!(conflict != Families::NONE, "something excludes it");
    Some(settled(baseline.bound.clone(), KnownBy::Conflict))
}

fn solve(
    problem: &Problem,
    change: Change,
    baseline: &Baseline,
    keeps_schedules: bool,
    options: &ExplainOptions,
) -> WhatIf {
    let known = baseline.interval.filter(|_| keeps_schedules);
    let largest = known.map(|i| i.0 - 1).or(options.largest_interval.map(|i| i.0));
    let search = SearchOptions {
        budget: Budget { work: Some(options.what_if_work), ..options.budget.clone() },
        largest_interval: largest.map(Cycles),
        objective_work: Some(0),
        ..SearchOptions::default()
    };
    // Nothing is smaller than 1.
    let report = match largest {
        Some(0) => None,
        _ => Some(schedule(problem, &search, &mut |_| {})),
    };
    let mut status = report.as_ref().map_or(Status::Infeasible, |r| r.outcome.status());
    let mut interval = report.as_ref().and_then(|r| r.outcome.schedule()).map(|s| s.interval);
    let lower_bound = match report {
        Some(Report { outcome: Outcome::Infeasible { .. }, lower_bound, .. }) if known.is_some() => {
            let below = bounds::lower_bound(problem, Families::ALL);
            let from = below.interval.min(lower_bound.interval);
            LowerBound { interval: known.unwrap_or(lower_bound.interval), kind: LowerBoundKind::Search { from } }
        }
        Some(report) => report.lower_bound,
        None => baseline.bound.clone(),
    };
    if known.is_some() && interval.is_none() {
        // Nothing smaller than what there is anyway, or nothing smaller known.
        status = if status == Status::Infeasible { Status::Optimal } else { Status::Feasible };
        interval = known;
    }
    let percent = match (interval, baseline.interval) {
        (Some(now), Some(before)) => Some(percent(now, before)),
        _ => None,
    };
    let conflict = if status == Status::Optimal { bounded_by(problem, &lower_bound, options) } else { Vec::new() };
    WhatIf { change, status, initiation_interval: interval, percent, lower_bound, conflict, known_by: KnownBy::Search }
}

/// Where search excluded what is smaller: the families that did.
fn bounded_by(problem: &Problem, bound: &LowerBound, options: &ExplainOptions) -> Vec<Family> {
    if !matches!(bound.kind, LowerBoundKind::Search { .. }) {
        return Vec::new();
    }
    let asker = {
        let budget = Budget { work: Some(options.what_if_work), ..options.budget.clone() };
        Asker { meter: Meter::start(&budget), work: options.question_work }
    };
    let start = Relaxation::of(Families::ALL);
    let (_, left) = conflict::conflict(&asker, problem, bound.interval.0 - 1, start, Depth::Members);
    left.families.iter().collect()
}

/// By how much one differs from the other, in percent with one decimal.
fn percent(now: Cycles, before: Cycles) -> f64 {
    let tenths = (now.0 - before.0) as f64 / before.0.max(1) as f64 * 1000.0;
    tenths.round() / 10.0
}
