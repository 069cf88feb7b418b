//! The replay of dataflow schedules against a naive count, step by step; and mutants, which it has to refuse.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use proptest::prelude::*;
use twill_check::{Constraint, verify_dataflow};
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, OpId, Random, StartSteps};

/// Usage of each resource and storage, by step (or slot); as the words of the model say, one step at a time.
struct Naive {
    resources: Vec<Vec<i128>>,
    storage: Vec<i128>,
}

fn naive(graph: &Dataflow, interval: Option<u64>, steps: &[u64]) -> Naive {
    const STEPS: u64 = 4000;
    let rows = interval.unwrap_or(STEPS) as usize;
    let row = |step: u64| step as usize % rows;
    let mut sums = Naive { resources: vec![vec![0; rows]; graph.resources().len()], storage: vec![0; rows] };
    for (index, (op, &start)) in graph.operations().iter().zip(steps).enumerate() {
        for used in &op.uses {
            for step in 0..u64::from(used.steps) {
                let at = row(start + u64::from(used.offset) + step);
                sums.resources[used.resource.index()][at] += i128::from(used.amount);
            }
        }
        let own = graph.dependences().iter().filter(|d| d.from.index() == index);
        let counts = own.filter(|d| d.distance == 0 || interval.is_some());
        let reads = counts.map(|d| steps[d.to.index()] + u64::from(d.distance) * interval.unwrap_or(0));
        for step in start..reads.max().unwrap_or(0) {
            sums.storage[row(step)] += i128::from(op.storage);
        }
    }
    sums
}

/// Returns whether dependences hold and everything is finished in time.
fn in_order(problem: &DataflowProblem, steps: &[u64]) -> bool {
    let start = |op: OpId| steps[op.index()] as i64;
    let interval = problem.interval.map(|ii| ii as i64);
    let waits = problem.graph.dependences().iter().all(|d| match interval {
        None => d.distance > 0 || start(d.to) >= start(d.from) + d.delay,
        Some(ii) => start(d.to) + i64::from(d.distance) * ii >= start(d.from) + d.delay,
    });
    let late = |(op, &start): (&twill_graph::DataflowOperation, &u64)| {
        problem.latency_bound.is_some_and(|bound| start + u64::from(op.latency) > bound)
    };
    waits && !problem.graph.operations().iter().zip(steps).any(late)
}

fn constraints(problem: &DataflowProblem, steps: &[u64]) -> Vec<Constraint> {
    let steps = StartSteps { interval: problem.interval, steps: steps.to_vec() };
    match verify_dataflow(problem, steps) {
        Ok(_) => Vec::new(),
        Err(rejected) => rejected.violations.iter().map(|v| v.constraint()).collect(),
    }
}

/// The least start steps that keep all dependences at the interval, if there are any.
fn soonest(graph: &Dataflow, interval: Option<u64>) -> Option<Vec<u64>> {
    let mut steps = vec![0_i64; graph.operations().len()];
    for _ in 0..=steps.len() {
        let mut changed = false;
        for d in graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some()) {
            let least = steps[d.from.index()] + d.delay - i64::from(d.distance) * interval.unwrap_or(0) as i64;
            if steps[d.to.index()] < least {
                (steps[d.to.index()], changed) = (least, true);
            }
        }
        if !changed {
            return Some(steps.into_iter().map(|s| s as u64).collect());
        }
    }
    None
}

fn instance() -> impl Strategy<Value = (Dataflow, Option<u64>, Vec<u64>)> {
    let shape = (1..14_u32, 0.0..0.5_f64, 0..4_u32, 1..4_u32);
    let costs = (1..5_u32, 0..3_u32, 0..9_u32, any::<u64>());
    (shape, costs, prop::option::of(1..9_u64), prop::collection::vec(0..6_u64, 14)).prop_map(
        |(shape, costs, interval, slack)| {
            let ((nodes, density, back_edges, distance), (latency, resources, storage, seed)) = (shape, costs);
            let random = Random {
                nodes,
                density,
                reach: 0,
                back_edges,
                distance,
                recurrence: 0,
                latency,
                resources,
                limit: 0,
                storage,
                seed,
            };
            (random.graph().unwrap(), interval, slack)
        },
    )
}

proptest! {
    /// Legal or not, measured or refused: as the naive count has it.
    #[test]
    fn the_replay_agrees_with_a_naive_count((graph, interval, slack) in instance(), limit in 0..4_u64, bound in prop::option::of(0..40_u64), orderly in any::<bool>()) {
        let mut resources = graph.resources().to_vec();
        for resource in &mut resources {
            resource.limit = Some(limit).filter(|&limit| limit > 0);
        }
        let graph = Dataflow::new("g", graph.operations().to_vec(), graph.dependences().to_vec(), resources).unwrap();
        let steps = if orderly { soonest(&graph, interval) } else { None };
        let steps = steps.unwrap_or_else(|| slack[..graph.operations().len()].to_vec());
        let objective = DataflowObjective::Resources { peak: 7, communication: 2 };
        let problem = DataflowProblem { graph, latency_bound: bound, interval, objective };
        let counted = naive(&problem.graph, interval, &steps);
        let peaks: Vec<i128> = counted.resources.iter().map(|row| *row.iter().max().unwrap()).collect();
        let within = limit == 0 || peaks.iter().all(|&peak| peak <= i128::from(limit));
        let legal = within && in_order(&problem, &steps);
        let verified = verify_dataflow(&problem, StartSteps { interval, steps: steps.clone() });
        prop_assert_eq!(verified.is_ok(), legal);
        if let Ok(measured) = verified {
            prop_assert_eq!(&measured.peaks, &peaks);
            prop_assert_eq!(measured.storage, *counted.storage.iter().max().unwrap());
            let apart = |d: &twill_graph::DataflowDependence| {
                steps[d.to.index()] as i128 - steps[d.from.index()] as i128 + i128::from(d.distance) * i128::from(interval.unwrap_or(0))
            };
            let counts = problem.graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some());
            prop_assert_eq!(measured.communication, counts.map(apart).sum::<i128>());
            prop_assert_eq!(measured.objective, 7 * peaks.iter().sum::<i128>() + 2 * measured.communication);
        }
    }

    /// From a schedule that holds, one that is a step off: each is refused, for the reason that it is wrong.
    #[test]
    fn mutants_are_refused((graph, interval, _) in instance(), which in any::<prop::sample::Index>()) {
        let Some(steps) = soonest(&graph, interval) else { return Ok(()) };
        let objective = DataflowObjective::Storage;
        let problem = DataflowProblem { graph, latency_bound: None, interval, objective };
        let sealed = verify_dataflow(&problem, StartSteps { interval, steps: steps.clone() }).unwrap();
        let only = |constraint| move |found: Vec<Constraint>| !found.is_empty() && found.iter().all(|c| *c == constraint);
        // Too little time.
        let bound = sealed.latency as u64 - 1;
        let hurried = DataflowProblem { latency_bound: Some(bound), ..problem.clone() };
        prop_assert!(only(Constraint::Structure)(constraints(&hurried, &steps)));
        // An operation that waits for another starts one step sooner.
        let moved = which.index(steps.len());
        if steps[moved] > 0 {
            let mut early = steps.clone();
            early[moved] -= 1;
            prop_assert!(only(Constraint::Dependence)(constraints(&problem, &early)));
        }
        // One unit fewer than are in use, where an operation by itself does not need them all.
        for (index, &peak) in sealed.peaks.iter().enumerate().filter(|&(_, &peak)| peak > 1) {
            let mut resources = problem.graph.resources().to_vec();
            resources[index].limit = Some(peak as u64 - 1);
            let graph = &problem.graph;
            let scarce = Dataflow::new("g", graph.operations().to_vec(), graph.dependences().to_vec(), resources).unwrap();
            let scarce = DataflowProblem { graph: scarce, ..problem.clone() };
            prop_assert!(only(Constraint::Resource)(constraints(&scarce, &steps)));
        }
        // Another interval, and one operation too few.
        let other = StartSteps { interval: Some(interval.map_or(1, |ii| ii + 1)), steps: steps.clone() };
        prop_assert!(verify_dataflow(&problem, other).is_err());
        prop_assert!(constraints(&problem, &steps[1..]) == [Constraint::Structure]);
    }
}

#[test]
fn numbers_beyond_all_measure_are_refused() {
    let random: Random = "nodes=3,resources=1,recurrence=0,density=1,back-edges=3,distance=9".parse().unwrap();
    let problem = |interval| {
        let objective = DataflowObjective::Resources { peak: u64::MAX, communication: u64::MAX };
        DataflowProblem { graph: random.graph().unwrap(), latency_bound: None, interval, objective }
    };
    let refused = |interval, steps: [u64; 3]| {
        verify_dataflow(&problem(interval), StartSteps { interval, steps: steps.to_vec() }).unwrap_err().to_string()
    };
    assert!(refused(None, [0, 1, u64::MAX]).contains("beyond 17592186044416"));
    assert!(refused(Some(u64::MAX), [0, 1, 2]).contains("beyond 17592186044416"));
    assert!(refused(Some(0), [0, 1, 2]).contains("the initiation interval is 0; it must be at least 1"));
    let far = verify_dataflow(
        &problem(Some(1 << 44)),
        StartSteps { interval: Some(1 << 44), steps: vec![0, 1, (1 << 44) - 1] },
    );
    assert!(far.is_ok());
    assert!(refused(Some(3), [1, 1, 0]).contains("allows cycle 2 at the earliest"));
}

#[test]
fn who_holds_too_much_is_named() {
    let random: Random = "nodes=4,resources=1,recurrence=0,density=0,limit=2".parse().unwrap();
    let graph = random.graph().unwrap();
    let problem =
        DataflowProblem { graph, latency_bound: None, interval: Some(2), objective: DataflowObjective::Latency };
    let steps = StartSteps { interval: Some(2), steps: vec![1, 3, 0, 5] };
    let refused = verify_dataflow(&problem, steps).unwrap_err().to_string();
    assert!(refused.contains("unit `r0` (capacity 2) is held 3 times at slot 1: `v0` 1, `v1` 1, `v3` 1"), "{refused}");
    let other = verify_dataflow(&problem, StartSteps { interval: None, steps: vec![0; 4] }).unwrap_err().to_string();
    assert!(other.contains("the schedule is one without an interval; the problem is one at the interval 2"), "{other}");
}

/// Operations of one resource: from a step after their start on, for two steps, this many units each.
fn heavy(amounts: &[u64], limit: u64, interval: Option<u64>) -> DataflowProblem {
    let random = format!("nodes={},resources=1,recurrence=0,density=0", amounts.len());
    let graph = random.parse::<Random>().unwrap().graph().unwrap();
    let mut operations = graph.operations().to_vec();
    for (op, &amount) in operations.iter_mut().zip(amounts) {
        op.uses[0] = twill_graph::ResourceUse { offset: 1, steps: 2, amount, ..op.uses[0] };
        op.latency = 4;
    }
    let mut resources = graph.resources().to_vec();
    resources[0].limit = Some(limit);
    let graph = Dataflow::new("heavy", operations, graph.dependences().to_vec(), resources).unwrap();
    DataflowProblem { graph, latency_bound: None, interval, objective: DataflowObjective::Latency }
}

#[test]
fn amounts_count_from_their_first_step_to_their_last() {
    let said = |amounts: &[u64], limit: u64, interval: Option<u64>, steps: &[u64]| {
        let start = StartSteps { interval, steps: steps.to_vec() };
        let verified = verify_dataflow(&heavy(amounts, limit, interval), start);
        verified.map(|sealed| (sealed.peaks[0], sealed.latency)).map_err(|e| e.to_string())
    };
    let refused = |amounts: &[u64], limit: u64, interval: Option<u64>, steps: &[u64], held: &str| {
        let said = said(amounts, limit, interval, steps).unwrap_err();
        // To the end: who is not there is not named.
        assert!(said.ends_with(&format!("unit `r0` (capacity {limit}) is held {held}")), "{said}");
    };
    let three = &[3, 2, 1][..];
    // Steps 1 and 2, 3 and 4, 5 and 6; then 1 and 2, 2 and 3.
    assert_eq!(said(three, 3, None, &[0, 2, 4]), Ok((3, 8)));
    refused(three, 4, None, &[0, 1, 4], "5 times at cycle 2 (slot 2): `v0` 3, `v1` 2");
    refused(three, 4, None, &[2, 2, 0], "5 times at cycle 3 (slot 3): `v0` 3, `v1` 2");
    refused(&[3, 2, 1, 4], 4, None, &[0, 0, 4, 4], "5 times at cycle 1 (slot 1): `v0` 3, `v1` 2");
    // Round an interval of three slots: 1 and 2, 2 and 0, 0 and 1; of four: 1 and 2, 2 and 3, 1 and 2.
    assert_eq!(said(three, 5, Some(3), &[0, 1, 2]), Ok((5, 6)));
    refused(three, 4, Some(3), &[0, 1, 2], "5 times at slot 2: `v0` 3, `v1` 2");
    refused(three, 4, Some(4), &[0, 1, 4], "6 times at slot 2: `v0` 3, `v1` 2, `v2` 1");
    // Slots 6 and 7, 8 and 9: neither goes round.
    assert_eq!(said(&[3, 2], 3, Some(10), &[5, 7]), Ok((3, 11)));
}
