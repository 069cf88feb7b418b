//! Pipelines without warps: `dependence`, `resource`, and the length.

use crate::support::{plain, problem};
use serde_json::json;
use twill_check::{Rejected, Verified, verify_pipeline};
use twill_graph::{Cycles, Pipeline, Problem};

/// Two operations on one unit, the second after the first; too many words for any group.
fn chain() -> Problem {
    problem(
        plain(),
        json!([
            {"name": "a", "units": [{"unit": "alu", "cycles": 2}], "result": {"registers": 1_000_000}},
            {"name": "b", "units": [{"unit": "alu", "cycles": 2}]}
        ]),
        json!([{"from": "a", "to": "b", "delay": 4}, {"from": "b", "to": "a", "distance": 2, "delay": 2}]),
    )
}

fn replay(interval: i64, length: i64, cycles: &[i64]) -> Result<Verified<Pipeline>, Rejected> {
    let cycles = cycles.iter().map(|&c| Cycles(c)).collect();
    verify_pipeline(&chain(), Pipeline { interval: Cycles(interval), length: Cycles(length), cycles })
}

#[test]
fn what_holds_is_accepted_whatever_registers_it_takes() {
    assert_eq!(replay(4, 8, &[0, 6]).unwrap().stages(), 2);
}

#[test]
fn what_does_not_hold_is_named() {
    let complaint = |interval, length, cycles: &[i64]| replay(interval, length, cycles).unwrap_err().to_string();
    for (interval, length, cycles, says) in [
        (4, 6, [0, 4], "unit `alu` (capacity 1) is held 2 times"),
        (4, 5, [0, 3], "`b` issues at cycle 3"),
        (4, 9, [0, 7], "`a` issues at cycle"),
        (4, 9, [0, 6], "an iteration takes 9 cycles; it takes 8"),
        (4, 8, [-1, 6], "an iteration begins at cycle 0"),
        (0, 8, [0, 6], "at least 1"),
    ] {
        let said = complaint(interval, length, &cycles);
        assert!(said.contains(says), "{says}: {said}");
    }
    assert!(complaint(4, 8, &[0]).contains("places 1 operation"));
}
