//! Baselines on random problems: what they answer is replayed by the checker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use crate::least_interval;
use proptest::prelude::*;
use twill_check::verify_dataflow;
use twill_graph::Random;

fn problems() -> impl Strategy<Value = DataflowProblem> {
    let shape = (1..40_u32, 0.0..0.3_f64, 0..9_u32, 0..6_u32, 1..3_u32);
    let costs = (1..6_u32, 1..4_u32, 0..3_u64, 0..5_u32, any::<u64>());
    let asked = (prop::option::of(1..30_u64), prop::option::of(0..9_u64), 0..3_usize, any::<bool>());
    (shape, costs, asked).prop_map(|(shape, costs, (interval, slack, objective, varied))| {
        let (graph, path) = crate::testing::random(shape, costs, varied);
        let objectives = [
            DataflowObjective::Resources { peak: 1, communication: 0 },
            DataflowObjective::Storage,
            DataflowObjective::Latency,
        ];
        let latency_bound = slack.map(|slack| path + slack);
        DataflowProblem { graph, latency_bound, interval, objective: objectives[objective] }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_answer_is_legal_and_the_same_again(problem in problems()) {
        for baseline in Baseline::ALL {
            let answer = baseline.schedule(&problem);
            prop_assert_eq!(&answer, &baseline.schedule(&problem));
            match answer {
                Ok(steps) => {
                    let bound = crate::lower_bound(&problem).unwrap().value;
                    let verified = verify_dataflow(&problem, steps);
                    let verified = verified.map_err(|error| TestCaseError::fail(format!("{baseline}: {error}")))?;
                    prop_assert!(verified.objective >= bound, "{}: {} < {}", baseline, verified.objective, bound);
                }
                // The checker has to agree with the crate on legality; a disagreement is our own mistake.
                Err(error) => prop_assert!(!error.to_string().contains("dependences are broken"), "{}", error),
            }
        }
    }

    /// Without limits there is nothing in the way of any of them.
    #[test]
    fn without_limits_all_find_a_schedule(problem in problems()) {
        let mut resources = problem.graph.resources().to_vec();
        resources.iter_mut().for_each(|r| r.limit = None);
        let (operations, dependences) = (problem.graph.operations().to_vec(), problem.graph.dependences().to_vec());
        let problem = DataflowProblem { graph: Dataflow::new("g", operations, dependences, resources).unwrap(), ..problem };
        // List scheduling starts no reader before its producer.
        let early = problem.graph.dependences().iter().any(|d| d.delay < 0 && d.distance == 0);
        for baseline in Baseline::ALL.into_iter().filter(|&baseline| !(early && baseline == Baseline::List)) {
            match baseline.schedule(&problem) {
                Ok(_) | Err(BaselineError::Mobility(_) | BaselineError::Unfit { .. }) => {}
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }

    /// A loop with limits and no latency bound has a schedule at some interval, at the latest when iterations do not overlap.
    #[test]
    fn loops_find_an_interval(problem in problems()) {
        for baseline in [Baseline::IterativeModulo, Baseline::SdcModulo] {
            let found = baseline.smallest_interval(&problem.graph, None, 400, Control::default());
            let found = found.map_err(|error| TestCaseError::fail(format!("{baseline}: {error}")))?;
            prop_assert!(found.interval.unwrap() >= least_interval(&problem.graph).least());
        }
    }
}

/// Nonsense options are refused or obeyed, without a panic.
#[test]
fn extreme_bounds_and_intervals_are_survived() {
    let graph = "nodes=12,resources=1,recurrence=0,density=0.3,back-edges=4,latency=9,limit=1,seed=5"
        .parse::<Random>()
        .unwrap()
        .graph()
        .unwrap();
    let objectives = [
        DataflowObjective::Resources { peak: u64::MAX, communication: u64::MAX },
        DataflowObjective::Storage,
        DataflowObjective::Latency,
    ];
    for bound in [None, Some(0), Some(1 << 40), Some((1 << 50) - 1), Some(u64::MAX)] {
        for interval in [None, Some(0), Some(1), Some(300), Some(1 << 40), Some(u64::MAX)] {
            for objective in objectives {
                let problem = DataflowProblem { graph: graph.clone(), latency_bound: bound, interval, objective };
                let least = crate::lower_bound(&problem);
                for answer in Baseline::ALL.map(|baseline| baseline.schedule(&problem)) {
                    assert!(least.is_ok() || answer.is_err(), "{bound:?} {interval:?} {answer:?}");
                }
            }
        }
    }
}

#[test]
fn names_are_read_back() {
    for baseline in Baseline::ALL {
        assert_eq!(baseline.name().parse(), Ok(baseline));
    }
    let error = "fds".parse::<Baseline>().unwrap_err().to_string();
    assert_eq!(error, "no baseline is named `fds`; known: asap, alap, list, force-directed, spans, ims, sdc");
}

/// The differential equation of Paulin and Knight's paper: six multiplications, two additions, two subtractions, one
/// comparison, all of one step; in four steps two multipliers and one of each other are enough.
#[test]
fn the_example_of_force_directed_scheduling_is_solved() {
    let kinds = ["mul", "mul", "mul", "mul", "mul", "mul", "add", "add", "sub", "sub", "cmp"];
    let edges = [(0, 2), (1, 2), (2, 8), (8, 9), (3, 4), (4, 9), (5, 6), (7, 10)];
    let units = ["mul", "add", "sub", "cmp"];
    let operations = kinds.iter().enumerate().map(|(v, kind)| {
        let unit = units.iter().position(|u| u == kind).unwrap();
        twill_graph::DataflowOperation { uses: vec![crate::testing::uses(unit, 1)], ..crate::testing::operation(v) }
    });
    let dependences = edges.iter().map(|&(from, to)| crate::testing::after(from, to, 1)).collect();
    let graph = Dataflow::new("hal", operations.collect(), dependences, crate::testing::resources(4)).unwrap();
    let objective = DataflowObjective::Resources { peak: 1, communication: 0 };
    let problem = DataflowProblem { graph, latency_bound: Some(4), interval: None, objective };
    let peaks = |baseline: Baseline| {
        verify_dataflow(&problem, baseline.schedule(&problem).unwrap()).unwrap().into_inner().peaks
    };
    assert_eq!(peaks(Baseline::ForceDirected), [2, 1, 1, 1]);
    assert_eq!(peaks(Baseline::Asap)[0], 4);
    assert_eq!(crate::lower_bound(&problem).unwrap().value, 5);
}
