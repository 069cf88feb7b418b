//! Against all schedules of tiny graphs, and by the checker's count.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::{Improved, NeighbourhoodError, Options, improve};
use crate::{Baseline, Control, Measure, Mobility, Precedence, is_legal};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use twill_graph::{DataflowObjective, DataflowProblem, Random, StartSteps};

/// The worst and the best legal schedule of a tiny problem.
fn extremes(problem: &DataflowProblem) -> Option<(Vec<u64>, i128)> {
    let precedence = Precedence::new(&problem.graph, problem.interval);
    let end = problem.latency_bound.unwrap();
    let mut steps = vec![0_u64; problem.graph.operations().len()];
    let (mut worst, mut best) = (None, i128::MAX);
    loop {
        if is_legal(problem, &precedence, &steps) {
            let measure = Measure::with(&problem.graph, &precedence, problem.interval, &steps);
            let cost = measure.objective(problem.objective);
            best = best.min(cost);
            if worst.as_ref().is_none_or(|(_, most)| cost > *most) {
                worst = Some((steps.clone(), cost));
            }
        }
        // Counts on, with a digit an operation.
        let Some(_) = steps.iter().find(|step| **step + 1 < end) else {
            return worst.map(|(steps, _)| (steps, best));
        };
        for step in &mut steps {
            *step += 1;
            if *step < end {
                break;
            }
            *step = 0;
        }
    }
}

fn tiny() -> impl Strategy<Value = DataflowProblem> {
    let shape = (2..6_u32, 0.0..0.8_f64, Just(0_u32), 0..3_u32, 1..3_u32);
    let costs = (1..4_u32, 1..3_u32, 0..3_u64, prop_oneof![1..4_u32, 1..900_u32], any::<u64>());
    let objective = prop_oneof![
        (0..4_u64, 0..3_u64)
            .prop_map(|(peak, communication)| DataflowObjective::Resources { peak: 3 * peak, communication }),
        Just(DataflowObjective::Storage),
        Just(DataflowObjective::Latency),
    ];
    (shape, costs, prop::option::of(1..5_u64), 0..4_u64, objective).prop_map(
        |(shape, costs, interval, slack, objective)| {
            let (graph, path) = crate::testing::random(shape, costs, false);
            DataflowProblem { graph, latency_bound: Some((path + slack).min(8)), interval, objective }
        },
    )
}

fn improved(problem: &DataflowProblem, steps: Vec<u64>, options: &Options) -> Improved {
    let start = StartSteps { interval: problem.interval, steps };
    let improved = improve(problem, start, options, Control::default(), &mut |_| {}).unwrap();
    let measured = twill_check::verify_dataflow(problem, improved.schedule.clone()).unwrap();
    assert_eq!(measured.objective, improved.objective, "the checker counts otherwise");
    improved
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_whole_graph_as_a_window_finds_and_proves_the_optimum(problem in tiny()) {
        if let Some((worst, best)) = extremes(&problem) {
            let found = improved(&problem, worst, &Options::default());
            prop_assert!(found.proved);
            prop_assert_eq!((found.objective, found.least), (best, best));
        }
    }

    #[test]
    fn windows_alone_never_make_it_worse_nor_claim_too_much(problem in tiny(), window in 1..4_usize, seed in 0..9_u64) {
        if let Some((worst, best)) = extremes(&problem) {
            let before = Measure::new(&problem.graph, problem.interval, &worst).objective(problem.objective);
            let options = Options { seed, window, whole: false, conflicts: 300, ..Options::default() };
            let found = improved(&problem, worst, &options);
            prop_assert!((best..=before).contains(&found.objective));
            prop_assert!(found.least <= best);
            prop_assert!(!found.proved || found.objective == best);
        }
    }
}

fn random(text: &str, interval: Option<u64>, objective: DataflowObjective) -> (DataflowProblem, Vec<u64>) {
    let graph = text.parse::<Random>().unwrap().graph().unwrap();
    let mut problem = DataflowProblem { graph, latency_bound: None, interval, objective };
    let baseline = if interval.is_some() { Baseline::IterativeModulo } else { Baseline::Asap };
    problem.latency_bound = Some(Mobility::new(&problem).unwrap().latency * 3 / 2 + interval.unwrap_or(0));
    let start = baseline.schedule(&problem).unwrap();
    (problem, start.steps)
}

#[test]
fn larger_graphs_improve_and_the_same_seed_gives_the_same() {
    let score = DataflowObjective::Resources { peak: 20, communication: 1 };
    let two = "nodes=120,resources=1,recurrence=0,density=0.02,latency=3,resources=2,storage=9";
    let limited = "nodes=60,resources=1,recurrence=0,density=0.03,latency=2,resources=2,limit=4,storage=5,back-edges=6,distance=2";
    for (text, interval, objective) in [
        (two, None, DataflowObjective::Resources { peak: 1, communication: 0 }),
        (two, None, score),
        (two, None, DataflowObjective::Storage),
        (limited, Some(20), DataflowObjective::Storage),
        (limited, Some(20), score),
    ] {
        let (problem, start) = random(text, interval, objective);
        let before = Measure::new(&problem.graph, interval, &start).objective(objective);
        let options = Options { conflicts: 3000, window_conflicts: 200, window: 12, ..Options::default() };
        let found = improved(&problem, start.clone(), &options);
        assert!(found.objective < before, "{objective:?}: {} from {before}", found.objective);
        assert!(found.least <= found.objective && found.windows_improved > 0);
        assert_eq!(found, improved(&problem, start, &options));
    }
}

#[test]
fn what_is_no_schedule_is_refused_and_an_interrupt_keeps_the_start() {
    let (problem, start) = random("nodes=40,resources=1,recurrence=0,density=0.05", None, DataflowObjective::Storage);
    let options = Options::default();
    let from = |steps: Vec<u64>, control| {
        improve(&problem, StartSteps { interval: None, steps }, &options, control, &mut |_| {})
    };
    assert_eq!(from(vec![0; 40], Control::default()), Err(NeighbourhoodError::Start));
    assert_eq!(from(vec![0; 3], Control::default()), Err(NeighbourhoodError::Start));
    let stop = AtomicBool::new(true);
    let stopped = from(start.clone(), Control { interrupt: Some(&stop), ..Control::default() }).unwrap();
    assert_eq!((stopped.schedule.steps, stopped.windows_improved), (start, 0));
}

#[test]
fn without_a_latency_bound_only_bounds_prove() {
    let graph = "nodes=6,resources=1,recurrence=0,density=0.3,latency=2".parse::<Random>().unwrap().graph().unwrap();
    let objective = DataflowObjective::Resources { peak: 1, communication: 0 };
    let problem = DataflowProblem { graph, latency_bound: None, interval: None, objective };
    let start = Baseline::Asap.schedule(&problem).unwrap();
    let found = improved(&problem, start.steps, &Options { conflicts: 200, ..Options::default() });
    assert!(!found.proved || found.objective == found.least);
}
