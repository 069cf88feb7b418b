//! Model variants: the paper's counts and omissions.

use crate::support::{accepted, plain, problem, rejected, schedule_with};
use serde_json::json;
use twill_check::Constraint::{Registers, Structure, TensorMemory};
use twill_graph::{Columns, Cycles, Liveness, ModelOptions, Problem};

fn paper(problem: &Problem) -> Problem {
    problem.with_options(ModelOptions { liveness: Liveness::Paper, ..ModelOptions::default() })
}

/// `a` is read by `b` of the same iteration and by `c` one later.
fn carried(words: u64) -> Problem {
    problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": words}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]},
            {"name": "c", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b"}, {"from": "a", "to": "c", "distance": 2, "delay": 0}]),
    )
}

#[test]
fn the_straight_line_program_has_as_many_copies_as_overlap() {
    // I = 8, N = 2. Folded: a lives [0, 16 + 6), 3 copies in slots 0 to 5.
    let folded = carried(400);
    let placements = [(0, 0), (10, 0), (6, 0)];
    let message = "group 0 has registers for 1024 tile words; at cycle 16 (slot 0) it needs 1200: `a` 1200 in 3 copies";
    rejected(&folded, schedule_with(&folded, 8, &placements, 40), Registers, &[message]);
    // Straight line: copy 0 lives [0, 10) for b, as c of iteration 2 is not there; copy 1 lives
    // from 8 to the end at 8 + 12.
    accepted(&paper(&folded), schedule_with(&folded, 8, &placements, 40));
    let more = carried(513);
    let message = "group 0 has registers for 1024 tile words; at cycle 8 (slot 0) it needs 1026: `a` 1026 in 2 copies";
    rejected(&paper(&more), schedule_with(&more, 8, &placements, 40), Registers, &[message]);
}

#[test]
fn the_last_copy_of_a_carried_value_lives_to_the_end() {
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 600}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}], "result": {"registers": 600}},
            {"name": "c", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "a", "distance": 1}, {"from": "b", "to": "c"}]),
    );
    // One copy: a lives [0, 8), b [4, 6).
    let message = "group 0 has registers for 1024 tile words; at cycle 4 (slot 4) it needs 1200: `a` 600, `b` 600";
    let schedule = schedule_with(&problem, 8, &[(0, 0), (4, 0), (6, 0)], 40);
    rejected(&paper(&problem), schedule, Registers, &[message]);
    // c issues before a's only copy begins.
    let schedule = schedule_with(&problem, 8, &[(4, 0), (0, 0), (2, 0)], 40);
    accepted(&paper(&problem), schedule.clone());
    rejected(
        &problem,
        schedule,
        Registers,
        &["group 0 has registers for 1024 tile words; at cycle 8 (slot 0) it needs 1200: `a` 600, `b` 600"],
    );
}

#[test]
fn memories_are_counted_in_the_same_way() {
    let mut machine = plain();
    machine.tensor_memory = Columns(512);
    let problem = problem(
        machine,
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"tensor_memory": 300}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b", "distance": 1}]),
    );
    let schedule = schedule_with(&problem, 8, &[(0, 0), (2, 0)], 40);
    accepted(&paper(&problem), schedule.clone());
    let message =
        "at cycle 8 (slot 0) the loop needs 600 columns of tensor memory of 512: 0 reserved; `a` 600 in 2 copies";
    rejected(&problem, schedule, TensorMemory, &[message]);
}

#[test]
fn a_straight_line_program_of_millions_of_copies_is_refused() {
    let problem = carried(1);
    let of_length = |length: i64| {
        let mut schedule = schedule_with(&problem, 4, &[(0, 0), (4, 1), (6, 1)], 40);
        schedule.placements[1].cycle = Cycles(length - 2);
        schedule.length = Cycles(length);
        let rejection = twill_check::verify(&paper(&problem), schedule).unwrap_err();
        let structure = rejection.violations.iter().filter(|v| v.constraint() == Structure);
        structure.map(ToString::to_string).collect::<Vec<_>>()
    };
    let message = |copies: i64| {
        format!(
            "{copies} copies overlap; the straight-line program of the paper is replayed for at most 838860 of this loop"
        )
    };
    assert_eq!(of_length((1 << 40) + 2), [message(274_877_906_945)]);
    assert_eq!(of_length(4 * 838_860 + 1), [message(838_861)]);
    assert!(of_length(4 * 838_860).is_empty());
}
