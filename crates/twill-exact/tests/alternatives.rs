//! Enumerated schedules of loops so small that every assignment and every schedule can be looked at.
//!
//! Registers and shared memory are plentiful and a group is one warp; what is left of docs/model.md, and what makes two
//! schedules different, is written down here once more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use twill_exact::{AlternativeOptions, Alternatives, Budget, Difference, End, SearchOptions};
use twill_exact::{alternatives, differences, schedule};
use twill_graph::{
    Bytes, Columns, ComputePool, Cycles, Dependence, Execution, GroupId, LoopGraph, ModelOptions, OpId, Operation,
    Problem, RegisterFile, Report, Reservation, Reserved, Resources, Schedule, SplitMix64, Storage, Traffic, Unit,
    WarpAssignment, Words,
};

#[derive(Clone, Copy, Debug)]
struct Op {
    unit: usize,
    cycles: i64,
    synchronous: bool,
    sub_tile: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    distance: u32,
    value: bool,
    blocking: bool,
}

#[derive(Clone, Debug)]
struct Loop {
    ops: Vec<Op>,
    edges: Vec<Edge>,
    handoff: i64,
    /// Cycles after its issue at which the first operation takes its unit; with any, feasibility is not monotone.
    late: i64,
}

type Point = (Vec<i64>, Vec<usize>);

/// Copies of operations of one group or unit, from the first copy of the first operation to its second.
type Order = Vec<(usize, i64)>;

/// Groups, orders on groups, orders on units, stages.
type Description = (Vec<usize>, BTreeMap<usize, Order>, BTreeMap<usize, Order>, Vec<i64>);

impl Loop {
    fn start(&self, op: usize) -> i64 {
        if op == 0 { self.late } else { 0 }
    }

    fn span(&self, op: usize) -> i64 {
        self.start(op) + self.ops[op].cycles
    }

    fn problem(&self) -> Problem {
        self.problem_with(ModelOptions::default())
    }

    fn problem_with(&self, options: ModelOptions) -> Problem {
        let machine = Resources {
            name: "tiny".into(),
            units: ["x", "y", "z"].map(|name| Unit { name: name.into(), capacity: 1 }).to_vec(),
            shared_memory: Bytes(1 << 20),
            tensor_memory: Columns(0),
            shared_bytes_per_cycle: None,
            registers: RegisterFile {
                words: 1 << 16,
                minimum_per_thread: 8,
                maximum_per_thread: 255,
                granularity: 8,
                reserve_per_thread: 0,
            },
            variable_latency_group: None,
            issue_group: None,
            compute_groups: ComputePool { warps: 1, maximum: 2 },
        };
        let operation = |(i, op): (usize, &Op)| Operation {
            name: format!("op{i}"),
            kind: format!("{}", op.unit),
            source: None,
            reservations: vec![Reservation {
                unit: ["x", "y", "z"][op.unit].into(),
                start: Cycles(self.start(i)),
                cycles: Cycles(op.cycles),
            }],
            occupancy: Cycles(self.span(i)),
            latency: Cycles(self.span(i)),
            execution: if op.synchronous { Execution::Synchronous } else { Execution::Asynchronous },
            issue_width: 1,
            storage: Storage::Registers(Words(32)),
            variable_latency: false,
            streaming: false,
            handoff: Cycles(self.handoff),
            transfer_latency: Cycles(self.span(i)),
            sub_tile: op.sub_tile,
            traffic: Traffic::default(),
        };
        let dependence = |e: &Edge| Dependence {
            from: OpId::new(e.from),
            to: OpId::new(e.to),
            delay: Cycles(self.span(e.from)),
            distance: e.distance,
            blocking: e.blocking,
            carries_value: e.value,
            tied: false,
            hold: Cycles(0),
        };
        let operations = self.ops.iter().enumerate().map(operation).collect();
        let dependences = self.edges.iter().map(dependence).collect();
        let graph = LoopGraph::new("tiny", operations, dependences, Reserved::default()).unwrap();
        Problem::new(graph, machine, options).unwrap()
    }

    fn holds(&self, (times, groups): &Point, interval: i64) -> bool {
        let all = || 0..self.ops.len();
        let apart = |u: usize, v: usize| groups[u] != groups[v];
        let later = self.edges.iter().all(|e| {
            let handoff = if e.value && apart(e.from, e.to) { self.handoff } else { 0 };
            let kept = !e.value || e.distance == 0 || !apart(e.from, e.to);
            kept && times[e.to] + i64::from(e.distance) * interval >= times[e.from] + self.span(e.from) + handoff
        });
        // True if [u, u + a) and [v, v + b) are disjoint modulo the interval.
        let disjoint = |u: i64, a: i64, v: i64, b: i64| {
            let offset = (v - u).rem_euclid(interval);
            offset >= a && interval - offset >= b
        };
        let clear = |u: usize, v: usize| {
            let (a, b) = (&self.ops[u], &self.ops[v]);
            let start = |op: usize| times[op] + self.start(op);
            let units = a.unit != b.unit || disjoint(start(u), a.cycles, start(v), b.cycles);
            let exclusive = apart(u, v) || !a.synchronous || !b.synchronous;
            units && (exclusive || disjoint(times[u], self.span(u), times[v], self.span(v)))
        };
        let waits = |v: usize| {
            let incoming = |e: &Edge| e.to == v && e.from != v && (e.blocking || e.value && apart(e.from, v));
            self.edges.iter().any(incoming)
        };
        let window = |o: usize| if self.ops[o].synchronous { self.span(o) } else { 1 };
        let unstalled = |v: usize, o: usize| apart(v, o) || (times[v] - times[o]).rem_euclid(interval) >= window(o);
        later
            && all().all(|op| self.span(op) <= interval)
            && all().all(|u| (0..u).all(|v| clear(u, v)))
            && all().filter(|&v| waits(v)).all(|v| all().filter(|&o| o != v).all(|o| unstalled(v, o)))
    }

    /// Every schedule whose first issue is in cycle 0, of at most N stages.
    fn schedules(&self, interval: i64, stages: u32) -> Vec<Point> {
        let (count, end) = (self.ops.len(), i64::from(stages) * interval);
        let mut found = Vec::new();
        for bits in 0..1_usize << count {
            let groups: Vec<usize> = (0..count).map(|i| bits >> i & 1).collect();
            let mut point = (vec![0; count], groups);
            loop {
                let within = (0..count).all(|op| point.0[op] + self.span(op) <= end);
                if point.0.contains(&0) && within && self.holds(&point, interval) {
                    found.push(point.clone());
                }
                let Some(next) = (0..count).find(|&i| point.0[i] + 1 < end) else { break };
                point.0[..next].fill(0);
                point.0[next] += 1;
            }
        }
        found
    }

    /// The behaviour of a schedule, up to the names of groups and the order of the two sub-tiles, if there are two.
    fn description(&self, point: &Point, interval: i64) -> Description {
        let in_turn: Vec<usize> = (0..self.ops.len()).collect();
        let own = self.described(point, &in_turn, interval);
        if self.ops.iter().all(|op| op.sub_tile.is_none()) {
            return own;
        }
        let half = self.ops.len() / 2;
        let turned = |v: &[usize]| -> Vec<usize> { v[half..].iter().chain(&v[..half]).copied().collect() };
        let times = point.0[half..].iter().chain(&point.0[..half]).copied().collect();
        own.min(self.described(&(times, turned(&point.1)), &turned(&in_turn), interval))
    }

    /// `priority`: which of two operations that issue at once is first.
    fn described(&self, (times, groups): &Point, priority: &[usize], interval: i64) -> Description {
        let first = times.iter().min().unwrap();
        let flipped = groups[0]; // The first operation's group is called 0.
        let groups: Vec<usize> = groups.iter().map(|g| g ^ flipped).collect();
        let units: Vec<usize> = self.ops.iter().map(|op| op.unit).collect();
        let stages = times.iter().map(|t| (t - first) / interval).collect();
        let order = |of: &[usize]| -> BTreeMap<usize, Order> {
            let members = |at: usize| (0..of.len()).filter(|&op| of[op] == at).collect::<Vec<_>>();
            of.iter().map(|&at| (at, order(times, priority, interval, &members(at)))).collect()
        };
        (groups.clone(), order(&groups), order(&units), stages)
    }
}

fn order(times: &[i64], priority: &[usize], interval: i64, members: &[usize]) -> Order {
    let first = members[0];
    let mut copies = Vec::new();
    for &op in members {
        for k in -20..20 {
            let at = (times[op] + k * interval, priority[op]);
            if at >= (times[first], priority[first]) && at < (times[first] + interval, priority[first]) {
                copies.push((at, op, k));
            }
        }
    }
    copies.sort_unstable();
    copies.into_iter().map(|(_, op, k)| (op, k)).collect()
}

/// Three operations, or two equal sub-tiles of two.
fn random(seed: u64) -> Loop {
    let mut chance = SplitMix64::new(seed);
    let mut op = |sub_tile| Op {
        unit: chance.below(3) as usize,
        cycles: 1 + chance.below(3) as i64,
        synchronous: chance.below(3) > 0,
        sub_tile,
    };
    let tiles = seed.is_multiple_of(4);
    let mut ops = vec![op(None), op(None), op(None)];
    let mut edges = Vec::new();
    let mut below = |n: u64| chance.below(n);
    if tiles {
        ops.truncate(2);
        ops.extend(ops.clone());
        (0..4).for_each(|i| ops[i].sub_tile = Some(u32::from(i > 1)));
        let (value, blocking) = (below(2) > 0, below(2) > 0);
        edges.extend([0, 2].map(|from| Edge { from, to: from + 1, distance: 0, value, blocking }));
    } else {
        for (from, to) in [(0, 1), (1, 2), (0, 2)] {
            if below(3) > 0 {
                edges.push(Edge { from, to, distance: 0, value: below(3) > 0, blocking: below(3) == 0 });
            }
        }
        match below(3) {
            0 => edges.push(Edge { from: 2, to: 0, distance: 1, value: below(2) > 0, blocking: false }),
            1 => edges.push(Edge { from: 1, to: 1, distance: 1, value: true, blocking: false }),
            _ => {}
        }
    }
    Loop { ops, edges, handoff: below(3) as i64, late: i64::from(!tiles && seed.is_multiple_of(5)) }
}

fn point(schedule: &Schedule) -> Point {
    let groups = schedule.placements.iter().map(|p| usize::from(p.group != GroupId::new(0)));
    (schedule.placements.iter().map(|p| p.cycle.0).collect(), groups.collect())
}

fn schedules(alternatives: &Alternatives) -> Vec<Schedule> {
    alternatives.reports.iter().map(|r| r.outcome.schedule().unwrap().clone()).collect()
}

fn solved(problem: &Problem) -> Report {
    let budget = Budget { work: Some(2_000_000), ..Budget::default() };
    schedule(problem, &SearchOptions { budget, ..SearchOptions::default() }, &mut |_| {})
}

/// The part of an interval that lies just above `more` cycles.
fn within(interval: Cycles, more: i64) -> f64 {
    (more as f64 + 0.5) / interval.0 as f64
}

#[test]
fn all_distinct_schedules_are_found_and_no_others() {
    let (mut complete, mut several) = (0, 0);
    for seed in 0..60 {
        let small = random(seed);
        let problem = small.problem();
        let report = solved(&problem);
        let Some(first) = report.outcome.schedule() else { panic!("{seed}: {:?}", report.outcome) };
        let more_stages = u32::from(seed % 2 == 0 && first.interval < Cycles(6));
        let options = AlternativeOptions { most: 400, more_stages, ..AlternativeOptions::default() };
        let found = alternatives(&problem, &report, &options, &mut |_| {});
        let interval = first.interval.0;
        let described = |s: &Schedule| small.description(&point(s), interval);
        let every = small.schedules(interval, found.stages);
        let expected: BTreeSet<_> = every.iter().map(|p| small.description(p, interval)).collect();
        let descriptions: BTreeSet<_> = schedules(&found).iter().map(described).collect();
        assert_eq!(descriptions.len(), found.reports.len(), "seed {seed}: two are alike\n{small:?}");
        for schedule in schedules(&found) {
            twill_check::verify(&problem, schedule).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        assert!(descriptions.is_subset(&expected), "seed {seed}: {small:?}");
        if found.end == End::Most {
            assert_eq!(found.reports.len(), 400);
            continue;
        }
        assert_eq!(found.end, End::Complete, "seed {seed}");
        assert_eq!(found.complete_through, Some(first.interval));
        assert_eq!(descriptions.len(), expected.len(), "seed {seed}: {small:?}");
        complete += 1;
        several += usize::from(expected.len() > 1);
    }
    assert!(complete >= 40 && several >= 30, "{complete} complete, {several} with several");
}

#[test]
fn larger_intervals_follow_when_the_least_is_exhausted() {
    let mut compared = 0;
    for seed in 0..40 {
        let small = random(seed);
        let problem = small.problem();
        let report = solved(&problem);
        let least = report.outcome.schedule().unwrap().interval;
        let options =
            AlternativeOptions { most: 150, within: within(least, 2), more_stages: 0, ..AlternativeOptions::default() };
        let found = alternatives(&problem, &report, &options, &mut |_| {});
        if found.end == End::Most {
            continue;
        }
        assert_eq!((found.end.clone(), found.complete_through), (End::Complete, Some(least + Cycles(2))));
        let mut expected = BTreeMap::new();
        for interval in least.0..=least.0 + 2 {
            for p in small.schedules(interval, found.stages) {
                expected.entry(small.description(&p, interval)).or_insert(interval);
            }
        }
        let described = |s: &Schedule| (small.description(&point(s), s.interval.0), s.interval.0);
        let descriptions: Vec<_> = schedules(&found).iter().map(described).collect();
        assert!(descriptions.is_sorted_by_key(|d| d.1), "seed {seed}");
        assert_eq!(descriptions.len(), expected.len(), "seed {seed}: {small:?}");
        assert_eq!(descriptions.into_iter().collect::<BTreeMap<_, _>>(), expected, "seed {seed}: {small:?}");
        for report in &found.reports {
            let schedule = report.outcome.schedule().unwrap().clone();
            assert_eq!(matches!(report.outcome, twill_graph::Outcome::Optimal { .. }), schedule.interval == least);
            twill_check::verify(&problem, schedule).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        compared += usize::from(expected.values().any(|&interval| interval > least.0));
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn sub_tiles_with_groups_of_their_own_may_change_places_with_them() {
    let mut several = 0;
    for seed in (0..80).step_by(4) {
        let small = random(seed);
        let model = ModelOptions { warp_assignment: WarpAssignment::BySubTile, ..ModelOptions::default() };
        let problem = small.problem_with(model);
        let report = solved(&problem);
        let interval = report.outcome.schedule().unwrap().interval.0;
        let options = AlternativeOptions { most: 400, more_stages: 0, ..AlternativeOptions::default() };
        let found = alternatives(&problem, &report, &options, &mut |_| {});
        let every = small.schedules(interval, found.stages);
        let own = every.iter().filter(|(_, groups)| *groups == [0, 0, 1, 1]);
        let expected: BTreeSet<_> = own.map(|p| small.description(p, interval)).collect();
        let described = |s: &Schedule| small.description(&point(s), interval);
        let descriptions: Vec<_> = schedules(&found).iter().map(described).collect();
        assert_eq!(found.end, End::Complete, "seed {seed}");
        assert_eq!(descriptions.len(), expected.len(), "seed {seed}: {small:?}");
        assert_eq!(descriptions.into_iter().collect::<BTreeSet<_>>(), expected, "seed {seed}: {small:?}");
        several += usize::from(expected.len() > 1);
    }
    assert!(several >= 5, "{several}");
}

/// The values of each series rise: what the objective prefers comes first.
#[test]
fn better_schedules_come_first() {
    let mut several = 0;
    for seed in 0..40 {
        let problem = random(seed).problem();
        let options = AlternativeOptions { most: 40, more_stages: 0, ..AlternativeOptions::default() };
        let found = alternatives(&problem, &solved(&problem), &options, &mut |_| {});
        let values = |r: &Report| r.objectives.iter().map(|o| o.value).collect::<Vec<_>>();
        let values: Vec<Vec<i64>> = found.reports.iter().map(values).collect();
        assert_eq!(values[0], *values.iter().min().unwrap(), "seed {seed}");
        // Groups and orders, then stages too.
        let falls = values.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(falls <= 1, "seed {seed}: {values:?}");
        several += usize::from(values.last() > values.first());
    }
    assert!(several >= 20, "{several}");
}

#[test]
fn the_same_every_time_and_no_more_than_wanted() {
    for seed in [1, 4, 6] {
        let problem = random(seed).problem();
        let report = solved(&problem);
        let some = |most| {
            let options = AlternativeOptions { most, ..AlternativeOptions::default() };
            alternatives(&problem, &report, &options, &mut |_| {})
        };
        let six = some(6);
        assert_eq!(schedules(&six), schedules(&some(6)));
        assert_eq!(schedules(&some(3)), schedules(&six)[..3]);
        assert_eq!((six.reports.len(), six.end), (6, End::Most));
        assert_eq!(some(1).reports, vec![report.clone()]);
    }
}

#[test]
fn a_budget_ends_it_with_what_there_is() {
    let problem = random(48).problem();
    let report = solved(&problem);
    let budget = Budget { work: Some(2_000), ..Budget::default() };
    let options = AlternativeOptions { most: 400, budget, ..AlternativeOptions::default() };
    let found = alternatives(&problem, &report, &options, &mut |_| {});
    assert_eq!(found.end, End::Stopped { by: "work budget".into() });
    assert!((1..400).contains(&found.reports.len()));
    let each = AlternativeOptions { most: 400, work_each: Some(1), ..AlternativeOptions::default() };
    let found = alternatives(&problem, &report, &each, &mut |_| {});
    assert_eq!((found.complete_through, found.end), (None, End::Unproved));
}

/// Two operations that exclude each other on one unit, and a third that follows the first two iterations on.
#[test]
fn differences_say_what_is_where_and_what_comes_first() {
    let op = |unit| Op { unit, cycles: 2, synchronous: true, sub_tile: None };
    let edge = |from, to| Edge { from, to, distance: 0, value: false, blocking: false };
    let small = Loop { ops: vec![op(0), op(0), op(1)], edges: vec![edge(0, 2), edge(1, 2)], handoff: 0, late: 0 };
    let problem = small.problem();
    let report = solved(&problem);
    let first = report.outcome.schedule().unwrap().clone();
    assert_eq!(first.interval, Cycles(4));
    let shifted = |places: [(i64, usize); 3]| {
        let mut schedule = first.clone();
        for (placement, (cycle, group)) in schedule.placements.iter_mut().zip(places) {
            (placement.cycle, placement.group) = (Cycles(cycle), GroupId::new(group));
        }
        schedule
    };
    let base = shifted([(0, 0), (2, 0), (4, 1)]);
    let [a, b, c] = [0, 1, 2].map(OpId::new);
    let told = |places| differences(&problem, &base, &shifted(places));
    assert_eq!(told([(1, 0), (3, 0), (5, 1)]), []);
    assert_eq!(told([(0, 1), (2, 1), (4, 0)]), []);
    assert_eq!(told([(2, 0), (0, 0), (4, 1)]), [Difference::Order { earlier: b, later: a, distance: 0 }]);
    assert_eq!(told([(0, 0), (2, 0), (8, 1)]), [Difference::Stage { operation: c, stage: 2 }]);
    assert_eq!(told([(0, 0), (2, 1), (4, 1)]), [Difference::Group { operation: b, group: GroupId::new(1) }]);
    let later = [
        Difference::Order { earlier: a, later: b, distance: -1 },
        Difference::Stage { operation: b, stage: 1 },
        Difference::Stage { operation: c, stage: 2 },
    ];
    assert_eq!(told([(0, 0), (6, 0), (8, 1)]), later);
}
