//! Random loops with random schedules that meet the dependences: the programs must be right
//! whatever is asynchronous, wherever values live, however far dependences reach. Resources and
//! issue slots are left out of account, as the programs do not rely on them.

use super::{exercise, random};
use crate::passes::steps::fixtures::{complete, hopper, problem_of};
use serde_json::{Value, json};
use twill_graph::format::GraphFile;
use twill_graph::{Problem, Schedule};

/// A loop, and the group of each operation.
fn random_graph(choose: &mut impl FnMut(usize) -> usize) -> (Value, Vec<usize>) {
    let count = 2 + choose(6);
    let mut operations = Vec::new();
    let mut groups = Vec::new();
    let mut storages = Vec::new();
    for k in 0..count {
        let streaming = choose(4) == 0;
        let asynchronous = streaming || choose(2) == 0;
        let storage = if streaming { 1 } else { choose(4) };
        let cycles = choose(6);
        let mut operation = json!({
            "name": format!("v{k}"),
            "units": [],
            "cycles": cycles,
            "latency": (cycles + choose(8)).saturating_sub(2),
            "execution": if asynchronous { "asynchronous" } else { "synchronous" },
            "issue_width": if choose(2) == 0 { 1 } else { 4 },
            "variable_latency": streaming || choose(5) == 0,
            "streaming": streaming,
            "handoff": choose(4),
            "transfer_latency": choose(40)
        });
        match storage {
            1 => operation["result"] = json!({"shared_memory": 64}),
            2 => operation["result"] = json!({"registers": 64}),
            3 => operation["result"] = json!({"tensor_memory": 64}),
            _ => {}
        }
        operations.push(operation);
        groups.push(choose(4));
        storages.push((storage, streaming));
    }
    let mut dependences: Vec<Value> = Vec::new();
    let mut tied_from = vec![false; count];
    for from in 0..count {
        for to in 0..count {
            let distance = if to > from { [0, 0, 0, 1, 2, 5][choose(6)] } else { [1, 1, 2, 4][choose(4)] };
            let cross = groups[from] != groups[to];
            let value = storages[from].0 != 0 && !storages[to].1 && choose(4) > 0;
            let carried = value && distance > 0 && storages[from].0 == 2 && cross;
            let order_of_streams = !value && (storages[from].1 || storages[to].1);
            if choose(5) < 3 || carried || order_of_streams || (from == to && storages[from].1) {
                continue;
            }
            let mut d =
                json!({"from": format!("v{from}"), "to": format!("v{to}"), "distance": distance, "value": value});
            if choose(6) == 0 && !cross && !value {
                d["blocking"] = json!(false);
            }
            dependences.push(d);
        }
    }
    // A value with one reader may be continued by it.
    for k in 0..dependences.len() {
        let (from, to) = (dependences[k]["from"].clone(), dependences[k]["to"].clone());
        let readers = dependences.iter().filter(|d| d["from"] == from).count();
        let index = |name: &Value| name.as_str().unwrap()[1..].parse::<usize>().unwrap();
        let same = storages[index(&from)] == storages[index(&to)] && !storages[index(&from)].1;
        if readers == 1 && same && dependences[k]["value"] == json!(true) && choose(2) == 0 && !tied_from[index(&to)] {
            dependences[k]["tied"] = json!(true);
            tied_from[index(&to)] = true;
        }
    }
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "random", "operations": operations, "dependences": dependences
    });
    (graph, groups)
}

/// Early times with some slack, and an interval long enough for what is carried round the loop.
fn random_schedule(problem: &Problem, groups: &[usize], choose: &mut impl FnMut(usize) -> usize) -> Schedule {
    let graph = problem.graph();
    let delay = |d: &twill_graph::Dependence| {
        let crosses = groups[d.from.index()] != groups[d.to.index()];
        let registers = matches!(graph.operation(d.from).storage, twill_graph::Storage::Registers(_));
        d.delay.0 + if crosses && d.carries_value && registers { graph.operation(d.from).handoff.0 } else { 0 }
    };
    let mut times = vec![0_i64; groups.len()];
    for v in 0..groups.len() {
        let ready = graph.dependences().iter().filter(|d| d.to.index() == v && d.distance == 0);
        let ready = ready.map(|d| times[d.from.index()] + delay(d)).max().unwrap_or(0);
        times[v] = ready + if choose(3) == 0 { choose(12) as i64 } else { 0 };
    }
    let carried = graph.dependences().iter().filter(|d| d.distance > 0);
    let needed = carried.map(|d| {
        let lack = times[d.from.index()] + delay(d) - times[d.to.index()];
        twill_graph::Cycles(lack).div_ceil(twill_graph::Cycles(i64::from(d.distance)))
    });
    let interval = needed.max().unwrap_or(0).max(1) + if choose(2) == 0 { choose(10) as i64 } else { 0 };
    complete(problem, interval, &times, groups)
}

#[test]
fn random_loops() {
    let mut resources = hopper();
    resources.variable_latency_group = None;
    resources.compute_groups.maximum = 4;
    resources.tensor_memory = twill_graph::Columns(1 << 20);
    for seed in 0..400 {
        let mut choose = random(seed);
        let (graph, groups) = random_graph(&mut choose);
        let file = GraphFile::from_json(&graph.to_string(), "random").unwrap();
        let Ok(graph) = file.graph() else { continue };
        let problem = problem_of(graph, resources.clone());
        let schedule = random_schedule(&problem, &groups, &mut choose);
        let guard = std::panic::catch_unwind(|| exercise(&problem, &schedule, 3));
        assert!(guard.is_ok(), "seed {seed}: {}\n{schedule:?}", file.to_json());
    }
}
