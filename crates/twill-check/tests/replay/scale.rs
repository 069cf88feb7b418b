//! Large numbers: nothing overflows, and cost does not follow cycle counts.

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use std::time::Instant;
use twill_check::Constraint::Resource;
use twill_check::verify;
use twill_graph::{Cycles, GroupId, ModelOptions, Placement, Schedule};

#[test]
fn intervals_of_a_thousand_million_cycles_are_cheap() {
    const LONG: i64 = 1_000_000_000;
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "tensor", "cycles": LONG}], "execution": "asynchronous"},
            {"name": "b", "units": [{"unit": "tensor", "cycles": LONG}], "execution": "asynchronous"}
        ]),
        json!([{"from": "a", "to": "b", "delay": 3 * LONG}]),
    );
    accepted(&problem, schedule(&problem, 2 * LONG, &[(0, 0), (3 * LONG, 0)]));
    let message = "unit `tensor` (capacity 1) is held 2 times at cycle 4000000000 (slot 0): `a` 1, `b` 1";
    rejected(&problem, schedule(&problem, 2 * LONG, &[(0, 0), (3 * LONG + 1, 0)]), Resource, &[message]);
}

#[test]
fn more_copies_than_can_be_laid_out_are_counted_exactly() {
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 1}], "result": {"shared_memory": 4}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 1}]}
        ]),
        json!([{"from": "a", "to": "b", "distance": 3}]),
    );
    // 232448 / 4 = 58112 copies fit.
    let at = |copies: i64| schedule(&problem, 2, &[(0, 0), (2 * copies - 6, 1)]);
    accepted(&problem, at(58112));
    let message = "at slot 0 the loop needs 232,452 bytes of shared memory of 232,448: 0 reserved, 0 for rings; `a` 232,452 in 58,113 copies";
    rejected(&problem, at(58113), twill_check::Constraint::SharedMemory, &[message]);
}

#[test]
fn the_largest_numbers_are_rejected_not_wrapped() {
    const MOST: i64 = 1 << 40;
    let problem = problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "start": MOST - 1, "cycles": 1}], "latency": MOST, "result": {"registers": MOST}, "handoff": MOST},
            {"name": "b", "units": [{"unit": "fma", "cycles": MOST}], "latency": MOST, "result": {"shared_memory": MOST}},
            {"name": "c", "units": [{"unit": "alu", "cycles": 1}], "execution": "asynchronous", "result": {"tensor_memory": MOST}}
        ]),
        json!([
            {"from": "a", "to": "b"}, {"from": "b", "to": "c", "distance": 1, "hold": MOST},
            {"from": "c", "to": "a", "distance": 1, "delay": MOST, "hold": MOST}
        ]),
    );
    for options in [ModelOptions::default(), ModelOptions::paper()] {
        let problem = problem.with_options(options);
        for interval in [1, 7, MOST, i64::MAX] {
            for (cycle, group) in [(0, 0), (i64::MAX, 1), (i64::MAX - 1, 2)] {
                let place = |cycle, group| Placement { cycle: Cycles(cycle), group: GroupId::new(group) };
                let placements = vec![place(cycle, group), place(i64::MAX, 0), place(0, 2)];
                let schedule = Schedule {
                    interval: Cycles(interval),
                    length: Cycles(i64::MAX),
                    placements,
                    groups: vec![],
                    channels: vec![],
                    rings: vec![],
                };
                let rejected = verify(&problem, schedule).unwrap_err();
                assert!(!rejected.to_string().is_empty());
            }
        }
    }
}

#[test]
fn a_list_of_violations_ends() {
    let operations: Vec<_> =
        (0..200).map(|i| json!({"name": format!("op {i}"), "units": [{"unit": "alu", "cycles": 1}]})).collect();
    let problem = problem(plain(), json!(operations), json!([]));
    let mut schedule = schedule(&problem, 200, &(0..200).map(|i| (i, 0)).collect::<Vec<_>>());
    accepted(&problem, schedule.clone());
    schedule.placements.iter_mut().for_each(|p| p.cycle = Cycles(-1));
    let rejected = verify(&problem, schedule).unwrap_err();
    assert_eq!((rejected.violations.len(), rejected.truncated), (twill_check::Rejected::LIMIT, true));
    assert!(rejected.to_string().ends_with("\n  and more"));
}

#[test]
fn large_loops_take_time_in_proportion() {
    let count = 20_000;
    let operations: Vec<_> = (0..count)
        .map(
            |i| json!({"name": format!("op {i}"), "units": [{"unit": "alu", "cycles": 7}], "result": {"registers": 1}}),
        )
        .collect();
    let dependences: Vec<_> = (1..count)
        .map(|i| json!({"from": format!("op {}", i - 1), "to": format!("op {i}"), "blocking": true}))
        .collect();
    let problem = problem(plain(), json!(operations), json!(dependences));
    let placements: Vec<_> = (0..count).map(|i| (7 * i, 0)).collect();
    let whole = schedule(&problem, 7 * count, &placements);
    let start = Instant::now();
    accepted(&problem, whole);
    // The same work in a hundredth of the interval, a hundred copies deep, breaks everything.
    assert!(verify(&problem, schedule(&problem, 7 * count / 100, &placements)).is_err());
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
