use crate::passes::steps::fixtures::{blackwell_forward, builtin_on, complete, hopper, hopper_forward, parse, toy};
use crate::passes::steps::program::{BufferKind, LoopProgram, Step};
use crate::passes::steps::pseudocode::pseudocode;
use crate::passes::steps::replay::{flatten, run};
use insta::assert_snapshot;
use serde_json::json;
use twill_check::{Verified, verify};
use twill_graph::{Problem, Schedule};

mod few_iterations;
mod random_loops;

/// A small generator of pseudo-random numbers (splitmix64).
fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }
}

/// Runs a program for small and for larger trip counts in several interleavings.
pub(crate) fn exercise(problem: &Problem, schedule: &Schedule, seeds: u64) {
    let program = LoopProgram::from_claim(problem, schedule);
    let stages = i64::from(program.warps.iter().map(|w| w.first).max().unwrap());
    for trip_count in (0..=stages + 4).chain([stages + 13]) {
        let mut turn = 0;
        run(problem, schedule, &program, trip_count, |n| {
            turn += 1;
            turn % n
        });
        // As far as possible, always the first or always the last.
        run(problem, schedule, &program, trip_count, |_| 0);
        run(problem, schedule, &program, trip_count, |n| n - 1);
        for seed in 0..seeds {
            run(problem, schedule, &program, trip_count, random(seed));
        }
    }
}

fn verified(problem: &Problem, schedule: Schedule) -> Verified<Schedule> {
    verify(problem, schedule).unwrap()
}

/// What the schedule says of rings and channels is what the program allocates.
fn depths_agree(problem: &Problem, schedule: &Schedule) {
    let program = LoopProgram::from_claim(problem, schedule);
    for ring in &schedule.rings {
        let mut rings = program.buffers.iter().filter(|b| matches!(b.kind, BufferKind::Ring(_)));
        let buffer = rings.find(|b| b.values[0].op == ring.load).unwrap();
        assert_eq!(buffer.depth, ring.depth);
    }
    for channel in &schedule.channels {
        let buffer = program.buffers.iter().find(|b| b.values.iter().any(|v| v.op == channel.value)).unwrap();
        assert_eq!(buffer.depth, channel.depth);
    }
}

fn check(problem: &Problem, schedule: Schedule) -> String {
    let schedule = verified(problem, schedule);
    exercise(problem, &schedule, 40);
    depths_agree(problem, &schedule);
    pseudocode(problem, &schedule, usize::MAX)
}

#[test]
fn toy_attention() {
    let problem = toy("toy-attention");
    assert_snapshot!(check(&problem, complete(&problem, 2, &[0, 2, 3], &[0, 0, 0])));
}

#[test]
fn blocking_gemms_on_two_groups() {
    let problem = toy("toy-attention-blocking");
    assert_snapshot!(check(&problem, complete(&problem, 2, &[0, 1, 3], &[1, 0, 1])));
}

#[test]
fn gemm() {
    let problem = builtin_on("gemm", hopper());
    let mut schedule = complete(&problem, 512, &[0, 128, 256], &[0, 0, 1]);
    schedule.groups[1].registers_per_thread = 168;
    assert_snapshot!(check(&problem, schedule));
}

#[test]
fn attention_forward_on_hopper() {
    let (problem, schedule) = hopper_forward();
    assert_snapshot!(check(&problem, schedule));
}

#[test]
fn attention_forward_on_blackwell() {
    let (problem, schedule) = blackwell_forward();
    assert_snapshot!(check(&problem, schedule));
}

/// Orders between groups, values in shared memory that stay in a group or leave it, a store
/// through a handoff, a value of two iterations before.
fn mixture() -> Problem {
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "mixture",
        "operations": [
            {"name": "load", "units": [{"unit": "tma", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
             "result": {"shared_memory": 64}, "variable_latency": true, "streaming": true, "transfer_latency": 30},
            {"name": "a", "units": [{"unit": "fma", "cycles": 4}], "result": {"shared_memory": 128}},
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 6}], "execution": "asynchronous", "result": {"registers": 256}, "handoff": 2},
            {"name": "b", "units": [{"unit": "alu", "cycles": 3}], "result": {"registers": 128}, "handoff": 3},
            {"name": "store", "units": [{"unit": "tma", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
             "variable_latency": true, "latency": 9},
            {"name": "last", "units": [{"unit": "fma", "cycles": 2}]}
        ],
        "dependences": [
            {"from": "load", "to": "a"},
            {"from": "a", "to": "dot"},
            {"from": "a", "to": "b", "distance": 2},
            {"from": "dot", "to": "b"},
            {"from": "b", "to": "store"},
            {"from": "store", "to": "last"},
            {"from": "last", "to": "a", "distance": 3},
            {"from": "dot", "to": "last", "distance": 1, "value": false, "delay": 0, "blocking": false}
        ]
    });
    parse(&graph, hopper())
}

#[test]
fn a_mixture_of_everything() {
    let problem = mixture();
    let schedule = complete(&problem, 16, &[0, 3, 7, 17, 24, 39], &[0, 1, 1, 2, 0, 3]);
    assert_snapshot!(check(&problem, schedule));
}

#[test]
fn without_a_variable_latency_group() {
    let mut resources = hopper();
    resources.variable_latency_group = None;
    let problem = builtin_on("gemm", resources);
    let mut schedule = complete(&problem, 512, &[0, 128, 256], &[0, 0, 0]);
    schedule.groups[0].registers_per_thread = 168;
    assert_snapshot!(check(&problem, schedule));
}

#[test]
fn the_steady_state_has_every_operation_once() {
    let (problem, schedule) = blackwell_forward();
    let program = LoopProgram::from_claim(&problem, &schedule);
    let mut issued: Vec<_> = program
        .warps
        .iter()
        .flat_map(|w| &w.steady)
        .filter_map(|s| if let Step::Issue { op, .. } = s { Some(*op) } else { None })
        .collect();
    issued.sort();
    assert_eq!(issued, problem.graph().op_ids().collect::<Vec<_>>());
    assert!(program.warps.iter().all(|w| flatten(w, 0).is_empty()));
}
