//! Modulo scheduling of large loops against two other ways: trying every choice of slots, and phase 1 of the search for
//! schedules with warps.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use proptest::prelude::*;
use serde_json::{Value, json};
use twill_exact::{Budget, SearchOptions, modulo_schedule, pipeline};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{
    Cycles, LowerBoundKind, ModelOptions, ModuloDependence, ModuloOperation, ModuloProblem, ModuloResource, OpId,
    Outcome, Pipeline, Problem, UnitId,
};

/// From, to, delay, distance.
type Edge = (usize, usize, i64, u32);

/// Resources by limit and blocking time; operations by resource.
fn problem(resources: &[(Option<u32>, u32)], operations: &[usize], edges: &[Edge]) -> Option<ModuloProblem> {
    let resource = |(k, &(limit, blocking)): (usize, &_)| ModuloResource { name: format!("r{k}"), limit, blocking };
    let operation = |(k, &r): (usize, &usize)| ModuloOperation { name: format!("v{k}"), resource: UnitId::new(r) };
    let dependence = |&(from, to, delay, distance): &Edge| {
        let (from, to) = (OpId::new(from), OpId::new(to));
        ModuloDependence { from, to, delay: Cycles(delay), distance }
    };
    let operations = operations.iter().enumerate().map(operation).collect();
    let resources = resources.iter().enumerate().map(resource).collect();
    ModuloProblem::new("random", operations, edges.iter().map(dependence).collect(), resources).ok()
}

/// The least interval, which must be proved, with times that `twill-check` would accept: both constraints, written out.
fn solve(problem: &ModuloProblem) -> i64 {
    let budget = Budget { work: Some(50_000_000), ..Budget::default() };
    let report = modulo_schedule(problem, &budget, &mut |_| {});
    let Outcome::Optimal { schedule } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(report.lower_bound.interval, schedule.interval);
    let (interval, times) = (schedule.interval.0, &schedule.times);
    assert!(times.iter().all(|t| t.0 >= 0));
    for d in problem.dependences() {
        let reach = times[d.to.index()].0 + i64::from(d.distance) * interval;
        assert!(reach >= times[d.from.index()].0 + d.delay.0, "{d:?} {schedule:?}");
    }
    let slots: Vec<i64> = times.iter().map(|t| t.0 % interval).collect();
    assert!(fits(problem, interval, &slots), "{schedule:?}");
    interval
}

fn fits(problem: &ModuloProblem, interval: i64, slots: &[i64]) -> bool {
    problem.resources().iter().enumerate().all(|(index, resource)| {
        let Some(limit) = resource.limit else { return true };
        let mut held = vec![0; interval as usize];
        for (op, slot) in problem.operations().iter().zip(slots) {
            if op.resource == UnitId::new(index) {
                (0..i64::from(resource.blocking)).for_each(|k| held[((slot + k) % interval) as usize] += 1);
            }
        }
        held.iter().all(|&h| h <= limit)
    })
}

/// The least interval for which some choice of slots leaves times: every choice is tried.
fn brute_force(problem: &ModuloProblem) -> i64 {
    (1..).find(|&interval| choices(problem, interval, &mut Vec::new())).unwrap()
}

fn choices(problem: &ModuloProblem, interval: i64, slots: &mut Vec<i64>) -> bool {
    let Some(op) = problem.operations().get(slots.len()) else {
        return fits(problem, interval, slots) && stages_exist(problem, interval, slots);
    };
    let limited = problem.resources()[op.resource.index()].limit.is_some();
    let open = if limited { 0..interval } else { -1..0 };
    open.into_iter().any(|slot| {
        slots.push(slot);
        let found = choices(problem, interval, slots);
        slots.pop();
        found
    })
}

/// Earliest times with these slots (−1: any), rising until they stand or are beyond what is needed.
fn stages_exist(problem: &ModuloProblem, interval: i64, slots: &[i64]) -> bool {
    let up = |time: i64, slot: i64| if slot < 0 { time } else { time + (slot - time).rem_euclid(interval) };
    let mut times: Vec<i64> = slots.iter().map(|&slot| up(0, slot)).collect();
    let delays: i64 = problem.dependences().iter().map(|d| d.delay.0.abs()).sum();
    let horizon = delays + interval * (slots.len() as i64 + 2);
    loop {
        let before = times.clone();
        for d in problem.dependences() {
            let (from, to) = (d.from.index(), d.to.index());
            let least = times[from] + d.delay.0 - i64::from(d.distance) * interval;
            times[to] = times[to].max(up(least.max(0), slots[to]));
        }
        if times == before {
            return true;
        }
        if times.iter().any(|&t| t > horizon) {
            return false;
        }
    }
}

fn edges(operations: usize, delays: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Edge>> {
    let edge = (0..operations, 0..operations, delays, 0..3_u32);
    // Backwards across iterations only, lest most loops wait for themselves.
    let forward = edge.prop_map(|(u, v, d, k)| if u < v { (u, v, d, k / 2) } else { (u, v, d, k.max(1)) });
    prop::collection::vec(forward, 0..2 * operations)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_interval_is_that_of_brute_force(
        limits in prop::collection::vec((1..3_u32, 1..3_u32), 2),
        operations in prop::collection::vec(0..3_usize, 1..6),
        edges in edges(5, -2..4),
    ) {
        let resources = [(Some(limits[0].0), limits[0].1), (Some(limits[1].0), 1), (None, 1)];
        let edges: Vec<Edge> = edges.into_iter().filter(|e| e.0.max(e.1) < operations.len()).collect();
        if let Some(problem) = problem(&resources, &operations, &edges) {
            let expected = brute_force(&problem);
            prop_assert_eq!(solve(&problem), expected);
        }
    }

    #[test]
    fn the_interval_is_that_of_phase_1(
        operations in prop::collection::vec((0..3_usize, 1..4_i64), 4..14),
        edges in edges(14, 0..6),
    ) {
        let cycles: Vec<usize> = operations.iter().map(|op| op.0).collect();
        let mut edges: Vec<Edge> = edges.into_iter().filter(|e| e.0.max(e.1) < operations.len()).collect();
        edges.sort_by_key(|e| (e.0, e.1));
        edges.dedup_by_key(|e| (e.0, e.1));
        let large = problem(&[(Some(1), 1), (Some(2), 2), (None, 1)], &cycles, &edges).unwrap();
        if let Some(expected) = phase_1(&dense(&cycles, &edges), None) {
            prop_assert_eq!(solve(&large), expected.0);
        }
    }

    #[test]
    fn a_start_changes_neither_the_interval_nor_the_length(
        operations in prop::collection::vec(0..3_usize, 4..14),
        edges in edges(14, 0..6),
        moved in (0..14_usize, 0..9_i64),
    ) {
        let mut edges: Vec<Edge> = edges.into_iter().filter(|e| e.0.max(e.1) < operations.len()).collect();
        edges.sort_by_key(|e| (e.0, e.1));
        edges.dedup_by_key(|e| (e.0, e.1));
        let problem = dense(&operations, &edges);
        if let Some((interval, length, found)) = phase_1(&problem, None) {
            let mut wrong = found.clone();
            let moves = moved.0 % operations.len();
            wrong.cycles[moves] = Cycles(moved.1);
            let longer = Pipeline { interval: found.interval + Cycles(3), ..found.clone() };
            let short = Pipeline { cycles: found.cycles[1..].to_vec(), ..found.clone() };
            let impossible = Pipeline { interval: Cycles(interval - 1), ..found.clone() };
            for start in [found, wrong, longer, short, impossible] {
                let again = phase_1(&problem, Some(start.clone())).unwrap();
                prop_assert_eq!((again.0, again.1), (interval, length), "{:?}", start);
            }
        }
    }
}

/// The least interval and length by the dense solver, without warps, and what has them; `None` for the rare loop that it does not
/// settle soon.
fn phase_1(problem: &Problem, start: Option<Pipeline>) -> Option<(i64, i64, Pipeline)> {
    let budget = Budget { work: Some(1_000_000), ..Budget::default() };
    let options = SearchOptions { budget, pipeline: start, ..SearchOptions::default() };
    let found = pipeline(problem, &options, &mut |_| {}).outcome.schedule()?.clone();
    Some((found.interval.0, found.length.0, found))
}

/// The same loop as a graph of tile operations.
fn dense(operations: &[usize], edges: &[Edge]) -> Problem {
    let units: [Value; 3] = [json!([{"unit": "one", "cycles": 1}]), json!([{"unit": "two", "cycles": 2}]), json!([])];
    let operation = |(k, &r): (usize, &usize)| json!({"name": format!("v{k}"), "units": units[r], "execution": "asynchronous", "latency": 1});
    let dependence = |&(u, v, delay, distance): &Edge| json!({"from": format!("v{u}"), "to": format!("v{v}"), "delay": delay, "distance": distance, "value": false, "blocking": false});
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "random",
        "machine": {
            "name": "plenty", "units": [{"name": "one"}, {"name": "two", "capacity": 2}], "shared_memory": 1024,
            "registers": {
                "words": 65536, "minimum_per_thread": 8, "maximum_per_thread": 255, "granularity": 8, "reserve_per_thread": 0
            },
            "compute_groups": {"warps": 4, "maximum": 1}
        },
        "operations": operations.iter().enumerate().map(operation).collect::<Vec<_>>(),
        "dependences": edges.iter().map(dependence).collect::<Vec<_>>(),
    });
    let file = GraphFile::from_json(&graph.to_string(), "random").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { panic!() };
    Problem::new(file.graph().unwrap(), *resources, ModelOptions::default()).unwrap()
}

#[test]
fn bounds_come_with_their_witness() {
    let bound = |resources: &[(Option<u32>, u32)], operations: &[usize], edges: &[Edge]| {
        let problem = problem(resources, operations, edges).unwrap();
        modulo_schedule(&problem, &Budget::default(), &mut |_| {}).lower_bound
    };
    let busy = bound(&[(Some(2), 3)], &[0, 0, 0], &[]);
    assert_eq!(busy.interval, Cycles(5));
    let LowerBoundKind::Resource { unit, busy, capacity, .. } = busy.kind else { panic!() };
    assert_eq!((unit.as_str(), busy, capacity), ("r0", Cycles(9), 2));
    // 4 + 3 cycles every two iterations outweigh 3 every one.
    let round = bound(&[(None, 1)], &[0, 0, 0], &[(0, 1, 4, 0), (1, 0, 3, 2), (2, 2, 3, 1), (0, 2, 9, 0)]);
    assert_eq!(round.interval, Cycles(4));
    let LowerBoundKind::Recurrence { operations, delay, distance } = round.kind else { panic!() };
    assert_eq!((operations.len(), delay, distance), (3, Cycles(7), 2));
    assert_eq!(bound(&[(None, 1)], &[0], &[(0, 0, -7, 0)]).kind, LowerBoundKind::Trivial);
}

#[test]
fn a_window_too_wide_to_tell_apart_is_said_so() {
    // Two operations that bound each other within a hundred million cycles, on one unit that needs few.
    let wide = problem(&[(Some(1), 1), (None, 1)], &[0, 0, 1], &[(0, 1, 0, 0), (1, 0, 0, 1), (2, 2, 100_000_000, 1)]);
    let report = modulo_schedule(&wide.unwrap(), &Budget::default(), &mut |_| {});
    let Outcome::Unknown { stopped_by } = report.outcome else { panic!() };
    assert_eq!((stopped_by.as_str(), report.lower_bound.interval), ("size of the encoding", Cycles(100_000_000)));
}
