//! Bounds against all schedules of tiny graphs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use crate::{Measure, is_legal};
use proptest::prelude::*;
use twill_graph::Random;

/// The least of `cost` over all legal schedules of a tiny problem; `None` when there are none.
fn least(problem: &DataflowProblem, cost: impl Fn(&Measure) -> i128) -> Option<i128> {
    let precedence = Precedence::new(&problem.graph, problem.interval);
    let bound = problem.latency_bound.unwrap();
    let mut steps = vec![0_u64; problem.graph.operations().len()];
    let mut best = None;
    loop {
        if is_legal(problem, &precedence, &steps) {
            let measure = Measure::with(&problem.graph, &precedence, problem.interval, &steps);
            let cost = cost(&measure);
            best = Some(best.map_or(cost, |best: i128| best.min(cost)));
        }
        // Counts on, with a digit an operation.
        match steps.iter_mut().find(|step| **step + 1 < bound) {
            None => return best,
            Some(_) => {
                for step in &mut steps {
                    *step += 1;
                    if *step < bound {
                        break;
                    }
                    *step = 0;
                }
            }
        }
    }
}

fn tiny() -> impl Strategy<Value = DataflowProblem> {
    let shape = (2..6_u32, 0.0..0.8_f64, Just(0_u32), 0..3_u32, 1..3_u32);
    let costs = (1..4_u32, 1..3_u32, 0..3_u64, 1..4_u32, any::<u64>());
    let problem = (shape, costs, prop::option::of(1..5_u64), 0..4_u64, any::<bool>());
    problem.prop_map(|(shape, costs, interval, slack, vary)| {
        let (graph, path) = crate::testing::random(shape, costs, vary);
        let latency_bound = Some((path + slack).min(8));
        DataflowProblem { graph, latency_bound, interval, objective: DataflowObjective::Storage }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_schedule_undercuts_a_bound(problem in tiny(), peak in 0..4_u64, alpha in 0..4_u64) {
        let objectives = [
            DataflowObjective::Resources { peak, communication: alpha },
            DataflowObjective::Storage,
            DataflowObjective::Latency,
        ];
        for objective in objectives {
            let problem = DataflowProblem { objective, ..problem.clone() };
            let best = least(&problem, |measure| measure.objective(objective));
            match (lower_bound(&problem), best) {
                (Ok(bound), Some(best)) => prop_assert!(bound.value <= best, "{:?}: {} {:?}", objective, best, bound),
                (Err(_), best) => prop_assert_eq!(best, None),
                (Ok(_), None) => {}
            }
            // A bound that does not know of the latency bound is one, too.
            let loose = DataflowProblem { latency_bound: None, ..problem };
            if let (Ok(bound), Some(best)) = (lower_bound(&loose), best) {
                prop_assert!(bound.value <= best, "without windows, {:?}: {} {:?}", objective, best, bound);
            }
        }
    }

    /// No schedule undercuts multipliers, and the checker comes to the same.
    #[test]
    fn multipliers_prove_what_they_claim(problem in tiny(), peak in 1..4_u64, alpha in 0..4_u64) {
        for objective in [DataflowObjective::Resources { peak, communication: alpha }, DataflowObjective::Storage] {
            let problem = DataflowProblem { objective, interval: None, ..problem.clone() };
            let Ok(known) = lower_bound(&problem) else { continue };
            let Some(found) = multipliers(&problem, &known, Control::default()) else { continue };
            prop_assert_eq!(twill_check::verify_multipliers(&problem, &found), Ok(found.least));
            if let Some(best) = least(&problem, |measure| measure.objective(objective)) {
                prop_assert!(found.least <= best, "{:?}: {} {:?}", objective, best, found);
            }
            // One more is more than they prove.
            let greedy = twill_graph::proof::Multipliers { least: found.least + 1, ..found };
            prop_assert!(twill_check::verify_multipliers(&problem, &greedy).is_err());
        }
    }

    /// Whatever the bound on latency and the interval.
    #[test]
    fn wavefronts_prove_what_they_claim(problem in tiny()) {
        if let Some(found) = wavefront(&problem, Control::default()) {
            prop_assert_eq!(twill_check::verify_wavefront(&problem, &found), Ok(found.least));
            if let Some(best) = least(&problem, |measure| measure.objective(DataflowObjective::Storage)) {
                prop_assert!(found.least <= best, "{} {:?}", best, found);
            }
            let greedy = twill_graph::proof::Wavefront { least: found.least + 1, ..found };
            prop_assert!(twill_check::verify_wavefront(&problem, &greedy).is_err());
        }
    }

    /// Without limits, the flow is exact.
    #[test]
    fn the_least_communication_is_found(problem in tiny()) {
        let mut resources = problem.graph.resources().to_vec();
        resources.iter_mut().for_each(|r| r.limit = None);
        let graph = Dataflow::new("g", problem.graph.operations().to_vec(), problem.graph.dependences().to_vec(), resources);
        let objective = DataflowObjective::Resources { peak: 0, communication: 1 };
        let problem = DataflowProblem { graph: graph.unwrap(), objective, ..problem };
        if let Ok(bound) = lower_bound(&problem) {
            prop_assert_eq!(Some(bound.value), least(&problem, |measure| measure.communication));
        }
    }

    #[test]
    fn no_schedule_has_a_smaller_interval(problem in tiny()) {
        let bound = least_interval(&problem.graph).least();
        for interval in 1..bound.min(6) {
            let problem = DataflowProblem { interval: Some(interval), ..problem.clone() };
            prop_assert_eq!(least(&problem, |_| 0), None);
        }
    }
}

/// Where one step after another has little, all together have more than the least of any.
#[test]
fn means_over_steps_are_more_than_cuts() {
    let text = "nodes=60,resources=1,recurrence=0,density=0.08,seed=3";
    let graph = text.parse::<Random>().unwrap().graph().unwrap();
    let plain = DataflowProblem { graph, latency_bound: None, interval: None, objective: DataflowObjective::Storage };
    let bound = Mobility::new(&plain).unwrap().latency * 3 / 2;
    for objective in [DataflowObjective::Storage, DataflowObjective::Resources { peak: bound, communication: 1 }] {
        let problem = DataflowProblem { objective, latency_bound: Some(bound), ..plain.clone() };
        let known = lower_bound(&problem).unwrap();
        let found = multipliers(&problem, &known, Control::default()).unwrap();
        assert!(found.least > known.value, "{objective:?}: {} {}", found.least, known.value);
        assert_eq!(multipliers(&problem, &known, Control::default()), Some(found), "the same every time");
    }
}

#[test]
fn each_argument_is_the_best_somewhere() {
    let bounded = |text: &str, latency_bound, interval, objective| {
        let graph = text.parse::<Random>().unwrap().graph().unwrap();
        lower_bound(&DataflowProblem { graph, latency_bound, interval, objective }).unwrap()
    };
    // Five in two steps.
    let peaks = DataflowObjective::Resources { peak: 1, communication: 0 };
    assert_eq!(bounded("nodes=5,resources=1,recurrence=0,density=0", Some(2), None, peaks).value, 3);
    assert_eq!(bounded("nodes=5,resources=1,recurrence=0,density=0", None, Some(2), peaks).value, 3);
    // Five on two units.
    let least = bounded("nodes=5,resources=1,recurrence=0,density=0,limit=2", None, None, DataflowObjective::Latency);
    assert_eq!((least.value, least.terms[0].argument), (3, Argument::Energy));
    // A chain of four, all edges drawn: communication is 3 · 1 + 2 · 2 + 3.
    let communication = DataflowObjective::Resources { peak: 0, communication: 1 };
    assert_eq!(bounded("nodes=4,resources=1,recurrence=0,density=1", None, None, communication).value, 10);
    // The last of them reads all three; without the bound, too.
    let storage = bounded("nodes=4,resources=1,recurrence=0,density=1", None, None, DataflowObjective::Storage);
    assert_eq!((storage.value, storage.terms[0].argument), (3, Argument::Operands));
    // Two chains of three: they can alternate only where two steps are to spare.
    let operations = (0..6).map(crate::testing::operation).collect();
    let edges = [(0, 2), (2, 4), (1, 3), (3, 5)].map(|(from, to)| crate::testing::after(from, to, 1));
    let graph = Dataflow::new("chains", operations, edges.into(), Vec::new()).unwrap();
    let within = |bound| {
        let latency_bound = Some(bound);
        let objective = DataflowObjective::Storage;
        let problem = DataflowProblem { graph: graph.clone(), latency_bound, interval: None, objective };
        lower_bound(&problem).unwrap().value
    };
    assert_eq!((within(3), within(4), within(5)), (2, 2, 1));
    // A new one starts every step: lives of 3, 2 and 1.
    let loops = bounded("nodes=4,resources=1,recurrence=0,density=1", None, Some(1), DataflowObjective::Storage);
    assert_eq!((loops.value, loops.terms[0].argument), (6, Argument::Lifetimes));
}
