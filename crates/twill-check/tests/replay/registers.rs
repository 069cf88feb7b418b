//! `registers`

use crate::support::{accepted, blackwell, hopper, plain, problem, rejected, schedule, schedule_with};
use serde_json::json;
use twill_check::Constraint::Registers;
use twill_graph::{ModelOptions, Problem, Resources};

/// 40 registers a thread hold 32 · 4 · (40 − 32) = 1024 tile words.
const REGISTERS: u32 = 40;

fn pair(machine: Resources, words: u64, distance: u32, hold: i64) -> Problem {
    problem(
        machine,
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": words}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}], "result": {"registers": 1024}}
        ]),
        json!([{"from": "a", "to": "b", "distance": distance, "hold": hold}]),
    )
}

#[test]
fn values_of_one_iteration_fit() {
    let three = |words: u64| {
        problem(
            plain(),
            json!([
                {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 1000}},
                {"name": "b", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": words}},
                {"name": "c", "units": [{"unit": "fma", "cycles": 2}]}
            ]),
            json!([{"from": "a", "to": "c"}, {"from": "b", "to": "c"}]),
        )
    };
    let placements = [(0, 0), (2, 0), (5, 0)];
    accepted(&three(24), schedule_with(&three(24), 8, &placements, REGISTERS));
    let message = "group 0 has registers for 1024 tile words; at cycle 2 (slot 2) it needs 1025: `a` 1000, `b` 25";
    rejected(&three(25), schedule_with(&three(25), 8, &placements, REGISTERS), Registers, &[message]);
    accepted(&three(25), schedule_with(&three(25), 8, &placements, REGISTERS + 8));
}

#[test]
fn who_is_over_holds_nothing() {
    // `a` is read until cycle 6, in which `b` begins.
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 424}},
            {"name": "long", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 600}},
            {"name": "reader", "units": [{"unit": "fma", "cycles": 2}]},
            {"name": "b", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 425}},
            {"name": "last", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([
            {"from": "a", "to": "reader"}, {"from": "long", "to": "last"}, {"from": "b", "to": "last"}
        ]),
    );
    let schedule = schedule_with(&problem, 16, &[(0, 0), (2, 0), (4, 0), (6, 0), (8, 0)], REGISTERS);
    let message = twill_check::verify(&problem, schedule).unwrap_err().to_string();
    assert!(message.contains("at cycle 6 (slot 6) it needs 1025: `long` 600, `b` 425"), "{message}");
    assert!(!message.contains("`a`"), "{message}");
}

#[test]
fn copies_of_earlier_iterations_count() {
    // The value lives longer than the interval: in its own iteration there is only one.
    let problem = pair(plain(), 600, 0, 0);
    accepted(&problem, schedule_with(&problem, 8, &[(0, 0), (8 - 2, 0)], REGISTERS));
    let message = "group 0 has registers for 1024 tile words; at cycle 8 (slot 0) it needs 1200: `a` 1200 in 2 copies";
    let long = schedule_with(&problem, 8, &[(0, 0), (10, 0)], REGISTERS);
    rejected(&problem, long, Registers, &[message]);
}

#[test]
fn values_carried_in_count() {
    let problem = pair(plain(), 600, 1, 0);
    // One stage; the value of the iteration before is read at 2 while this iteration's is there
    // from 0 on.
    let message = "group 0 has registers for 1024 tile words; at cycle 8 (slot 0) it needs 1200: `a` 1200 in 2 copies";
    let broken = schedule_with(&problem, 8, &[(0, 0), (2, 0)], REGISTERS);
    rejected(&problem, broken.clone(), Registers, &[message]);
    accepted(&problem, schedule_with(&problem, 8, &[(2, 0), (0, 0)], REGISTERS));
    let paper =
        problem.with_options(ModelOptions { liveness: twill_graph::Liveness::Paper, ..ModelOptions::default() });
    accepted(&paper, broken);
}

#[test]
fn a_consumer_may_hold_its_operand() {
    let message = "group 0 has registers for 1024 tile words; at cycle 8 (slot 0) it needs 1200: `a` 1200 in 2 copies";
    let (fits, not) = (pair(plain(), 600, 0, 4), pair(plain(), 600, 0, 5));
    accepted(&fits, schedule_with(&fits, 8, &[(0, 0), (4, 0)], REGISTERS));
    rejected(&not, schedule_with(&not, 8, &[(0, 0), (4, 0)], REGISTERS), Registers, &[message]);
}

#[test]
fn a_result_that_nobody_reads_takes_nothing() {
    let problem = problem(
        plain(),
        json!([{"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 1u64 << 40}}]),
        json!([]),
    );
    accepted(&problem, schedule_with(&problem, 2, &[(0, 0)], REGISTERS));
}

/// A value of `words` goes from group 1 to `reader`'s group, where another value of 1000 lives from
/// 6 to 10.
fn away(words: u64, variable_latency: bool) -> Problem {
    problem(
        hopper(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": words}},
            {"name": "reader", "units": [{"unit": "tma", "cycles": 4}], "issue_width": 1,
             "variable_latency": variable_latency},
            {"name": "other", "units": [{"unit": "fma", "cycles": 2}], "result": {"registers": 1000}},
            {"name": "end", "units": [{"unit": "fma", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "reader"}, {"from": "other", "to": "end"}]),
    )
}

#[test]
fn a_consumer_elsewhere_needs_registers_too() {
    let at = |reader| [(0, 1), (reader, 2), (6, 2), (10, 2)];
    let (fits, not) = (away(24, false), away(25, false));
    accepted(&fits, schedule_with(&fits, 16, &[(0, 1), (2, 2), (6, 2), (10, 2)], REGISTERS));
    accepted(&not, schedule_with(&not, 16, &at(2), REGISTERS));
    let relaxed = not.with_options(ModelOptions { exclusive_issue: false, ..ModelOptions::default() });
    accepted(&relaxed, schedule_with(&relaxed, 16, &at(12), REGISTERS));
    let message =
        "group 2 has registers for 1024 tile words; at cycle 6 (slot 6) it needs 1025: `other` 1000, `a` as operand 25";
    rejected(&relaxed, schedule_with(&relaxed, 16, &at(3), REGISTERS), Registers, &[message]);
    accepted(
        &relaxed.with_options(ModelOptions { consumer_registers: false, ..*relaxed.options() }),
        schedule_with(&relaxed, 16, &at(3), REGISTERS),
    );
}

#[test]
fn the_copy_engine_reads_the_handoff_buffer() {
    let problem = away(1024, true);
    accepted(&problem, schedule_with(&problem, 16, &[(0, 1), (3, 0), (6, 2), (10, 2)], REGISTERS));
}

#[test]
fn registers_are_allotted_as_the_machine_can() {
    let problem = pair(hopper(), 100, 0, 0);
    let with = |registers| schedule_with(&problem, 8, &[(0, 1), (2, 1)], registers);
    for registers in [40, 248, 256] {
        accepted(&problem, with(registers));
    }
    let odd = "group 1 is given 44 registers a thread; they are allocated in multiples of 8";
    rejected(&problem, with(44), Registers, &[odd]);
    let many = "group 1 is given 264 registers a thread; it must be from 32 to 256";
    rejected(&problem, with(264), Registers, &[many]);
    let few = "group 1 is given 16 registers a thread; it must be from 32 to 256";
    let nothing = "group 1 has registers for 0 tile words; at cycle 0 (slot 0) it needs 100: `a` 100";
    rejected(&problem, with(16), Registers, &[few, nothing]);
}

#[test]
fn a_group_that_holds_nothing_needs_the_reserve() {
    let problem = problem(hopper(), json!([{"name": "a", "units": [{"unit": "alu", "cycles": 2}]}]), json!([]));
    accepted(&problem, schedule_with(&problem, 8, &[(0, 1)], 32));
    let few = "group 1 is given 24 registers a thread; it must be from 32 to 256";
    rejected(&problem, schedule_with(&problem, 8, &[(0, 1)], 24), Registers, &[few]);
}

#[test]
fn addressable_registers_are_a_limit() {
    // 256 are allocated, 255 can be addressed: 32 · 4 · (255 − 32) = 28544 words.
    let (fits, not) = (pair(hopper(), 28544, 0, 0), pair(hopper(), 28545, 0, 0));
    accepted(&fits, schedule_with(&fits, 8, &[(0, 1), (2, 1)], 256));
    let message = "group 1 has registers for 28,544 tile words; at cycle 0 (slot 0) it needs 28,545: `a` 28,545";
    rejected(&not, schedule_with(&not, 8, &[(0, 1), (2, 1)], 256), Registers, &[message]);
}

#[test]
fn fixed_groups_have_fixed_registers() {
    let problem = away(1, true);
    let mut schedule = schedule(&problem, 16, &[(0, 1), (3, 0), (6, 1), (10, 1)]);
    schedule.groups[0].registers_per_thread = 32;
    let message = "group 0 is given 32 registers a thread; it must be from 24 to 24";
    rejected(&problem, schedule, Registers, &[message]);
}

#[test]
fn fixed_groups_hold_what_fits_theirs() {
    // A load into registers, handed to a compute group.
    let problem = |words: u64| {
        let mut machine = hopper();
        machine.variable_latency_group.as_mut().unwrap().registers_per_thread = 40;
        problem(
            machine,
            json!([
                {"name": "load", "units": [{"unit": "alu", "cycles": 2}], "issue_width": 1, "variable_latency": true,
                 "result": {"registers": words}},
                {"name": "use", "units": [{"unit": "fma", "cycles": 2}]}
            ]),
            json!([{"from": "load", "to": "use"}]),
        )
    };
    // One warp: 32 · (40 − 32) words.
    accepted(&problem(256), schedule(&problem(256), 8, &[(0, 0), (2, 1)]));
    let message = "group 0 has registers for 256 tile words; at cycle 0 (slot 0) it needs 257: `load` 257";
    rejected(&problem(257), schedule(&problem(257), 8, &[(0, 0), (2, 1)]), Registers, &[message]);
}

#[test]
fn all_groups_fit_the_register_file() {
    let problem = |machine| {
        problem(
            machine,
            json!([{"name": "a", "units": [{"unit": "alu", "cycles": 1}]}, {"name": "b", "units": [{"unit": "alu", "cycles": 1}]},
                   {"name": "c", "units": [{"unit": "alu", "cycles": 1}]}]),
            json!([]),
        )
    };
    let placements = [(0, 1), (1, 2), (2, 3)];
    // 3 · 128 · 160 + 4 · 32 · 24 = 64512 of 65536.
    accepted(&problem(hopper()), schedule_with(&problem(hopper()), 3, &placements, 160));
    let broken = schedule_with(&problem(hopper()), 3, &placements, 168);
    let message = "the groups are given 67,584 registers in all; the register file has 65,536";
    rejected(&problem(hopper()), broken, Registers, &[message]);
    // Without a fixed group they fit; with two they do not even at 160. Both are paid for, used or not.
    let one_less = [(0, 0), (1, 1), (2, 2)];
    accepted(&problem(plain()), schedule_with(&problem(plain()), 3, &one_less, 168));
    let one_more = [(0, 2), (1, 3), (2, 4)];
    let message = "the groups are given 67,584 registers in all; the register file has 65,536";
    rejected(&problem(blackwell()), schedule_with(&problem(blackwell()), 3, &one_more, 160), Registers, &[message]);
}
