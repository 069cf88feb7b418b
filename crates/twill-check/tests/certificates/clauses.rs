//! Clauses that are instances of constraints.

use crate::support::{changed, holds, holds_with_all, machine, problem};
use serde_json::json;
use twill_graph::{ModelOptions, WarpAssignment};

#[test]
fn operations_do_not_keep_themselves_away() {
    let problem = problem();
    for reason in ["resource 1 0 1 0 0", "exclusive 2 2 0", "concurrency 2 2 0", "concurrency 1 1 0"] {
        assert!(!holds(&problem, &[], "0", reason), "{reason}");
    }
    // Nor is there anything to say of what does not exist.
    for reason in [
        "resource 3 0 1 0 0",
        "resource 1 0 3 0 0",
        "resource 1 1 2 0 0",
        "exclusive 2 3 0",
        "exclusive 3 2 0",
        "concurrency 1 3 0",
        "concurrency 3 1 0",
        "dependence 1 3 0",
        "dependence 3 1 0",
        "handoff 2",
        "some-group 3",
        "one-group 3",
        "group-order 3 1",
        "group-order 3 2",
        "sub-tile-order 3 4",
        "definition 1",
        "definition 0",
        "definition -1",
        "overfull 0 0 3 9 0",
        "overfull-registers 0 9 0 1 0 0",
    ] {
        assert!(!holds(&problem, &["used 1"], "0", reason), "{reason}");
        assert!(!holds(&problem, &["used 1"], "1 0", reason), "{reason}");
        assert!(!holds(&problem, &["used 1"], "-1 0", reason), "{reason}");
    }
    assert!(!holds(&problem, &["group 1 1", "group 2 1"], "1 2 0", "group-order 3 2"));
}

#[test]
fn what_is_interchangeable_may_be_in_order() {
    let free = problem();
    let fixed = ModelOptions { warp_assignment: WarpAssignment::BySubTile, ..ModelOptions::default() };
    let fixed = changed(machine(), fixed, |_| {});
    let used = ["used 1", "used 2"];
    assert!(holds(&free, &used, "1 -2 0", "used-order 2") && !holds(&fixed, &used, "1 -2 0", "used-order 2"));
    // Group 0 loads: no compute group comes before group 1.
    assert!(!holds(&free, &["used 0", "used 1"], "1 -2 0", "used-order 1"));
    assert!(!holds(&free, &["used 0", "used 1"], "1 -2 0", "used-order 0"));
    // The exponential opens group 2 only after the MMA opened group 1.
    let opened = ["group 1 1", "group 2 2"];
    holds_with_all(&free, &opened, "1 -2", "group-order 2 2");
    assert!(!holds(&free, &["group 2 1", "group 2 2"], "1 -2 0", "group-order 2 2"));
    assert!(!holds(&free, &opened, "1 -2 0", "group-order 1 2"));
    assert!(holds(&free, &["group 1 2"], "-1 0", "group-order 1 2"), "nothing precedes the MMA on group 1");
    assert!(!holds(&free, &["group 1 1"], "-1 0", "group-order 1 1"));
}

#[test]
fn synchronous_work_of_a_group_does_not_overlap() {
    // Both synchronous on a group, or one of them not.
    let with = |execution: &str, cycles: i64, options: ModelOptions| {
        changed(machine(), options, |text| {
            text["operations"][1]["execution"] = execution.into();
            text["operations"][2]["cycles"] = cycles.into();
            text["operations"][2]["units"] = json!([]);
        })
    };
    let every = ModelOptions::default();
    let both = with("synchronous", 5, every);
    // The MMA takes four cycles: the exponential is four after it, or it five after the exponential.
    let atoms = ["same 1 2", "bound 3 5 4", "bound 5 3 5"];
    holds_with_all(&both, &atoms, "-1 2 3", "exclusive 1 2 0");
    assert!(!holds(&both, &["same 1 2", "bound 3 5 5", "bound 5 3 5"], "-1 2 3 0", "exclusive 1 2 0"));
    assert!(!holds(&both, &["same 1 2", "bound 3 5 4", "bound 5 3 6"], "-1 2 3 0", "exclusive 1 2 0"));
    // An interval on, seen from the other.
    let turned = ["same 1 2", "bound 5 3 -5", "bound 3 5 14"];
    holds_with_all(&both, &turned[..2], "-1 2", "exclusive 2 1 -1");
    assert!(!holds(&both, &turned, "-1 2 3 0", "exclusive 2 1 1"));
    for (problem, why) in [
        (with("asynchronous", 5, every), "one works by itself"),
        (with("synchronous", 0, every), "one takes no time"),
        (with("synchronous", 5, ModelOptions { exclusive_issue: false, ..every }), "it is not asked"),
    ] {
        assert!(!holds(&problem, &atoms, "-1 2 3 0", "exclusive 1 2 0"), "{why}");
        // Nor in the other order, nor with what the formula gives for no time.
        for end in [5, 0] {
            let atoms = ["same 1 2".into(), format!("bound 5 3 {end}"), "bound 3 5 4".into()];
            let atoms = atoms.each_ref().map(String::as_str);
            assert!(!holds(&problem, &atoms, "-1 2 3 0", "exclusive 2 1 0"), "{why}");
            assert!(!holds(&problem, &atoms, "-1 2 3 0", "exclusive 1 2 0"), "{why}");
        }
    }
}

#[test]
fn who_waits_stalls_nobody() {
    use twill_graph::ConcurrencyWindow::{Issue, Literal};
    let with = |cycles: i64, window| {
        let options = ModelOptions { concurrency_window: window, ..ModelOptions::default() };
        changed(machine(), options, |text| {
            text["operations"][1]["cycles"] = cycles.into();
            text["operations"][1]["units"] = json!([]);
        })
    };
    // The exponential waits, always; the MMA is under way for a cycle by its issue, for four by the letter.
    for (window, end, wrong) in [(Issue, 1, 2), (Literal, 4, 3)] {
        let problem = with(4, window);
        let atoms = |end: i64| ["same 1 2".to_owned(), format!("bound 3 5 {end}"), "bound 5 3 1".to_owned()];
        let judged = |end: i64, clause: &str, reason: &str| {
            let atoms = atoms(end);
            holds(&problem, &atoms.each_ref().map(String::as_str), clause, reason)
        };
        assert!(judged(end, "-1 2 3 0", "concurrency 2 1 0"));
        assert!(!judged(end, "2 3 0", "concurrency 2 1 0") && !judged(end, "-1 3 0", "concurrency 2 1 0"));
        assert!(!judged(end, "-1 2 0", "concurrency 2 1 0"));
        assert!(!judged(wrong, "-1 2 3 0", "concurrency 2 1 0"), "{window:?}");
    }
    // An operation that takes no time stalls nobody by the letter.
    let atoms = ["same 1 2", "bound 3 5 0", "bound 5 3 1"];
    assert!(!holds(&with(0, Literal), &atoms, "-1 2 3 0", "concurrency 2 1 0"));
}

#[test]
fn registers_are_read_at_home_or_by_handoff() {
    let with = |options: ModelOptions, distance: i64, value: bool| {
        changed(machine(), options, |text| {
            text["dependences"][1]["distance"] = distance.into();
            text["dependences"][1]["value"] = value.into();
        })
    };
    let every = ModelOptions::default();
    // 8 cycles and 3 for the handoff.
    let atoms = ["same 1 2", "later 1 2 1 2 11", "later 1 2 1 2 12"];
    holds_with_all(&with(every, 0, true), &atoms, "1 2", "handoff 1");
    assert!(!holds(&with(every, 0, true), &atoms, "1 3 0", "handoff 1"));
    // There is none of an iteration before, nor where none is allowed.
    let never = ModelOptions { cross_group_registers: false, ..every };
    for problem in [with(every, 1, true), with(never, 0, true), with(never, 1, true)] {
        holds_with_all(&problem, &atoms, "1", "handoff 1");
    }
    // A dependence without a value, or with none in a register, has no handoff.
    assert!(!holds(&with(every, 0, false), &atoms, "1 2 0", "handoff 1"));
    assert!(!holds(&with(every, 0, true), &["same 0 1", "later 0 1 0 1 0"], "1 2 0", "handoff 0"));
}
