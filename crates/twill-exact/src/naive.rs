//! Baseline schedules, as compilers make them without a search over warp groups.
//!
//! Every operation runs on the group that [`WarpAssignment::BySubTile`](twill_graph::WarpAssignment) gives it, so there is
//! nothing to choose. What is left is an order for each group, laid out in time: an operation issues as soon as the ones
//! before it leave its group and its units, and what it depends on is there.

use crate::constraints::{assignment, bandwidth, shared_memory};
use crate::encoding::Candidate;
use crate::limits::Meter;
use crate::progress::Progress;
use crate::search::SearchOptions;
use crate::{bounds, extract, modulo, query};
use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{
    CommonGroups, Cycles, Dependence, Families, GroupId, GroupRole, MultiLoopProblem, MultiLoopReport, OpId, Outcome,
    Placement, Problem, Report, Schedule, Storage, WarpGroup,
};

/// How naive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naive {
    /// One iteration after another; in each, a group finishes an operation before it begins the next, in the order of the
    /// kernel.
    NoPipelining,
    /// Order and stages of the modulo schedule, which knows nothing of warps.
    PipeliningOnly,
}

/// The naive schedule of a problem whose operations all have a fixed group. Its interval is the least of this order, as
/// far as that is easily found; nothing is proved of it.
///
/// The outcome is [`Outcome::Unknown`] where the order breaks a constraint at every interval that is tried.
pub fn naive(problem: &Problem, how: Naive, options: &SearchOptions, progress: &mut dyn FnMut(Progress)) -> Report {
    let meter = Meter::start(&options.budget);
    let unknown = |why: &str| Outcome::Unknown { stopped_by: why.to_owned() };
    let mut report = Report {
        outcome: unknown("search for a modulo schedule"),
        lower_bound: bounds::lower_bound(problem, Families::ALL),
        modulo: None,
        rejections: Vec::new(),
        objectives: Vec::new(),
        wider_bound: None,
        simulated: None,
        phases: Vec::new(),
    };
    let layout = match how {
        Naive::NoPipelining => Layout::new(problem, &vec![(0, 0); problem.graph().operations().len()], true),
        Naive::PipeliningOnly => {
            let pipelined = modulo::pipeline(problem, options, progress);
            report.modulo = pipelined.modulo;
            report.phases = pipelined.phases;
            let Some(pipeline) = pipelined.outcome.schedule() else { return report };
            let place = |t: &Cycles| (t.stage(pipeline.interval), t.slot(pipeline.interval).0);
            Layout::new(problem, &pipeline.cycles.iter().map(place).collect::<Vec<_>>(), false)
        }
    };
    report.outcome = match layout.and_then(|layout| layout.verified(&meter)) {
        Some(schedule) => Outcome::Feasible { schedule },
        None => unknown("constraints that this order breaks at every interval"),
    };
    report
}

/// Schedules without pipelining at intervals that grow, as claims: nobody has looked whether they keep the constraints, so they
/// cost next to nothing. Empty where operations depend on each other in a circle, or none of the groups may run one.
pub fn unpipelined(problem: &Problem) -> impl Iterator<Item = Schedule> {
    let layout = Layout::new(problem, &vec![(0, 0); problem.graph().operations().len()], true);
    layout.into_iter().flat_map(|layout| layout.intervals().map(move |interval| layout.claim(interval)))
}

/// The naive schedules of several loops, whose operations all have a fixed group.
pub fn naive_multi_loop(
    kernel: &MultiLoopProblem,
    how: Naive,
    options: &SearchOptions,
    progress: &mut dyn FnMut(Progress),
) -> MultiLoopReport {
    let mut loops: Vec<Report> = kernel.loops().iter().map(|p| naive(p, how, options, progress)).collect();
    let mut groups: BTreeMap<GroupId, WarpGroup> = BTreeMap::new();
    for group in loops.iter().filter_map(|r| r.outcome.schedule()).flat_map(|s| &s.groups) {
        let common = groups.entry(group.id).or_insert(*group);
        common.registers_per_thread = common.registers_per_thread.max(group.registers_per_thread);
    }
    let groups: Vec<WarpGroup> = groups.into_values().collect();
    let bounds = loops.iter().map(|r| r.lower_bound.interval);
    let lower_bound = kernel.cycles(bounds);
    let intervals: Option<Vec<Cycles>> = loops.iter().map(|r| r.outcome.schedule().map(|s| s.interval)).collect();
    for report in &mut loops {
        if let Outcome::Feasible { schedule } = &mut report.outcome {
            // A thread has the same registers in all loops.
            for own in &mut schedule.groups {
                if let Some(common) = groups.iter().find(|g| g.id == own.id) {
                    *own = *common;
                }
            }
        }
    }
    let outcome = match intervals {
        Some(intervals) => Outcome::Feasible { schedule: CommonGroups { groups, cycles: kernel.cycles(intervals) } },
        None => {
            let unknown = || Outcome::Unknown { stopped_by: "a loop without such a schedule".into() };
            loops.iter_mut().for_each(|report| report.outcome = unknown());
            Outcome::Unknown { stopped_by: "a loop without such a schedule".into() }
        }
    };
    MultiLoopReport { outcome, lower_bound, loops, rejections: Vec::new(), objectives: Vec::new(), phases: Vec::new() }
}

/// Intervals that are tried beyond the one that the order needs, and how far apart in parts of it.
const TRIES: i64 = 32;
const STEP: i64 = 64;

/// An order of operations, laid out in time.
struct Layout<'p> {
    problem: &'p Problem,
    groups: Vec<GroupId>,
    stages: Vec<i64>,
    /// Cycles within a stage.
    slots: Vec<i64>,
    /// Least interval.
    interval: i64,
}

/// When something is first and last in use.
#[derive(Clone, Copy)]
struct Span {
    first: i64,
    end: i64,
}

impl<'p> Layout<'p> {
    /// Lays operations out by stage and wish, a time within the stage; `serial`: groups finish one before the next.
    fn new(problem: &'p Problem, wishes: &[(i64, i64)], serial: bool) -> Option<Layout<'p>> {
        let graph = problem.graph();
        let groups: Option<Vec<GroupId>> =
            graph.op_ids().map(|op| assignment::candidates(problem, op).first().copied()).collect();
        let groups = groups?;
        let stages: Vec<i64> = wishes.iter().map(|(stage, _)| *stage).collect();
        let across = |d: &Dependence| stages[d.to.index()] - stages[d.from.index()] + i64::from(d.distance);
        // A register value comes to another group through shared memory.
        let delay = |d: &Dependence| {
            let from = graph.operation(d.from);
            let registers = matches!(from.storage, Storage::Registers(_)) && d.carries_value;
            let apart = groups[d.from.index()] != groups[d.to.index()];
            d.delay.0 + if registers && apart { from.handoff.0 } else { 0 }
        };
        let mut slots = vec![0; wishes.len()];
        let mut of_group: BTreeMap<GroupId, Span> = BTreeMap::new();
        let mut of_unit: BTreeMap<&str, Span> = BTreeMap::new();
        for op in in_order(problem, wishes, &across)? {
            let operation = graph.operation(op);
            let group = groups[op.index()];
            let before = graph.dependences().iter().filter(|d| d.to == op && across(d) == 0);
            let ready = before.map(|d| slots[d.from.index()] + delay(d)).max().unwrap_or(0);
            let free = of_group.get(&group).map_or(0, |span| span.end);
            let units = operation.reservations.iter();
            let unit_free = units.filter_map(|r| of_unit.get(r.unit.as_str()).map(|span| span.end - r.start.0)).max();
            let at = ready.max(free).max(unit_free.unwrap_or(0)).max(0);
            slots[op.index()] = at;
            let computes = problem.groups()[group.index()].role == GroupRole::Compute;
            let busy = match (serial && computes, operation.is_synchronous()) {
                (true, _) => operation.completion().max(operation.span()),
                (false, true) => operation.span(),
                (false, false) => Cycles(1),
            };
            take(&mut of_group, group, at, at + busy.0);
            for r in &operation.reservations {
                take(&mut of_unit, r.unit.as_str(), at + r.start.0, at + r.start.0 + r.cycles.0);
            }
        }
        let spans = of_group.values().chain(of_unit.values()).map(|span| span.end - span.first);
        let carried = graph.dependences().iter().filter(|d| across(d) > 0).map(|d| {
            let needed = slots[d.from.index()] + delay(d) - slots[d.to.index()];
            Cycles(needed).div_ceil(Cycles(across(d)))
        });
        // The operations of a stage must fit in it.
        let last = slots.iter().max().map(|t| t + 1);
        let length = graph.op_ids().map(|op| slots[op.index()] + graph.operation(op).span().0).max();
        let whole = if serial { length } else { last };
        // Without pipelining a tile is loaded in the iteration that reads it, so its life is no longer than that.
        let streaming = graph.op_ids().filter(|op| serial && graph.operation(*op).streaming);
        let lives = streaming.map(|load| shared_memory::ring_depth(problem, load, &slots, 1));
        let bytes = bandwidth::bound(problem).map(|bound| bound.interval.0);
        let interval = spans.chain(carried).chain(whole).chain(lives).chain(bytes).max()?.max(1);
        Some(Layout { problem, groups, stages, slots, interval })
    }

    /// Intervals that are tried.
    fn intervals(&self) -> impl Iterator<Item = i64> + use<> {
        let (first, step) = (self.interval, (self.interval / STEP).max(1));
        (0..=TRIES).map(move |n| first + n * step)
    }

    /// When operations issue.
    fn times(&self, interval: i64) -> Vec<i64> {
        self.stages.iter().zip(&self.slots).map(|(stage, slot)| stage * interval + slot).collect()
    }

    /// The schedule at an interval, whether or not it breaks a constraint.
    fn claim(&self, interval: i64) -> Schedule {
        let graph = self.problem.graph();
        let times = self.times(interval);
        let ends = graph.op_ids().map(|op| times[op.index()] + graph.operation(op).span().0);
        let length = ends.max().unwrap_or(1);
        let candidate = Candidate::placed(times, self.groups.clone(), length);
        let compute = self
            .problem
            .group_ids()
            .filter(|g| self.problem.groups()[g.index()].role == GroupRole::Compute && candidate.groups.contains(g));
        let resources = self.problem.resources();
        let needed: Vec<(GroupId, Option<u32>)> =
            compute.map(|g| (g, resources.registers_for(words(self.problem, &candidate, interval, g)))).collect();
        extract::claim(self.problem, interval, &candidate, &needed)
    }

    /// The schedule at the least interval that is tried at which it breaks no constraint.
    fn verified(&self, meter: &Meter) -> Option<Schedule> {
        self.intervals().find_map(|interval| {
            let each = self.times(interval).into_iter().zip(&self.groups);
            let placements: Vec<Placement> =
                each.map(|(cycle, group)| Placement { cycle: Cycles(cycle), group: *group }).collect();
            let found = query::at(self.problem, interval, &placements, meter)?;
            Some(extract::schedule(&found.encoding, &found.candidate))
        })
    }
}

/// Most words that a group holds at once: results, and operands that it gets from other groups.
fn words(problem: &Problem, candidate: &Candidate, interval: i64, group: GroupId) -> u64 {
    let graph = problem.graph();
    let (time, on) = (|op: OpId| candidate.times[op.index()], |op: OpId| candidate.groups[op.index()]);
    let mut lives: Vec<(i64, i64, u64)> = Vec::new();
    for op in graph.op_ids() {
        let words = graph.operation(op).register_words().0;
        if words == 0 {
            continue;
        }
        let end = graph.uses(op).map(|d| time(d.to) + i64::from(d.distance) * interval + d.hold.0).max();
        if let Some(end) = end.filter(|_| on(op) == group) {
            lives.push((time(op), end, words));
        }
        let handed_off = graph.uses(op).filter(|d| {
            let reads = problem.options().consumer_registers && !graph.operation(d.to).variable_latency;
            reads && on(op) != group && on(d.to) == group
        });
        lives.extend(handed_off.map(|d| (time(d.to), time(d.to) + graph.operation(d.to).span().0, words)));
    }
    // Copies at a slot, of all iterations.
    let copies = |slot: i64, (start, end, words): &(i64, i64, u64)| {
        let count = Cycles(end - slot).div_ceil(Cycles(interval)) - Cycles(start - slot).div_ceil(Cycles(interval));
        words.saturating_mul(saturate::<u64>(count))
    };
    let at = |slot: i64| lives.iter().map(|life| copies(slot, life)).sum::<u64>();
    lives.iter().map(|(start, ..)| at(start.rem_euclid(interval))).max().unwrap_or(0)
}

fn take<K: Ord>(spans: &mut BTreeMap<K, Span>, key: K, first: i64, end: i64) {
    let span = spans.entry(key).or_insert(Span { first, end });
    span.first = span.first.min(first);
    span.end = span.end.max(end);
}

/// Operations by wish, but none before what it depends on in the same stretch of time; `None` where they depend on each
/// other in a circle.
fn in_order(problem: &Problem, wishes: &[(i64, i64)], across: &dyn Fn(&Dependence) -> i64) -> Option<Vec<OpId>> {
    let graph = problem.graph();
    let mut left: Vec<OpId> = graph.op_ids().collect();
    left.sort_by_key(|op| (wishes[op.index()].1, op.index()));
    let mut order: Vec<OpId> = Vec::new();
    while !left.is_empty() {
        let ready =
            |op: &OpId| !graph.dependences().iter().any(|d| d.to == *op && across(d) == 0 && left.contains(&d.from));
        let next = left.iter().position(ready)?;
        order.push(left.remove(next));
    }
    Some(order)
}
