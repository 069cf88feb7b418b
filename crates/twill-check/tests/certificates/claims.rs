//! The meaning of atoms, and which of them are true of every schedule.

use crate::support::{OPEN, changed, holds, holds_with_all, machine, problem, said};
use serde_json::json;
use twill_graph::{ModelOptions, Problem, WarpAssignment};

/// Returns whether an atom means something.
fn is_meaningful(atom: &str) -> bool {
    let said = said(&problem(), 10, &[atom], &[], "");
    assert!(said.ends_with(OPEN) || said.ends_with("atom 1 means nothing in this problem"), "{said}");
    said.ends_with(OPEN)
}

#[test]
fn atoms_speak_of_what_exists() {
    // Three operations, three groups, numbered from 0; points are the origin and two for each operation.
    for (right, wrong) in [
        ("bound 0 6 1", &["bound 0 7 1", "bound 7 0 1", "bound 8 0 1"][..]),
        ("bound 0 1 1152921504606846975", &["bound 0 1 1152921504606846976", "bound 0 1 -1152921504606846976"]),
        ("group 2 2", &["group 3 2", "group 2 3"]),
        ("used 2", &["used 3"]),
        ("registers 2 48", &["registers 3 48"]),
        ("same 2 1", &["same 3 1", "same 1 3"]),
        ("later 2 1 0 1 5", &["later 3 1 0 1 5", "later 2 3 0 1 5", "later 2 1 3 1 5", "later 2 1 0 3 5"]),
        ("later 2 1 0 1 1152921504606846975", &["later 2 1 0 1 1152921504606846976"]),
        ("waits 2", &["waits 3"]),
        ("ring 0 2", &["ring 0 1", "ring 3 2", "ring 0 1048576"]),
        ("ring 0 1048575", &["ring 0 0"]),
        // Registers, the value of the MMA, when the exponential's begins.
        ("alive 1 0 0 1 0 1 0 2 0", &["alive 1 0 0 3 0 1 0 2 0", "alive 1 0 0 1 0 1 0 3 0", "alive 1 0 0 0 0 1 0 2 0"]),
        ("alive 1 0 0 1 0 1048575 0 2 0", &["alive 1 0 0 1 0 0 0 2 0", "alive 1 0 0 1 0 1048576 0 2 0"]),
    ] {
        assert!(is_meaningful(right), "{right}");
        for wrong in wrong {
            assert!(!is_meaningful(wrong), "{wrong}");
        }
    }
    // Conjunctions are of earlier atoms.
    assert!(!is_meaningful("all 1") && !is_meaningful("all -1") && !is_meaningful("all 2"));
    let two = |last: &str| said(&problem(), 10, &["used 1", last], &[], "");
    assert!(two("all 1").ends_with(OPEN) && two("all -1").ends_with(OPEN));
    assert!(two("all 2").ends_with("atom 2 means nothing in this problem"), "{}", two("all 2"));
    assert!(two("all 0").ends_with("atom 2 means nothing in this problem"), "{}", two("all 0"));
}

#[test]
fn some_claims_are_true_of_every_schedule() {
    // The reason plays no part.
    let is_true = |problem: &Problem, atom: &str| holds(problem, &[atom], "1 0", "used-order 1");
    let is_false = |problem: &Problem, atom: &str| holds(problem, &[atom], "-1 0", "used-order 1");
    let hand = problem();
    // Slots are from 0 to 9, that of the first operation is 0; stages have no end.
    for (atom, truth) in [
        ("bound 3 5 -9", Some(true)),
        ("bound 3 5 -8", None),
        ("bound 3 5 9", None),
        ("bound 3 5 10", Some(false)),
        ("bound 1 5 0", Some(true)),
        ("bound 1 5 1", None),
        ("bound 5 1 1", Some(false)),
        ("bound 0 1 0", Some(true)),
        ("bound 0 1 1", Some(false)),
        ("bound 0 4 0", Some(true)),
        ("bound 0 4 1", None),
        ("bound 4 0 1", Some(false)),
        ("bound 4 6 -9", None),
        ("bound 3 3 0", Some(true)),
        ("bound 3 3 1", Some(false)),
        ("later 1 1 1 2 -9", Some(true)),
        ("later 1 1 1 2 -8", None),
        ("later 1 2 1 2 -9", None),
        ("group 0 0", Some(true)),
        ("group 0 1", Some(false)),
        ("group 1 1", None),
        ("group 1 0", Some(false)),
        ("same 0 1", Some(false)),
        ("same 1 2", None),
        ("same 1 1", Some(true)),
        ("waits 1", Some(true)),
        ("waits 2", Some(true)),
        ("waits 0", None),
        ("used 1", None),
        // (slots − 1) · 10 < 6 + 8.
        ("ring 0 2", Some(true)),
        ("ring 0 3", None),
    ] {
        assert_eq!(is_true(&hand, atom), truth == Some(true), "{atom}");
        assert_eq!(is_false(&hand, atom), truth == Some(false), "{atom}");
    }
    // Sub-tiles that have a group of their own.
    let options = ModelOptions { warp_assignment: WarpAssignment::BySubTile, ..ModelOptions::default() };
    let tiles = |one: u32, other: u32| {
        changed(machine(), options, |text| {
            text["operations"][1]["sub_tile"] = one.into();
            text["operations"][2]["sub_tile"] = other.into();
        })
    };
    assert!(is_true(&tiles(0, 2), "same 1 2") && is_true(&tiles(0, 2), "group 2 1"));
    assert!(is_false(&tiles(0, 1), "same 1 2") && is_true(&tiles(0, 1), "group 2 2"));
    // A conjunction is as true as its parts.
    let parts = ["bound 3 3 0", "used 1", "bound 3 3 1", "all 1", "all 1 2", "all 2 3", "all 1 -3"];
    for (atom, truth) in [(4, Some(true)), (5, None), (6, Some(false)), (7, Some(true))] {
        assert_eq!(holds(&hand, &parts, &format!("{atom} 0"), "used-order 1"), truth == Some(true), "{atom}");
        assert_eq!(holds(&hand, &parts, &format!("-{atom} 0"), "used-order 1"), truth == Some(false), "{atom}");
    }
}

#[test]
fn conjunctions_are_what_their_parts_are() {
    let problem = problem();
    let parts = ["used 1", "used 2", "all 1 2", "all -1 2", "bound 3 3 0", "all 1 5", "bound 3 3 1", "all 1 -7"];
    for (atom, clause) in [(3, "3 -1 -2"), (4, "4 1 -2"), (6, "6 -1"), (8, "8 -1")] {
        holds_with_all(&problem, &parts, clause, &format!("definition {atom}"));
    }
    assert!(
        !holds(&problem, &parts, "-3 1 0", "definition 3") && !holds(&problem, &parts, "-3 -1 -2 0", "definition 3")
    );
    assert!(
        !holds(&problem, &parts, "3 1 2 0", "definition 3") && !holds(&problem, &parts, "4 -1 -2 0", "definition 4")
    );
    assert!(
        !holds(&problem, &parts, "3 -1 -2 0", "definition 4") && !holds(&problem, &parts, "3 -1 -2 0", "definition 0")
    );
    assert!(!holds(&problem, &parts, "3 -1 -2 0", "definition -3"));
}

#[test]
fn groups_are_used_and_readers_wait() {
    let problem = problem();
    holds_with_all(&problem, &["used 1", "group 1 1"], "1 -2", "definition 1");
    assert!(!holds(&problem, &["used 1", "group 1 1"], "1 -2 0", "definition -1"));
    assert!(!holds(&problem, &["used 1", "group 1 2"], "1 -2 0", "definition 1"));
    // Where a dependence does not block, its reader waits for a value from another group, and nobody else does.
    let handed = changed(machine(), ModelOptions::default(), |text| {
        for dependence in text["dependences"].as_array_mut().unwrap() {
            dependence["blocking"] = false.into();
        }
    });
    holds_with_all(&handed, &["waits 2", "same 1 2"], "1 2", "definition 1");
    for other in ["waits 0", "waits 1"] {
        assert!(!holds(&handed, &[other, "same 1 2"], "1 2 0", "definition 1"), "{other}");
        assert!(!holds(&handed, &[other, "same 0 1"], "1 2 0", "definition 1"), "{other}");
    }
}

#[test]
fn rings_are_as_deep_as_uses_are_apart() {
    // It is read again an iteration later, by the exponential.
    let problem = changed(machine(), ModelOptions::default(), |text| {
        let again = json!({"from": "load", "to": "exponential", "delay": 0, "distance": 1, "hold": 5, "value": true});
        text["dependences"].as_array_mut().unwrap().push(again);
    });
    // Three slots where the last use is at least 2 · 10 − 10 − 6 − 5 + 1 after the first.
    holds_with_all(&problem, &["later 1 2 1 2 0", "ring 0 3"], "-1 2", "definition 2");
    assert!(!holds(&problem, &["later 1 2 1 2 -1", "ring 0 3"], "-1 2 0", "definition 2"));
    holds_with_all(&problem, &["later 1 2 1 2 10", "ring 0 4"], "-1 2", "definition 2");
    assert!(!holds(&problem, &["later 1 2 1 2 9", "ring 0 4"], "-1 2 0", "definition 2"));
}

#[test]
fn only_what_streams_has_a_ring() {
    let with = |streaming: bool| {
        changed(machine(), ModelOptions::default(), |text| {
            text["operations"][0]["streaming"] = streaming.into();
            let again =
                json!({"from": "load", "to": "exponential", "delay": 0, "distance": 1, "hold": 5, "value": true});
            text["dependences"].as_array_mut().unwrap().push(again);
        })
    };
    let atoms = ["later 1 2 1 2 0", "ring 0 3"];
    assert!(holds(&with(true), &atoms, "-1 2 0", "definition 2"));
    assert!(!holds(&with(false), &atoms, "-1 2 0", "definition 2"));
    // Another load takes its bytes as any value does, and its slots count nowhere.
    let alive = |streaming: bool| said(&with(streaming), 10, &["alive 2 0 0 0 0 1 0 0 0"], &[], "");
    assert!(alive(false).ends_with(OPEN) && alive(true).ends_with("means nothing in this problem"));
    assert!(holds(&with(true), &["ring 0 5"], "-1 0", "overfull-rings"));
    assert!(!holds(&with(false), &["ring 0 5"], "-1 0", "overfull-rings"));
}

#[test]
fn copies_are_alive_from_their_start_to_their_last_end() {
    // Both on one unit: the MMA from its second cycle to its fourth, the exponential from its third or first.
    let with = |start: i64| {
        changed(machine(), ModelOptions::default(), |text| {
            text["operations"][1]["units"] = json!([{"unit": "tensor", "start": 1, "cycles": 3}]);
            text["operations"][2]["units"] = json!([{"unit": "tensor", "start": start, "cycles": 2}]);
        })
    };
    let one = "alive 0 0 3 1 0 1 3 2 0";
    let two = "alive 0 0 3 1 0 2 3 2 0";
    // Seen at the exponential's third cycle, 1 after the MMA's second if both begin together.
    let later = with(2);
    holds_with_all(&later, &["bound 3 5 -1", "bound 3 5 9", "later 1 1 2 1 -1", one], "-1 2 -3 4", "definition 4");
    holds_with_all(&later, &["bound 3 5 -1", "later 1 1 2 1 9", one], "1 -2 3", "definition 3");
    holds_with_all(&later, &["bound 3 5 9", one], "-1 2", "definition 2");
    holds_with_all(&later, &["bound 3 5 -1", "bound 3 5 9", "later 1 1 2 1 9", two], "-1 2 -3 4", "definition 4");
    for wrong in [
        ["bound 3 5 -2", "bound 3 5 9", "later 1 1 2 1 -1", one],
        ["bound 3 5 -1", "bound 3 5 8", "later 1 1 2 1 -2", one],
        ["bound 3 5 -1", "bound 3 5 9", "later 1 1 2 1 -2", one],
        ["bound 3 5 -1", "bound 3 5 9", "later 1 1 2 1 8", two],
    ] {
        assert!(!holds(&later, &wrong, "-1 2 -3 4 0", "definition 4"), "{wrong:?}");
    }
    // Seen at its first: the MMA has to begin before it.
    let sooner = with(0);
    holds_with_all(&sooner, &["bound 3 5 1", "later 1 1 2 1 -3", one], "-1 -2 3", "definition 3");
    assert!(!holds(&sooner, &["bound 3 5 0", "later 1 1 2 1 -3", one], "-1 -2 3 0", "definition 3"));
    assert!(!holds(&sooner, &["bound 3 5 1", "later 1 1 2 1 -4", one], "-1 -2 3 0", "definition 3"));
}

#[test]
fn buffers_are_alive_of_a_handoff() {
    let with = |options: ModelOptions, distance: i64| {
        changed(machine(), options, |text| text["dependences"][1]["distance"] = distance.into())
    };
    let every = ModelOptions::default();
    let buffer = |pool: u32| format!("alive {pool} 0 2 1 0 1 2 1 0");
    // Until the reader is done: five cycles after it begins, of the iteration in which it reads.
    for (distance, least) in [(0, -4), (1, -14)] {
        let later = |least: i64| format!("later 1 2 1 2 {least}");
        let (right, wrong, shared, tensor) = (later(least), later(least - 1), buffer(2), buffer(3));
        let problem = with(every, distance);
        holds_with_all(&problem, &[&right, &shared, "same 1 2"], "-1 2 3", "definition 2");
        assert!(!holds(&problem, &[&wrong, &shared, "same 1 2"], "-1 2 3 0", "definition 2"));
        assert!(!holds(&problem, &[&right, &tensor, "same 1 2"], "-1 2 3 0", "definition 2"), "it is in shared memory");
    }
    // The reader's copy is in registers, if those are counted.
    let is_known = |problem: &Problem, atom: &str| said(problem, 10, &[atom], &[], "").ends_with(OPEN);
    let uncounted = ModelOptions { consumer_registers: false, ..every };
    assert!(is_known(&with(every, 0), "alive 1 0 1 1 0 1 1 1 0"));
    assert!(!is_known(&with(every, 0), "alive 2 0 1 1 0 1 1 1 0"));
    assert!(!is_known(&with(uncounted, 0), "alive 1 0 1 1 0 1 1 1 0"));
    // Values that loads write to shared memory are in no register.
    assert!(!is_known(&with(every, 0), "alive 1 0 1 0 0 1 1 0 0"));
}
