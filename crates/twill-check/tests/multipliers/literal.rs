//! The bounds of random prices, and what follows from them word by word: each step, each operation, each choice.

use twill_check::{MultiplierError, verify_multipliers, verify_wavefront};
use twill_graph::proof::{Multipliers, StepPrice, Wavefront};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, SplitMix64, UnitId,
};

/// A graph of 2 to 5 operations, whose dependences go to later ones, some twice, some early, some of the iteration before.
fn graph(random: &mut SplitMix64) -> Dataflow {
    let count = 2 + random.below(4) as usize;
    let operation = |v: usize, random: &mut SplitMix64| DataflowOperation {
        name: format!("v{v}"),
        latency: 1 + random.below(2) as u32,
        uses: (0..random.below(3))
            .map(|_| ResourceUse {
                resource: UnitId::new(random.below(2) as usize),
                offset: random.below(3) as u32,
                steps: 1 + random.below(2) as u32,
                amount: 1 + random.below(3),
            })
            .collect(),
        storage: random.below(4),
    };
    let operations: Vec<_> = (0..count).map(|v| operation(v, random)).collect();
    let dependences = (0..random.below(8)).map(|_| {
        let to = 1 + random.below(count as u64 - 1) as usize;
        DataflowDependence {
            from: OpId::new(random.below(to as u64) as usize),
            to: OpId::new(to),
            delay: random.below(4) as i64 - 1,
            distance: u32::from(random.below(8) == 0),
            communication: random.below(3),
        }
    });
    let dependences = dependences.collect();
    let unit = |name: &str| DataflowResource { name: name.into(), limit: None };
    Dataflow::new("g", operations, dependences, vec![unit("a"), unit("b")]).unwrap()
}

/// First and last start of each operation, by as many rounds as there are dependences; none where there is no schedule.
fn windows(graph: &Dataflow, bound: i64) -> Option<Vec<(i64, i64)>> {
    let mut windows: Vec<_> = graph.operations().iter().map(|op| (0, bound - i64::from(op.latency))).collect();
    for d in graph.dependences().iter().flat_map(|_| graph.dependences()).filter(|d| d.distance == 0) {
        let (from, to) = (d.from.index(), d.to.index());
        windows[to].0 = windows[to].0.max(windows[from].0 + d.delay);
        windows[from].1 = windows[from].1.min(windows[to].1 - d.delay);
    }
    windows.iter().all(|(first, last)| first <= last).then_some(windows)
}

/// By operation, those that read its value, each once.
fn readers(graph: &Dataflow, v: usize) -> Vec<usize> {
    let read = graph.dependences().iter().filter(|d| d.distance == 0 && d.from.index() == v);
    let mut readers: Vec<usize> = read.map(|d| d.to.index()).collect();
    readers.sort_unstable();
    readers.dedup();
    readers
}

/// By operation, the row of its value's last read: that of its only reader, or one behind all others.
fn ends(graph: &Dataflow) -> Vec<Option<usize>> {
    let mut rows = graph.operations().len();
    let end = |v| match readers(graph, v).as_slice() {
        [] => None,
        [one] => Some(*one),
        _ => {
            rows += 1;
            Some(rows - 1)
        }
    };
    (0..graph.operations().len()).map(end).collect()
}

fn multipliers(problem: &DataflowProblem, claim: &Multipliers, windows: &[(i64, i64)]) -> i128 {
    let graph = &problem.graph;
    let until = |track: usize, step: i64| -> i128 {
        let before = claim.weights.iter().filter(|w| w.index as usize == track && i64::from(w.step) < step);
        before.map(|w| i128::from(w.price)).sum()
    };
    let is_stored = problem.objective == DataflowObjective::Storage;
    let ends = if is_stored { ends(graph) } else { vec![None; graph.operations().len()] };
    let count = graph.operations().len();
    let rows = ends.iter().flatten().copied().max().unwrap_or(0).max(count - 1) + 1;
    let cost = |row: usize, at: i64| -> i128 {
        let mut cost = 0;
        for (v, op) in graph.operations().iter().enumerate() {
            let is = |r: usize| i128::from(r == row);
            if let Some(end) = ends[v] {
                cost += i128::from(op.storage) * until(0, at) * (is(end) - is(v));
            }
            if let (DataflowObjective::Resources { .. }, true) = (problem.objective, v == row) {
                for used in &op.uses {
                    let from = at + i64::from(used.offset);
                    let (track, steps) = (used.resource.index(), i64::from(used.steps));
                    cost += i128::from(used.amount) * (until(track, from + steps) - until(track, from));
                }
            }
        }
        for d in graph.dependences().iter().filter(|d| d.distance == 0) {
            if let DataflowObjective::Resources { communication, .. } = problem.objective {
                let each = i128::from(claim.scale) * i128::from(communication) * i128::from(d.communication);
                let ends = i128::from(d.to.index() == row) - i128::from(d.from.index() == row);
                cost += each * i128::from(at) * ends;
            }
        }
        let started = |r: usize, step: i64| i128::from(r == row && at <= step);
        for price in &claim.dependences {
            let d = graph.dependences()[price.index as usize];
            let step = i64::from(price.step);
            cost += i128::from(price.price) * (started(d.to.index(), step) - started(d.from.index(), step - d.delay));
        }
        for price in &claim.reads {
            let d = graph.dependences()[price.index as usize];
            let step = i64::from(price.step);
            let end = ends[d.from.index()].unwrap();
            cost += i128::from(price.price) * (started(end, step) - started(d.to.index(), step));
        }
        cost
    };
    let window = |row: usize| {
        windows.get(row).copied().unwrap_or_else(|| {
            let v = ends.iter().position(|end| *end == Some(row)).unwrap();
            let read = readers(graph, v);
            let latest = |of: fn(&(i64, i64)) -> i64| read.iter().map(|w| of(&windows[*w])).max().unwrap();
            (latest(|w| w.0), latest(|w| w.1))
        })
    };
    let least = |row| (window(row).0..=window(row).1).map(|at| cost(row, at)).min().unwrap();
    let total: i128 = (0..rows).map(least).sum();
    let scale = i128::from(claim.scale);
    total.div_euclid(scale) + i128::from(total.rem_euclid(scale) != 0)
}

/// Prices of random dependences of this iteration for which there is what is priced.
fn prices(random: &mut SplitMix64, graph: &Dataflow, bound: u64, is_priced: impl Fn(usize) -> bool) -> Vec<StepPrice> {
    let all = graph.dependences().iter().enumerate();
    let known: Vec<usize> = all.filter(|(k, d)| d.distance == 0 && is_priced(*k)).map(|(k, _)| k).collect();
    let count = if known.is_empty() { 0 } else { random.below(4) };
    let one = |_| StepPrice {
        index: known[random.below(known.len() as u64) as usize] as u32,
        step: random.below(bound) as u32,
        price: random.below(5),
    };
    (0..count).map(one).collect()
}

#[test]
fn multipliers_prove_what_they_prove_word_by_word() {
    let (mut proved, mut impossible) = (0, 0);
    for seed in 0..4000 {
        let mut random = SplitMix64::new(seed);
        let (graph, bound) = (graph(&mut random), 3 + random.below(5));
        let (count, scale) = (graph.operations().len(), 1 + random.below(4));
        let objective = match random.below(2) {
            0 => DataflowObjective::Storage,
            _ => DataflowObjective::Resources { peak: 20, communication: random.below(3) },
        };
        let (tracks, is_stored) = match objective {
            DataflowObjective::Storage => (1, true),
            _ => (2, false),
        };
        let several = ends(&graph);
        let has_end = |k: usize| several[graph.dependences()[k].from.index()].is_some_and(|end| end >= count);
        let dependences = prices(&mut random, &graph, bound, |_| true);
        let reads = if is_stored { prices(&mut random, &graph, bound, has_end) } else { Vec::new() };
        // No more than a mean over steps.
        let weights = (0..if is_stored { scale } else { 5 }).map(|_| StepPrice {
            index: random.below(tracks) as u32,
            step: random.below(bound) as u32,
            price: 1,
        });
        let weights = weights.collect();
        let claim = Multipliers { least: i128::MIN, scale, weights, dependences, reads };
        let windows = windows(&graph, bound as i64);
        let problem = DataflowProblem { graph, latency_bound: Some(bound), interval: None, objective };
        let found = verify_multipliers(&problem, &claim);
        match windows {
            None => {
                assert_eq!(found, Err(MultiplierError::Windows), "seed {seed}");
                impossible += 1;
            }
            Some(windows) => {
                assert_eq!(found, Ok(multipliers(&problem, &claim, &windows)), "seed {seed}");
                proved += 1;
            }
        }
    }
    assert!(proved > 1000 && impossible > 100, "{proved}, {impossible}");
}

/// By operation, whether it has started when `op` starts, where dependences alone say so.
fn certain(graph: &Dataflow, op: usize) -> Vec<Option<bool>> {
    let counted: Vec<_> = graph.dependences().iter().filter(|d| d.distance == 0 && d.delay >= 0).collect();
    let count = graph.operations().len();
    // Longest paths to and from `op`.
    let (mut to, mut from) = (vec![None; count], vec![None; count]);
    (to[op], from[op]) = (Some(0), Some(0));
    for d in counted.iter().flat_map(|_| &counted) {
        let (a, b) = (d.from.index(), d.to.index());
        to[a] = to[a].max(to[b].map(|length| length + d.delay));
        from[b] = from[b].max(from[a].map(|length| length + d.delay));
    }
    let state = |v: usize| match (to[v], from[v]) {
        (_, Some(1..)) => Some(false),
        (Some(_), _) => Some(true),
        _ => None,
    };
    (0..count).map(state).collect()
}

fn wavefront(problem: &DataflowProblem, claim: &Wavefront) -> i128 {
    let graph = &problem.graph;
    let count = graph.operations().len();
    let ends = ends(graph);
    let rows = ends.iter().flatten().copied().max().unwrap_or(0).max(count - 1) + 1;
    let mut states = certain(graph, claim.op.index());
    states.resize(rows, None);
    for (v, end) in ends.iter().enumerate() {
        // Not all have read it where one surely has not.
        if let Some(end) = end.filter(|end| *end >= count)
            && readers(graph, v).iter().any(|w| states[*w] == Some(false))
        {
            states[end] = Some(false);
        }
    }
    let is_early = |v: usize| graph.dependences().iter().any(|d| d.distance == 0 && d.from.index() == v && d.delay < 0);
    let total = |choice: u32| -> Option<i128> {
        let x = |row: usize| i128::from(choice >> row & 1);
        let agrees = states.iter().enumerate().all(|(row, state)| state.is_none_or(|s| i128::from(s) == x(row)));
        let stored = graph.operations().iter().enumerate().filter(|(v, _)| !is_early(*v));
        let stored = stored.filter_map(|(v, op)| Some(i128::from(op.storage) * (x(v) - x(ends[v]?))));
        let dependences = claim.dependences.iter().map(|&(index, price)| {
            let d = graph.dependences()[index as usize];
            i128::from(price) * (x(d.to.index()) - x(d.from.index()))
        });
        let reads = claim.reads.iter().map(|&(index, price)| {
            let d = graph.dependences()[index as usize];
            i128::from(price) * (x(ends[d.from.index()].unwrap()) - x(d.to.index()))
        });
        agrees.then(|| stored.chain(dependences).chain(reads).sum())
    };
    (0..1 << rows).filter_map(total).min().unwrap()
}

#[test]
fn wavefronts_prove_what_they_prove_word_by_word() {
    let mut positive = 0;
    for seed in 0..4000 {
        let mut random = SplitMix64::new(seed);
        let graph = graph(&mut random);
        let count = graph.operations().len();
        let several = ends(&graph);
        let has_end = |k: usize| several[graph.dependences()[k].from.index()].is_some_and(|end| end >= count);
        let is_late = |k: usize| graph.dependences()[k].delay >= 0;
        let mut priced = |is: &dyn Fn(usize) -> bool| -> Vec<(u32, u64)> {
            prices(&mut random, &graph, 1, is).into_iter().map(|one| (one.index, one.price)).collect()
        };
        let (dependences, reads) = (priced(&is_late), priced(&has_end));
        let op = OpId::new(random.below(count as u64) as usize);
        let claim = Wavefront { op, least: i128::MIN, dependences, reads };
        let problem =
            DataflowProblem { graph, latency_bound: None, interval: None, objective: DataflowObjective::Storage };
        let expected = wavefront(&problem, &claim);
        assert_eq!(verify_wavefront(&problem, &claim), Ok(expected), "seed {seed}");
        positive += usize::from(expected > 0);
    }
    assert!(positive > 200, "{positive}");
}
