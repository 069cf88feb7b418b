//! Bounds by multipliers and wavefronts: what they prove, and planted mistakes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod literal;

use twill_check::{MultiplierError, WavefrontError, verify_multipliers, verify_wavefront};
use twill_graph::proof::{Multipliers, StepPrice, Wavefront};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, UnitId,
};

fn price(index: u32, step: u32, price: u64) -> StepPrice {
    StepPrice { index, step, price }
}

fn problem(count: usize, edges: &[(usize, usize)], bound: u64, objective: DataflowObjective) -> DataflowProblem {
    let used = ResourceUse { resource: UnitId::new(0), offset: 0, steps: 1, amount: 1 };
    let operation = |v| DataflowOperation { name: format!("v{v}"), latency: 1, uses: vec![used], storage: 1 };
    let dependence = |&(from, to): &(usize, usize)| DataflowDependence {
        from: OpId::new(from),
        to: OpId::new(to),
        delay: 1,
        distance: 0,
        communication: 1,
    };
    let unit = DataflowResource { name: "unit".into(), limit: None };
    let operations = (0..count).map(operation).collect();
    let graph = Dataflow::new("g", operations, edges.iter().map(dependence).collect(), vec![unit]).unwrap();
    DataflowProblem { graph, latency_bound: Some(bound), interval: None, objective }
}

/// Two chains of two within three steps: each value lives for one of the first two steps at least.
fn chains() -> (DataflowProblem, Multipliers) {
    let problem = problem(4, &[(0, 1), (2, 3)], 3, DataflowObjective::Storage);
    let claim = Multipliers {
        least: 1,
        scale: 2,
        weights: vec![price(0, 0, 1), price(0, 1, 1)],
        dependences: vec![price(0, 1, 1), price(1, 1, 1)],
        reads: Vec::new(),
    };
    (problem, claim)
}

#[test]
fn a_mean_over_steps_with_priced_dependences_is_a_bound() {
    let (problem, claim) = chains();
    assert_eq!(verify_multipliers(&problem, &claim), Ok(1));
    // Without prices, each value may end before it begins.
    let free = Multipliers { least: i128::MIN, dependences: Vec::new(), ..claim };
    assert!(verify_multipliers(&problem, &free).unwrap() < 1);
}

#[test]
fn a_value_that_several_read_lives_until_the_last() {
    // One value, read at step 1 or 2 by both.
    let problem = problem(3, &[(0, 1), (0, 2)], 2, DataflowObjective::Storage);
    let claim = Multipliers { least: 1, scale: 1, weights: vec![price(0, 0, 1)], ..Multipliers::default() };
    assert_eq!(verify_multipliers(&problem, &claim), Ok(1), "windows say it all");
    let reads = vec![price(0, 0, 7)];
    assert_eq!(verify_multipliers(&problem, &Multipliers { reads, ..claim }), Ok(1), "prices may be of no use");
}

#[test]
fn peaks_and_communication_are_bounded_together() {
    let objective = DataflowObjective::Resources { peak: 3, communication: 1 };
    // Three operations in three steps, one after another.
    let problem = problem(3, &[(0, 1), (1, 2)], 3, objective);
    let weights = (0..3).map(|step| price(0, step, 1)).collect();
    let claim = Multipliers { least: 5, scale: 1, weights, ..Multipliers::default() };
    assert_eq!(verify_multipliers(&problem, &claim), Ok(5));
    let weights = (0..3).map(|step| price(0, step, 2)).collect();
    let heavy = verify_multipliers(&problem, &Multipliers { weights, ..claim });
    assert_eq!(heavy, Err(MultiplierError::Weights { sum: 6, most: 3 }));
}

#[test]
fn planted_mistakes_are_rejected() {
    let (problem, good) = chains();
    let rejected = |claim: Multipliers| verify_multipliers(&problem, &claim).unwrap_err();
    let claim = MultiplierError::Claim { claimed: 2, proved: 1 };
    assert_eq!(rejected(Multipliers { least: 2, ..good.clone() }), claim);
    // A scale that makes weights more than a mean.
    let weights = MultiplierError::Weights { sum: 2, most: 1 };
    assert_eq!(rejected(Multipliers { scale: 1, ..good.clone() }), weights);
    assert_eq!(rejected(Multipliers { scale: 0, ..good.clone() }), MultiplierError::TooLarge);
    let nothing = |what, index, step| MultiplierError::Nothing { what, index, step };
    let dependences = vec![price(2, 1, 1)];
    assert_eq!(rejected(Multipliers { dependences, ..good.clone() }), nothing("dependence", 2, 1));
    // A value that one operation reads has no end of its own.
    assert_eq!(rejected(Multipliers { reads: vec![price(0, 1, 1)], ..good.clone() }), nothing("read", 0, 1));
    assert_eq!(rejected(Multipliers { weights: vec![price(1, 0, 1)], ..good.clone() }), nothing("weight", 1, 0));
    assert_eq!(rejected(Multipliers { weights: vec![price(0, 99, 1)], ..good.clone() }), nothing("weight", 0, 99));
    // Prices whose sums might not be exact.
    let dear =
        |price_of: u64| Multipliers { least: i128::MIN, dependences: vec![price(0, 1, price_of)], ..good.clone() };
    assert_eq!(rejected(dear((1 << 62) + 1)), MultiplierError::TooLarge);
    assert!(verify_multipliers(&problem, &dear(1 << 62)).is_ok());
    // A missing price.
    let dependences = good.dependences[..1].to_vec();
    let weaker = rejected(Multipliers { least: 2, dependences, ..good.clone() });
    assert!(matches!(weaker, MultiplierError::Claim { .. }), "{weaker}");
    let elsewhere = DataflowProblem { interval: Some(2), ..problem.clone() };
    assert_eq!(verify_multipliers(&elsewhere, &good), Err(MultiplierError::Unsupported));
    let short = DataflowProblem { latency_bound: Some(1), ..problem.clone() };
    assert_eq!(verify_multipliers(&short, &good), Err(MultiplierError::Windows));
}

/// `0 → {1, 2} → 3 → 4`, and 1 and 2 read two more values, 5 and 6.
fn diamond() -> DataflowProblem {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (5, 1), (6, 2)];
    problem(7, &edges, 9, DataflowObjective::Storage)
}

#[test]
fn a_wavefront_is_what_is_live_when_an_operation_starts() {
    let problem = diamond();
    let at = |op| Wavefront { op: OpId::new(op), least: 1, dependences: Vec::new(), reads: Vec::new() };
    // When 3 starts, its value is all that must be there.
    assert_eq!(verify_wavefront(&problem, &at(3)), Ok(1));
    // When 1 starts, 2 may have: only the price of doing so keeps another value alive: of 0 or of 2.
    let free = Wavefront { least: i128::MIN, ..at(1) };
    assert_eq!(verify_wavefront(&problem, &free), Ok(1));
    let priced = Wavefront { least: 2, dependences: vec![(6, 1)], reads: vec![(1, 1)], ..at(1) };
    assert_eq!(verify_wavefront(&problem, &priced), Ok(2));
}

#[test]
fn planted_mistakes_in_wavefronts_are_rejected() {
    let problem = diamond();
    let good = Wavefront { op: OpId::new(1), least: 2, dependences: vec![(6, 1)], reads: vec![(1, 1)] };
    let rejected = |claim: Wavefront| verify_wavefront(&problem, &claim).unwrap_err();
    assert_eq!(rejected(Wavefront { least: 3, ..good.clone() }), WavefrontError::Claim { claimed: 3, proved: 2 });
    let dear = rejected(Wavefront { reads: vec![(1, 5)], ..good.clone() });
    assert!(matches!(dear, WavefrontError::Claim { claimed: 2, .. }), "{dear}");
    assert_eq!(rejected(Wavefront { op: OpId::new(7), ..good.clone() }), WavefrontError::Operation { index: 7 });
    let nothing = |what, index| WavefrontError::Nothing { what, index };
    // One operation reads the value of 1: it has no end of its own.
    assert_eq!(rejected(Wavefront { reads: vec![(2, 1)], ..good.clone() }), nothing("read", 2));
    assert_eq!(rejected(Wavefront { dependences: vec![(7, 1)], ..good.clone() }), nothing("dependence", 7));
    // What starts before its producer may price nothing.
    let mut dependences = problem.graph.dependences().to_vec();
    dependences[4].delay = -1;
    let graph = &problem.graph;
    let early = Dataflow::new("g", graph.operations().to_vec(), dependences, graph.resources().to_vec()).unwrap();
    let early = DataflowProblem { graph: early, ..problem.clone() };
    let priced = Wavefront { least: 0, dependences: vec![(4, 1)], ..good.clone() };
    assert_eq!(verify_wavefront(&early, &priced), Err(nothing("dependence", 4)));
    let latency = DataflowProblem { objective: DataflowObjective::Latency, ..problem.clone() };
    assert_eq!(verify_wavefront(&latency, &good), Err(WavefrontError::Unsupported));
}
