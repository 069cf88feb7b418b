//! The search as others call it: legal answers, proved optima on small graphs, the same on any number of threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;
use twill_gaus::{
    Control, Descent, GausError, MobilityError, Options, Polish, Precedence, StartFrom, at_least_interval, is_legal,
    schedule, smallest_interval,
};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, UnitId,
};

/// Numbers without rhyme, for graphs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

fn operation(index: usize, latency: u32, resource: usize, steps: u32) -> DataflowOperation {
    let held = ResourceUse { resource: UnitId::new(resource), offset: 0, steps, amount: 1 };
    DataflowOperation { name: format!("v{index}"), latency, uses: vec![held], storage: 1 }
}

fn edge(from: usize, to: usize, delay: i64, distance: u32) -> DataflowDependence {
    DataflowDependence { from: OpId::new(from), to: OpId::new(to), delay, distance, communication: 1 }
}

fn resources(limits: &[Option<u64>]) -> Vec<DataflowResource> {
    limits.iter().enumerate().map(|(r, &limit)| DataflowResource { name: format!("r{r}"), limit }).collect()
}

/// A random graph: multiplications take and hold two steps, the rest one.
fn graph(count: usize, seed: u64, limits: &[Option<u64>]) -> Dataflow {
    let mut dice = Dice(seed);
    let operations: Vec<_> =
        (0..count).map(|v| if dice.below(3) == 0 { operation(v, 2, 0, 2) } else { operation(v, 1, 1, 1) }).collect();
    let mut edges = Vec::new();
    for to in 1..count {
        for _ in 0..2 {
            let from = to - 1 - dice.below(to.min(40));
            edges.push(edge(from, to, i64::from(operations[from].latency), 0));
        }
    }
    Dataflow::new("random", operations, edges, resources(limits)).unwrap()
}

fn problem(graph: Dataflow, latency_bound: Option<u64>, objective: DataflowObjective) -> DataflowProblem {
    DataflowProblem { graph, latency_bound, interval: None, objective }
}

fn quick() -> Options {
    Options { rounds: 2, polish: Polish { sweeps: 20, ..Polish::default() }, ..Options::default() }
}

fn critical_path(graph: &Dataflow) -> u64 {
    twill_gaus::Mobility::new(&problem(graph.clone(), None, DataflowObjective::Latency)).unwrap().latency
}

fn assert_legal(problem: &DataflowProblem, steps: &[u64]) {
    assert!(is_legal(problem, &Precedence::new(&problem.graph, problem.interval), steps));
}

#[test]
fn large_graphs_come_out_far_below_their_start() {
    let graph = graph(1000, 1, &[None, None]);
    let bound = critical_path(&graph) * 3 / 2;
    let resources = DataflowObjective::Resources { peak: 1, communication: 0 };
    for (objective, part) in [(resources, 2), (DataflowObjective::Storage, 1)] {
        let problem = problem(graph.clone(), Some(bound), objective);
        let found = schedule(&problem, &quick(), Control::default(), &mut |_| {}).unwrap();
        assert_legal(&problem, &found.schedule.unwrap().steps);
        let (at_start, objective) = (found.at_start.unwrap(), found.objective.unwrap());
        assert!(objective * 10 < at_start * (10 - part), "{objective}, from {at_start}");
    }
}

#[test]
fn independent_operations_spread_to_the_bound() {
    // 60 operations, 12 steps, nothing between them: 5 at a time, and no fewer.
    let operations = (0..60).map(|v| operation(v, 1, 0, 1)).collect();
    let graph = Dataflow::new("flat", operations, Vec::new(), resources(&[None])).unwrap();
    let problem = problem(graph, Some(12), DataflowObjective::Resources { peak: 1, communication: 0 });
    for start in [StartFrom::Middle, StartFrom::Random, StartFrom::Given(vec![0; 60])] {
        let options = Options { start, ..quick() };
        let found = schedule(&problem, &options, Control::default(), &mut |_| {}).unwrap();
        assert_eq!(found.objective, Some(5), "{options:?}");
    }
}

#[test]
fn communication_is_traded_for_peaks_at_their_prices() {
    // A chain in the middle of room: far apart costs communication, and there is no peak to lower.
    let edges = (1..10).map(|v| edge(v - 1, v, 1, 0)).collect();
    let operations = (0..10).map(|v| operation(v, 1, 0, 1)).collect();
    let graph = Dataflow::new("chain", operations, edges, resources(&[None])).unwrap();
    let problem = problem(graph, Some(40), DataflowObjective::Resources { peak: 7, communication: 3 });
    let found = schedule(&problem, &quick(), Control::default(), &mut |_| {}).unwrap();
    assert_eq!(found.objective, Some(7 + 3 * 9));
}

#[test]
fn the_gradient_alone_lowers_both_objectives() {
    let graph = graph(600, 5, &[None, None]);
    let bound = critical_path(&graph) * 2;
    let options = Options { polish: Polish { sweeps: 0, ..Polish::default() }, rounds: 1, ..Options::default() };
    for objective in [DataflowObjective::Resources { peak: 1, communication: 1 }, DataflowObjective::Storage] {
        let problem = problem(graph.clone(), Some(bound), objective);
        let found = schedule(&problem, &options, Control::default(), &mut |_| {}).unwrap();
        assert_legal(&problem, &found.schedule.unwrap().steps);
        assert!(found.objective.unwrap() * 10 < found.at_start.unwrap() * 8, "{objective:?}: {:?}", found.objective);
        // Rounding levels by itself, too, but not as far.
        let none = Options { descent: None, ..options.clone() };
        let without = schedule(&problem, &none, Control::default(), &mut |_| {}).unwrap();
        assert!(found.objective < without.objective && without.objective <= without.at_start, "{objective:?}");
        assert_eq!(without.gradients, 0);
    }
}

#[test]
fn limits_are_kept_and_latency_shrinks_to_the_proved_optimum() {
    // 8 independent multiplications on 2 multipliers: 8 steps; then an addition.
    let mut operations: Vec<_> = (0..8).map(|v| operation(v, 2, 0, 2)).collect();
    operations.push(operation(8, 1, 1, 1));
    let edges = (0..8).map(|v| edge(v, 8, 2, 0)).collect();
    let graph = Dataflow::new("sum", operations, edges, resources(&[Some(2), Some(1)])).unwrap();
    let shortest = problem(graph.clone(), None, DataflowObjective::Latency);
    let found = schedule(&shortest, &quick(), Control::default(), &mut |_| {}).unwrap();
    assert_legal(&shortest, &found.schedule.unwrap().steps);
    assert_eq!(found.objective, Some(9));
    // With a bound below that there is none, and none is claimed.
    let impossible = problem(graph.clone(), Some(8), DataflowObjective::Storage);
    let found = schedule(&impossible, &quick(), Control::default(), &mut |_| {}).unwrap();
    assert_eq!((found.schedule, found.objective), (None, None));
    let error =
        schedule(&problem(graph, Some(2), DataflowObjective::Latency), &quick(), Control::default(), &mut |_| {});
    assert_eq!(error, Err(GausError::Mobility(MobilityError::Latency { bound: 2, least: 3 })));
}

#[test]
fn storage_is_minimised_within_limits_and_an_interval() {
    let operations = (0..24).map(|v| operation(v, 1, v % 2, 1)).collect();
    let mut edges: Vec<_> = (0..22).map(|v| edge(v, v + 2, 1, 0)).collect();
    edges.push(edge(23, 1, 1, 2));
    let graph = Dataflow::new("loop", operations, edges, resources(&[Some(2), Some(3)])).unwrap();
    let problem = DataflowProblem { interval: Some(7), ..problem(graph, Some(20), DataflowObjective::Storage) };
    let found = schedule(&problem, &quick(), Control::default(), &mut |_| {}).unwrap();
    assert_legal(&problem, &found.schedule.unwrap().steps);
    // The even operations: a chain of 12, values read one step later, 11 value-steps over 7 slots: 2 at least somewhere.
    // The odd ones as well; and of the last, 14 steps after the first started at the latest, as long as it takes to it.
    assert!((4..=8).contains(&found.objective.unwrap()), "{:?}", found.objective);
}

#[test]
fn the_smallest_interval_of_a_loop_is_found_with_the_least_latency() {
    // Three multiplications of 2 steps on one multiplier need 6; the recurrence 5 over distance 1.
    let operations = vec![
        operation(0, 2, 0, 2),
        operation(1, 2, 0, 2),
        operation(2, 2, 0, 2),
        operation(3, 1, 1, 1),
        operation(4, 1, 1, 1),
    ];
    let edges = vec![edge(0, 1, 2, 0), edge(1, 3, 2, 0), edge(3, 0, 1, 1), edge(2, 4, 2, 0), edge(3, 4, 1, 0)];
    let graph = Dataflow::new("loop", operations, edges, resources(&[Some(1), Some(1)])).unwrap();
    let found = smallest_interval(&graph, None, &quick(), Control::default(), &mut |_| {}).unwrap();
    let schedule = found.schedule.unwrap();
    assert_eq!((found.least_interval, schedule.interval), (6, Some(6)));
    let problem = DataflowProblem { interval: Some(6), ..problem(graph, None, DataflowObjective::Latency) };
    assert_legal(&problem, &schedule.steps);
    // The third multiplication comes after the two of the chain and before the addition: 2 + 2 + 2 + 1.
    assert_eq!(found.measure.unwrap().latency, 7);
}

#[test]
fn answers_are_the_same_on_any_number_of_threads_and_differ_by_seed() {
    let graph = graph(3000, 9, &[None, None]);
    let bound = critical_path(&graph) * 2;
    let problem = problem(graph, Some(bound), DataflowObjective::Storage);
    let on = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let descent = Descent { rounds: 2, steps: 5, ..Descent::default() };
        let polish = Polish { sweeps: 2, ..Polish::default() };
        let options = Options { seed, rounds: 1, descent: Some(descent), polish, ..Options::default() };
        pool.install(|| schedule(&problem, &options, Control::default(), &mut |_| {}).unwrap())
    };
    let one = on(1, 1);
    assert_eq!(one, on(3, 1));
    assert_ne!(one.schedule, on(1, 2).schedule);
}

#[test]
fn it_stops_when_told_and_answers_with_what_it_has() {
    let graph = graph(3000, 2, &[None, None]);
    let problem = problem(graph, None, DataflowObjective::Storage);
    let stop = AtomicBool::new(true);
    let mut improvements = Vec::new();
    let control = Control { interrupt: Some(&stop), ..Control::default() };
    let found = schedule(&problem, &Options::default(), control, &mut |p| improvements.push(p.objective)).unwrap();
    assert_eq!(found.gradients, 0);
    assert_legal(&problem, &found.schedule.unwrap().steps);
    assert_eq!(improvements, [found.at_start.unwrap()]);
    let control = Control { time: Some(Duration::from_millis(500)), ..Control::default() };
    let options = Options { polish: Polish { sweeps: u32::MAX, ..Polish::default() }, ..Options::default() };
    let started = std::time::Instant::now();
    let found = schedule(&problem, &options, control, &mut |_| {}).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10) && found.objective <= found.at_start);
}

#[test]
fn schedules_too_long_for_profiles_are_refused() {
    let graph = graph(10, 1, &[None, None]);
    let problem = problem(graph, Some(1 << 40), DataflowObjective::Storage);
    let error = schedule(&problem, &quick(), Control::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("over 2 resources are too long"), "{error}");
    let options = Options { start: StartFrom::Given(vec![0; 9]), ..quick() };
    let problem = DataflowProblem { latency_bound: None, ..problem };
    let error = schedule(&problem, &options, Control::default(), &mut |_| {});
    assert_eq!(error, Err(GausError::Start { given: 9, operations: 10 }));
}

/// As a kernel's loop: a tensor core that is busy all the time, in uses of 512 and 384 steps, and other units between them.
#[test]
fn a_unit_that_is_busy_all_the_time_has_no_gaps() {
    let uses = [512, 384, 512, 384, 512, 512];
    let mut operations: Vec<_> = (0..).zip(uses).map(|(v, steps)| operation(v, steps + 37, 0, steps)).collect();
    operations.extend((6..12).map(|v| operation(v, 290, 1, 261)));
    let mut edges = Vec::new();
    for (v, steps) in (0..).zip(uses) {
        edges.push(edge(v, v + 6, i64::from(steps) + 37, 0));
        // The next one, and the one after it; the last one's results come four iterations later.
        edges.extend((1..3).filter(|step| v + step < 6).map(|step| edge(v + 6, v + step, 290, 0)));
    }
    edges.push(edge(11, 0, 290, 4));
    let graph = Dataflow::new("busy", operations, edges, resources(&[Some(1), Some(1)])).unwrap();
    let alone =
        Options { descent: None, rounds: 0, polish: Polish { sweeps: 0, ..Polish::default() }, ..Options::default() };
    let found = smallest_interval(&graph, None, &alone, Control::default(), &mut |_| {}).unwrap();
    let interval = found.schedule.and_then(|schedule| schedule.interval);
    assert_eq!((found.least_interval, interval), (2816, Some(2816)));
    let at_once = at_least_interval(&graph, Control::default()).unwrap().unwrap();
    assert_eq!(at_once.interval, interval);
    let problem = DataflowProblem { interval, ..problem(graph, None, DataflowObjective::Latency) };
    assert_legal(&problem, &at_once.steps);
}
