//! A group that loads indices long before what they address, with fewer iterations than stages.

use crate::passes::steps::fixtures::{complete, hopper, parse};
use crate::passes::steps::program::{GroupSteps, LoopProgram, Step};
use crate::passes::steps::replay::flatten;
use crate::passes::steps::scheduled_graph::ReorderingOptions;
use serde_json::{Value, json};

/// The program, with so many stages before the last, of a group that loads indices and, `distance` iterations later, the rows that
/// they name.
fn loads(stages: i64, distance: u32) -> GroupSteps {
    let load = |name: &str, streaming: bool, transfer_latency: i64| -> Value {
        json!({"name": name, "units": [{"unit": "tma", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
               "result": {"shared_memory": 64}, "variable_latency": true, "streaming": streaming,
               "transfer_latency": transfer_latency, "latency": 8})
    };
    let ahead = stages - 1;
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "gather",
        "operations": [
            load("indices", true, 8 * (ahead + i64::from(distance))), load("rows", false, 8),
            {"name": "sum", "units": [{"unit": "fma", "cycles": 4}]}
        ],
        "dependences": [{"from": "indices", "to": "rows", "distance": distance}, {"from": "rows", "to": "sum"}]
    });
    let problem = parse(&graph, hopper());
    let schedule = complete(&problem, 8, &[0, 8 * ahead, 8 * ahead + 8], &[0, 0, 1]);
    let reordering =
        ReorderingOptions { mma_batches: false, ring_depth: 1, shared_barriers: false, shorter_pipelines: true };
    let program = LoopProgram::for_code(&problem, &schedule, reordering);
    program.warps.into_iter().find(|warp| warp.group.index() == 0).unwrap()
}

/// Stages before the last, of its pipeline and the shorter ones.
fn pipelines(program: &GroupSteps) -> Vec<u32> {
    let shorter = program.shorter.iter().flat_map(|shorter| pipelines(shorter));
    std::iter::once(program.first).chain(shorter).collect()
}

/// Operations by number, with their iterations, in the order of their issue.
fn issued(program: &GroupSteps, trips: i64) -> Vec<(usize, i64)> {
    let issue = |(step, i): (Step, i64)| match step {
        Step::Issue { op, iteration, .. } => Some((op.index(), iteration.number(i, trips))),
        _ => None,
    };
    flatten(program, trips).into_iter().filter_map(issue).collect()
}

#[test]
fn they_are_done_in_pipelines_of_half_the_stages() {
    assert_eq!(pipelines(&loads(5, 0)), [5], "code for each trip count is short");
    assert_eq!(pipelines(&loads(19, 0)), [19, 9, 4]);
    for trips in 0..40 {
        let all = issued(&loads(19, 0), trips);
        let mut sorted = all.clone();
        sorted.sort_unstable();
        let expected: Vec<(usize, i64)> = (0..2).flat_map(|op| (0..trips).map(move |i| (op, i))).collect();
        assert_eq!(sorted, expected, "{trips} trips: each operation once in each iteration");
        let at = |op: usize, i: i64| all.iter().position(|one| *one == (op, i)).unwrap();
        for i in 0..trips {
            assert!(at(0, i) < at(1, i), "{trips} trips: indices before their rows");
            // Half of what there is at least, if there is enough.
            let ahead = all[..at(1, i)].iter().filter(|(op, _)| *op == 0).count() as i64 - i;
            assert!(ahead >= (trips / 2).min(9).min(trips - i), "{trips} trips: {ahead} ahead of {i}");
        }
    }
}

#[test]
fn their_code_is_as_long_as_that_for_many() {
    for stages in [10, 20, 40, 80, 160] {
        let steps = |program: &GroupSteps| -> usize {
            let blocks = program.prologue.iter().chain(&program.epilogue);
            program.steady.len() + blocks.map(|block| block.steps.len()).sum::<usize>()
        };
        let program = loads(stages, 0);
        let (mut few, mut last) = (0, &program);
        while let Some(shorter) = &last.shorter {
            (few, last) = (few + steps(shorter), shorter);
        }
        few += (1..last.first).map(|trips| flatten(last, trips.into()).len()).sum::<usize>();
        assert!(few <= 2 * steps(&program), "{stages} stages: {few} and {} steps", steps(&program));
    }
}

#[test]
fn what_waits_for_a_later_iteration_has_code_for_each_trip_count() {
    // A slot of indices is free when the next iteration has read it.
    let program = loads(19, 1);
    assert!(program.first > 15 && program.shorter.is_none(), "{:?}", pipelines(&program));
}
