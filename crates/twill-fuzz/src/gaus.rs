//! Target: schedules of the engine for large graphs, and of the textbooks' schedulers, on small graphs.
//!
//! The checker, which shares no code with them, replays every schedule and measures it again. No schedule may be better
//! than the lower bound of its own problem.

use crate::tape::Tape;
use std::collections::HashSet;
use twill_check::verify_dataflow;
use twill_gaus::{
    Baseline, Control, Descent, Options, Polish, Side, StartFrom, least_interval, lower_bound, schedule,
    smallest_interval,
};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, StartSteps, UnitId,
};

/// Schedules what the bytes make of a graph.
///
/// # Panics
/// When a schedule is not legal, is not what it says of itself, or is better than the bound.
pub fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let Some(graph) = graph(&mut tape) else { return };
    let options = options(&mut tape, graph.operations().len());
    let objective = match tape.below(3) {
        0 => DataflowObjective::Storage,
        1 => DataflowObjective::Latency,
        _ => DataflowObjective::Resources { peak: tape.below(4), communication: tape.below(3) },
    };
    let latency_bound = tape.one_in(2).then(|| tape.below(40));
    let interval = tape.one_in(2).then(|| tape.below(10));
    let problem = DataflowProblem { graph, latency_bound, interval, objective };
    let bound = lower_bound(&problem);
    let legal = |steps: StartSteps, said: Option<i128>| match verify_dataflow(&problem, steps.clone()) {
        Ok(measured) => {
            assert!(said.is_none_or(|said| said == measured.objective), "{said:?}, {measured:?}: {problem:#?}");
            let least = bound.as_ref().map_or(i128::MAX, |bound| bound.value);
            assert!(least <= measured.objective, "{bound:?}, {measured:?}: {problem:#?}");
        }
        Err(rejected) => assert!(rejected.violations.is_empty(), "{rejected}: {steps:?} of {problem:#?}"),
    };
    // An interval of 0 is no question.
    if interval != Some(0)
        && let Ok(found) = schedule(&problem, &options, Control::default(), &mut |_| {})
    {
        assert_eq!(found.schedule.is_some(), found.objective.is_some());
        found.schedule.into_iter().for_each(|steps| legal(steps, found.objective));
        for baseline in [Baseline::List, Baseline::IterativeModulo, Baseline::SdcModulo] {
            baseline.schedule(&problem).into_iter().for_each(|steps| legal(steps, None));
        }
    }
    cyclic(&problem.graph, latency_bound, &options);
}

/// The smallest interval that is found for a loop.
fn cyclic(graph: &Dataflow, latency_bound: Option<u64>, options: &Options) {
    let Ok(found) = smallest_interval(graph, latency_bound, options, Control::default(), &mut |_| {}) else { return };
    let Some(steps) = found.schedule else { return };
    let objective = DataflowObjective::Latency;
    let problem = DataflowProblem { graph: graph.clone(), latency_bound, interval: steps.interval, objective };
    assert!(steps.interval >= Some(least_interval(graph).least()), "{steps:?} of {problem:#?}");
    match verify_dataflow(&problem, steps.clone()) {
        Ok(measured) => {
            let least = found.least_latency.map_or(0, i128::from);
            assert!(least <= measured.latency, "{least}, {measured:?}: {problem:#?}");
        }
        Err(rejected) => assert!(rejected.violations.is_empty(), "{rejected}: {steps:?} of {problem:#?}"),
    }
}

fn graph(tape: &mut Tape) -> Option<Dataflow> {
    let (count, kinds) = (1 + tape.index(10), tape.index(3));
    let resources: Vec<DataflowResource> = (0..kinds)
        .map(|r| DataflowResource { name: format!("r{r}"), limit: (!tape.one_in(3)).then(|| 1 + tape.below(3)) })
        .collect();
    let operations: Vec<DataflowOperation> = (0..count).map(|v| operation(tape, v, &resources)).collect();
    let mut dependences = Vec::new();
    let mut seen = HashSet::new();
    for _ in 0..tape.index(2 * count + 1) {
        let (a, b) = (tape.index(count), tape.index(count));
        let back = a == b || tape.one_in(5);
        let (from, to) = if back { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
        let distance = if back { 1 + tape.below(3) as u32 } else { 0 };
        let latency = i64::from(operations[from].latency);
        let delay = if tape.one_in(4) { tape.between(-2, 6) } else { latency };
        if seen.insert((from, to, distance)) {
            let communication = tape.below(3);
            let (from, to) = (OpId::new(from), OpId::new(to));
            dependences.push(DataflowDependence { from, to, delay, distance, communication });
        }
    }
    Dataflow::new("random", operations, dependences, resources).ok()
}

fn operation(tape: &mut Tape, index: usize, resources: &[DataflowResource]) -> DataflowOperation {
    let count = if resources.is_empty() { 0 } else { [1, 1, 0, 2][tape.index(4)] };
    let uses = (0..count).map(|_| {
        let resource = tape.index(resources.len());
        let most = resources[resource].limit.unwrap_or(3).min(3);
        ResourceUse {
            resource: UnitId::new(resource),
            offset: if tape.one_in(4) { tape.below(3) as u32 } else { 0 },
            steps: [1, 1, 2, 3][tape.index(4)],
            amount: 1 + tape.below(most),
        }
    });
    let uses = uses.collect();
    DataflowOperation { name: format!("v{index}"), latency: tape.below(5) as u32, uses, storage: tape.below(4) }
}

fn options(tape: &mut Tape, operations: usize) -> Options {
    Options {
        seed: tape.below(256),
        start: match tape.below(3) {
            0 => StartFrom::Middle,
            1 => StartFrom::Random,
            _ => StartFrom::Given((0..operations).map(|_| tape.below(30)).collect()),
        },
        rounds: tape.below(3) as u32,
        descent: tape.one_in(2).then(|| Descent { rounds: 2, steps: 4, ..Descent::default() }),
        side: [Side::Earlier, Side::Middle, Side::Later][tape.index(3)],
        ejections: 1 + tape.below(6) as u32,
        tries: 1 + tape.below(3) as u32,
        patience: tape.below(2) as u32,
        // Moves are counted in thousands.
        polish: Polish { sweeps: tape.below(2) as u32, jumps: 50, ..Polish::default() },
        ..Options::default()
    }
}
