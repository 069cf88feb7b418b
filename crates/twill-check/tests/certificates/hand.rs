//! Proofs by hand, on both sides of every limit that random ones keep away from.

use crate::verdict;
use serde_json::{Value, json};
use twill_graph::format::GraphFile;
use twill_graph::proof::{BoundWitness, Certificate, Proof};
use twill_graph::{Bytes, Cycles, ModelOptions, OpId, Problem, Resources, UnitId, WarpAssignment};

/// Group 0 loads, groups 1 and 2 compute.
fn machine() -> Resources {
    serde_json::from_value(json!({
        "name": "small",
        "units": [{"name": "tensor"}, {"name": "xu"}, {"name": "tma"}],
        "shared_memory": 4096,
        "registers": {"words": 65536, "minimum_per_thread": 24, "maximum_per_thread": 255, "granularity": 8,
                      "reserve_per_thread": 32},
        "variable_latency_group": {"warps": 1, "allocated_warps": 4, "registers_per_thread": 24},
        "compute_groups": {"warps": 4, "maximum": 2}
    }))
    .unwrap()
}

/// A load (0), a multiply (1) and an exponential (2), one after the other.
fn problem() -> Problem {
    problem_on(machine())
}

/// The same elsewhere.
fn problem_on(machine: Resources) -> Problem {
    changed(machine, ModelOptions::default(), |_| {})
}

/// The same with something else in its graph.
fn changed(machine: Resources, options: ModelOptions, change: impl Fn(&mut Value)) -> Problem {
    let mut text = json!({
        "format": "twill-graph", "version": 1, "name": "hand",
        "operations": [
            {"name": "load", "kind": "load", "units": [{"unit": "tma", "cycles": 2}], "cycles": 2, "latency": 10,
             "variable_latency": true, "streaming": true, "execution": "asynchronous", "transfer_latency": 6,
             "result": {"shared_memory": 1024}, "issue_width": 1},
            {"name": "multiply", "kind": "dot", "units": [{"unit": "tensor", "cycles": 4}], "cycles": 4, "latency": 8,
             "execution": "asynchronous", "result": {"registers": 2048}, "handoff": 3},
            {"name": "exponential", "kind": "exp", "units": [{"unit": "xu", "cycles": 5}], "cycles": 5, "latency": 5,
             "result": {"registers": 2048}}
        ],
        "dependences": [
            {"from": "load", "to": "multiply", "delay": 0, "hold": 8, "blocking": true, "value": true},
            {"from": "multiply", "to": "exponential", "delay": 8, "hold": 5, "blocking": true, "value": true}
        ]
    });
    change(&mut text);
    let graph = GraphFile::from_json(&text.to_string(), "hand.json").unwrap().graph().unwrap();
    Problem::new(graph, machine, options).unwrap()
}

/// A certificate that claims nothing.
fn empty() -> Certificate {
    Certificate {
        below: Cycles(1),
        infeasible: false,
        bound: Cycles(1),
        witness: BoundWitness::Trivial,
        conflicts: Vec::new(),
        proofs: Vec::new(),
    }
}

/// A proof of these lines: atoms, clauses with their reasons, steps.
fn proof(interval: i64, atoms: &[&str], clauses: &[(&str, &str)], steps: &str) -> Proof {
    let lines = |word: &str, each: Vec<&str>| each.iter().map(|line| format!("{word} {line}\n")).collect::<String>();
    let reasons = clauses.iter().map(|(_, reason)| *reason).collect();
    let why =
        format!("twill-proof 1\ninterval {interval}\n") + &lines("atom", atoms.to_vec()) + &lines("clause", reasons);
    let cnf: String = clauses.iter().map(|(clause, _)| format!("{clause}\n")).collect();
    let cnf = format!("p cnf {} {}\n{cnf}", atoms.len(), clauses.len());
    Proof::read("hand", &cnf, steps, &why).unwrap()
}

/// What is said of it.
fn said(problem: &Problem, interval: i64, atoms: &[&str], clauses: &[(&str, &str)], steps: &str) -> String {
    verdict(problem, &Certificate { proofs: vec![proof(interval, atoms, clauses, steps)], ..empty() })
}

const OPEN: &str = "the derivation does not reach the empty clause";

/// Whether an atom means something.
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
        // Registers, the value of the multiply, when the exponential's begins.
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
fn what_is_wrong_is_said_with_its_place() {
    let problem = problem();
    let said = |clauses: &[(&str, &str)], steps: &str| said(&problem, 10, &["used 1", "used 2"], clauses, steps);
    let right = ("1 -2 0", "used-order 2");
    assert!(said(&[right], "").ends_with(OPEN));
    let clause = |position: usize| format!("proof at 10 cycles: clause {position} does not follow from its reason");
    assert!(said(&[("1 2 0", "used-order 2")], "").starts_with(&clause(1)));
    assert!(said(&[right, right, ("-1 0", "used-order 2")], "").starts_with(&clause(3)));
    // A literal beyond the atoms, in either part.
    let unknown =
        |part: &str, at: usize| format!("proof at 10 cycles: {part} {at} speaks of an atom that does not exist");
    assert_eq!(said(&[right, ("1 -3 0", "used-order 2")], ""), unknown("clause", 2));
    assert_eq!(said(&[right, right, ("1 -2 3 0", "used-order 2")], ""), unknown("clause", 3));
    assert_eq!(said(&[right], "1 -2 0\n1 3 0\n"), unknown("step", 2));
    assert_eq!(said(&[right], "d 3 0\n"), unknown("step", 1));
    // A step that does not follow.
    let step =
        |at: usize| format!("proof at 10 cycles: step {at} of the derivation does not follow by unit propagation");
    assert_eq!(said(&[right], "1 0\n"), step(1));
    assert_eq!(said(&[right], "1 -2 0\n1 -2 0\n-1 0\n"), step(3));
    // What is forgotten is of no use.
    assert_eq!(said(&[right], "d 1 -2 0\n1 -2 0\n"), step(2));
    // What was forgotten once of two is still there.
    assert!(said(&[right, right], "d -2 1 0\n1 -2 0\n").ends_with(OPEN));
}

#[test]
fn intervals_of_proofs_have_limits() {
    for (interval, holds) in [(0, false), (1, true), (1 << 40, true), ((1 << 40) + 1, false), (-1, false)] {
        let said = said(&problem(), interval, &[], &[], "");
        assert_eq!(said.ends_with(OPEN), holds, "{said}");
        assert_eq!(said.ends_with("certificates are for intervals from 1 to 1099511627776"), !holds, "{said}");
    }
}

#[test]
fn conflicts_are_of_operations_that_meet_themselves() {
    let problem = problem();
    let conflict = |interval: i64, operation: usize| {
        let conflicts = vec![(Cycles(interval), OpId::new(operation))];
        verdict(&problem, &Certificate { conflicts, below: Cycles(interval + 1), ..empty() })
    };
    let accepted = |below: i64| format!("below {below}: 0 proofs, 0 clauses, 0 lemmas, 0 steps");
    // The multiply takes its unit for four cycles, the exponential its group for five.
    assert_eq!(conflict(3, 1), accepted(4));
    assert_eq!(conflict(4, 2), accepted(5));
    assert_eq!(conflict(1, 1), accepted(2));
    for (interval, operation) in [(4, 1), (5, 2), (0, 1), (-1, 1), (1, 3), (2, 0)] {
        let expected = format!("no operation with index {operation} is out of reach at {interval} cycles by itself");
        assert_eq!(conflict(interval, operation), expected);
    }
}

#[test]
fn everything_is_rejected_with_the_last_interval_that_matters() {
    // One slot of the ring does not fit, at any interval.
    let problem = problem_on(Resources { shared_memory: Bytes(1023), ..machine() });
    let clauses: &[(&str, &str)] = &[("0", "overfull-rings")];
    let said = |interval: i64, infeasible: bool| {
        let proof = proof(interval, &[], clauses, "");
        verdict(&problem, &Certificate { proofs: vec![proof], infeasible, below: Cycles(interval + 1), ..empty() })
    };
    // `S`: operations twice, with transfers (2·10 + 6, 2·8 + 8, 2·5 + 5), then dependences with hand-offs and holds (8, 8 + 3 + 5).
    let largest = 89;
    let accepted =
        |interval: i64, all: &str| format!("below {}{all}: 1 proofs, 1 clauses, 0 lemmas, 0 steps", interval + 1);
    assert_eq!(said(largest, true), accepted(largest, ", and everything"));
    assert_eq!(said(largest - 1, true), accepted(largest - 1, ""));
    assert_eq!(said(largest, false), accepted(largest, ""));
    // With room for the slot nothing follows.
    let enough = problem_on(Resources { shared_memory: Bytes(1024), ..machine() });
    let proof = proof(largest, &[], clauses, "");
    let said = verdict(&enough, &Certificate { proofs: vec![proof], ..empty() });
    assert!(said.contains("clause 1 does not follow"), "{said}");
}

/// Whether a clause of these atoms holds for a reason.
fn holds(problem: &Problem, atoms: &[&str], clause: &str, reason: &str) -> bool {
    let said = said(problem, 10, atoms, &[(clause, reason)], "");
    let wrong = "proof at 10 cycles: clause 1 does not follow from its reason";
    assert!(said.ends_with(OPEN) || said.starts_with(wrong) || said.starts_with("below 1:"), "{said}");
    !said.starts_with(wrong)
}

/// The clause holds for the reason, and without any of its literals it does not.
fn holds_with_all(problem: &Problem, atoms: &[&str], clause: &str, reason: &str) {
    assert!(holds(problem, atoms, &format!("{clause} 0"), reason), "{clause} of {atoms:?}: {reason}");
    let literals: Vec<&str> = clause.split(' ').collect();
    for without in 0..literals.len() {
        let mut fewer = literals.clone();
        fewer[without] = "";
        let fewer = fewer.join(" ") + " 0";
        assert!(!holds(problem, atoms, &fewer, reason), "{fewer} of {atoms:?}: {reason}");
    }
}

#[test]
fn sums_are_of_what_is_assumed() {
    let problem = problem();
    // Of the multiply's unit there is one.
    let held = ["alive 0 0 3 1 0 1 3 1 0", "alive 0 0 3 1 0 2 3 1 0"];
    holds_with_all(&problem, &held, "-1 -2", "overfull 0 0 3 1 0");
    assert!(!holds(&problem, &held, "1 -2 0", "overfull 0 0 3 1 0"));
    assert!(!holds(&problem, &held, "-1 -2 0", "overfull 0 1 3 1 0"), "another unit");
    assert!(!holds(&problem, &held, "-1 -2 0", "overfull 0 3 3 1 0"), "no unit");
    // A group with fewer than 48 registers a thread has at most 40, 8 of them for tiles: the value takes 16.
    let below = |least: u32| [format!("group 1 1"), format!("registers 1 {least}"), "alive 1 0 0 1 0 1 0 1 0".into()];
    let reason = |least: u32| format!("overfull-registers 0 1 0 2 1 {least}");
    for (least, fits) in [(40, false), (48, false), (49, true), (56, true), (8, false), (4, true)] {
        let atoms = below(least);
        let atoms: Vec<&str> = atoms.iter().map(String::as_str).collect();
        match fits {
            true => assert!(!holds(&problem, &atoms, "-1 2 -3 0", &reason(least)), "{least}"),
            false => holds_with_all(&problem, &atoms, "-1 2 -3", &reason(least)),
        }
    }
    // It says nothing of the group that loads.
    let atoms = ["group 1 0", "registers 0 48", "alive 1 0 0 1 0 1 0 1 0"];
    assert!(!holds(&problem, &atoms, "2 -3 0", "overfull-registers 0 1 0 2 0 48"));
    // Values of another operation count on its group only, and those read from another group only there.
    let atoms = ["same 1 2", "alive 1 0 0 1 0 1 0 2 0", "alive 1 0 0 2 0 1 0 2 0", "group 2 1", "registers 1 56"];
    holds_with_all(&problem, &atoms, "-1 -2 -3 -4 5", "overfull-registers 0 2 0 2 1 56");
    let atoms = ["same 1 2", "alive 1 0 1 1 0 1 0 2 0", "alive 1 0 0 2 0 1 0 2 0", "group 2 1", "registers 1 56"];
    holds_with_all(&problem, &atoms, "1 -2 -3 -4 5", "overfull-registers 0 2 0 2 1 56");
    // A thread addresses 255 registers: 223 for tiles, that is not quite fourteen values.
    let copies: Vec<String> = (1..=14).map(|copies| format!("alive 1 0 0 1 0 {copies} 0 1 0")).collect();
    let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
    let all: Vec<String> = (1..=14).map(|atom| format!("-{atom}")).collect();
    holds_with_all(&problem, &copies, &all.join(" "), "overfull-registers 0 1 0 1 0 0");
    // A conjunction counts as its parts, each once.
    assert!(holds(&problem, &[held[0], held[1], "all 1 2"], "-3 0", "overfull 0 0 3 1 0"));
    assert!(!holds(&problem, &[held[0], held[0], "all 1 2"], "-3 0", "overfull 0 0 3 1 0"));
}

#[test]
fn memories_hold_rings_and_buffers() {
    let problem = problem();
    // Four slots of 1024 bytes fit, five do not.
    assert!(!holds(&problem, &["ring 0 4"], "-1 0", "overfull-rings"));
    holds_with_all(&problem, &["ring 0 5"], "-1", "overfull-rings");
    assert!(!holds(&problem, &["ring 0 5"], "1 0", "overfull-rings"));
    holds_with_all(&problem, &["ring 0 3", "ring 0 5", "ring 0 4"], "-2", "overfull-rings");
    // In ten cycles a slot is not free again: two are taken in every schedule (6 and 8 cycles), so 2048 bytes.
    let room = |bytes: u64| problem_on(Resources { shared_memory: Bytes(bytes), ..machine() });
    assert!(holds(&room(2047), &[], "0", "overfull-rings"));
    assert!(!holds(&room(2048), &[], "0", "overfull-rings"));
    // A hand-off's buffer has four bytes for each of 2048 words.
    let buffer = ["alive 2 0 2 1 0 1 2 1 0"];
    holds_with_all(&room(2048 + 8191), &buffer, "-1", "overfull 2 0 2 1 0");
    assert!(!holds(&room(2048 + 8192), &buffer, "-1 0", "overfull 2 0 2 1 0"));
    assert!(!holds(&room(2048 + 8191), &buffer, "-1 0", "overfull-rings"));
}

#[test]
fn register_files_hold_what_groups_are_given() {
    // 65536 registers, 128 · 24 of them for loads: 488 a thread for two groups, and each has at least 32.
    let problem = problem();
    for (one, other, fits) in [(248, 240, true), (248, 248, false), (455, 33, true), (456, 33, false)] {
        let atoms = [format!("registers 1 {one}"), format!("registers 2 {other}")];
        let atoms: Vec<&str> = atoms.iter().map(String::as_str).collect();
        match fits {
            true => assert!(!holds(&problem, &atoms, "-1 -2 0", "register-file"), "{one} and {other}"),
            false => holds_with_all(&problem, &atoms, "-1 -2", "register-file"),
        }
    }
    holds_with_all(&problem, &["registers 1 457", "used 2"], "-1 -2", "register-file");
    assert!(!holds(&problem, &["registers 1 456", "used 2"], "-1 -2 0", "register-file"));
    // Of one group the most counts; of the group that loads nothing.
    assert!(!holds(
        &problem,
        &["registers 1 248", "registers 1 240", "registers 0 255"],
        "-1 -2 -3 0",
        "register-file"
    ));
    // More registers are fewer as well.
    let atoms = ["registers 1 48", "registers 1 40"];
    holds_with_all(&problem, &atoms, "-1 2", "register-order 1 48 40");
    assert!(!holds(&problem, &atoms, "1 -2 0", "register-order 1 40 48"));
    assert!(holds(&problem, &["registers 1 48"], "-1 1 0", "register-order 1 48 48"));
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
fn bounds_have_witnesses() {
    let bound = |problem: &Problem, witness: BoundWitness, bound: i64| {
        verdict(problem, &Certificate { witness, bound: Cycles(bound), below: Cycles(bound), ..empty() })
    };
    let accepted = |below: i64| format!("below {below}: 0 proofs, 0 clauses, 0 lemmas, 0 steps");
    let refused = |below: i64, why: &str| {
        format!("the witness does not prove that every interval below {below} cycles is impossible: {why}")
    };
    let problem = problem();
    let of = |witness: &BoundWitness, proves: i64| {
        assert_eq!(bound(&problem, witness.clone(), proves), accepted(proves), "{witness:?}");
        let more = refused(proves + 1, &format!("it proves {proves}"));
        assert_eq!(bound(&problem, witness.clone(), proves + 1), more, "{witness:?}");
    };
    of(&BoundWitness::Trivial, 1);
    of(&BoundWitness::Resource(UnitId::new(0)), 4);
    of(&BoundWitness::Resource(UnitId::new(1)), 5);
    of(&BoundWitness::Operation(OpId::new(2)), 5);
    // Five cycles on two groups.
    of(&BoundWitness::GroupWork, 3);
    for operation in [0, 1, 3] {
        let none = refused(1, "it names no synchronous operation");
        assert_eq!(bound(&problem, BoundWitness::Operation(OpId::new(operation)), 1), none);
    }
    let overlapping = ModelOptions { exclusive_issue: false, ..ModelOptions::default() };
    let overlapping = changed(machine(), overlapping, |_| {});
    for witness in [BoundWitness::GroupWork, BoundWitness::Operation(OpId::new(2))] {
        assert_eq!(bound(&overlapping, witness, 1), refused(1, "synchronous operations may overlap"));
    }
    let no_unit = refused(1, "it names a unit that does not exist");
    assert_eq!(bound(&problem, BoundWitness::Resource(UnitId::new(3)), 1), no_unit);
}

#[test]
fn where_reservations_begin_late_every_interval_is_rejected_by_itself() {
    let late = |start: i64| {
        changed(Resources { shared_memory: Bytes(1023), ..machine() }, ModelOptions::default(), |text| {
            text["operations"][1]["units"][0] = json!({"unit": "tensor", "start": start, "cycles": 3});
        })
    };
    let said = |problem: &Problem, intervals: &[i64]| {
        let proofs = intervals.iter().map(|i| proof(*i, &[], &[("0", "overfull-rings")], "")).collect();
        verdict(problem, &Certificate { proofs, below: Cycles(4), ..empty() })
    };
    assert_eq!(said(&late(0), &[3]), "below 4: 1 proofs, 1 clauses, 0 lemmas, 0 steps");
    assert_eq!(said(&late(1), &[3]), "nothing rejects the interval of 1 cycles");
    assert_eq!(said(&late(1), &[1, 3]), "nothing rejects the interval of 2 cycles");
    assert_eq!(said(&late(1), &[3, 2, 1]), "below 4: 3 proofs, 3 clauses, 0 lemmas, 0 steps");
    assert_eq!(said(&late(1), &[2, 1]), "nothing rejects the interval of 3 cycles");
}

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
    // The exponential opens group 2 only after the multiply opened group 1.
    let opened = ["group 1 1", "group 2 2"];
    holds_with_all(&free, &opened, "1 -2", "group-order 2 2");
    assert!(!holds(&free, &["group 2 1", "group 2 2"], "1 -2 0", "group-order 2 2"));
    assert!(!holds(&free, &opened, "1 -2 0", "group-order 1 2"));
    assert!(holds(&free, &["group 1 2"], "-1 0", "group-order 1 2"), "nothing comes before the multiply on group 1");
    assert!(!holds(&free, &["group 1 1"], "-1 0", "group-order 1 1"));
}

/// A load, and in each sub-tile a multiply and an exponential.
fn tiles(count: usize, change: impl Fn(&mut Value)) -> Problem {
    changed(machine(), ModelOptions::default(), |text| {
        let operations = text["operations"].as_array().unwrap().clone();
        let dependences = text["dependences"].as_array().unwrap().clone();
        let (mut all, mut between) = (vec![operations[0].clone()], Vec::new());
        for tile in 0..count {
            let named = |name: &Value| match name.as_str() {
                Some("load") => name.clone(),
                name => format!("{} {tile}", name.unwrap()).into(),
            };
            for operation in &operations[1..] {
                let mut operation = operation.clone();
                operation["name"] = named(&operation["name"]);
                operation["sub_tile"] = tile.into();
                all.push(operation);
            }
            for dependence in &dependences {
                let mut dependence = dependence.clone();
                for end in ["from", "to"] {
                    dependence[end] = named(&dependence[end]);
                }
                between.push(dependence);
            }
        }
        (text["operations"], text["dependences"]) = (all.into(), between.into());
        change(text);
    })
}

#[test]
fn sub_tiles_that_are_alike_may_be_in_order() {
    let in_order = |problem: &Problem, first: usize, second: usize| {
        let atom = format!("later {first} {second} {first} {second} 0");
        holds(problem, &[&atom], "1 0", &format!("sub-tile-order {first} {second}"))
    };
    let alike = tiles(3, |_| {});
    assert!(in_order(&alike, 1, 3) && in_order(&alike, 3, 5));
    // Only neighbours, by their first operations, in this order, and not by less than what is said.
    for (first, second) in [(1, 5), (3, 1), (2, 4), (1, 4), (2, 3), (0, 1)] {
        assert!(!in_order(&alike, first, second), "{first} {second}");
    }
    assert!(!holds(&alike, &["later 1 3 1 3 1"], "1 0", "sub-tile-order 1 3"));
    assert!(holds(&alike, &["later 1 3 1 3 -1", "later 1 3 1 3 0"], "1 2 0", "sub-tile-order 1 3"));
    let two = |change: &dyn Fn(&mut Value)| in_order(&tiles(2, change), 1, 3);
    assert!(two(&|text| text["operations"][3]["kind"] = "another".into()), "kinds are names");
    // Anything that tells them apart.
    assert!(!two(&|text| text["operations"][3]["latency"] = 9.into()));
    assert!(!two(&|text| text["operations"][4]["handoff"] = 1.into()));
    assert!(!two(&|text| text["dependences"][3]["delay"] = 9.into()));
    assert!(!two(&|text| text["dependences"][3]["hold"] = 9.into()));
    assert!(!two(&|text| text["dependences"][2]["blocking"] = false.into()));
    assert!(!two(&|text| drop(text["dependences"].as_array_mut().unwrap().pop())));
    assert!(!two(&|text| {
        let more = json!({"name": "more", "kind": "exp", "units": [], "cycles": 1, "latency": 1, "sub_tile": 1});
        text["operations"].as_array_mut().unwrap().push(more);
    }));
    assert!(!two(&|text| {
        let across = json!({"from": "exponential 0", "to": "multiply 1", "delay": 0, "value": false});
        text["dependences"].as_array_mut().unwrap().push(across);
    }));
    // What goes from each to the other is as symmetric.
    assert!(two(&|text| {
        for (from, to) in [("exponential 0", "multiply 1"), ("exponential 1", "multiply 0")] {
            let across = json!({"from": from, "to": to, "delay": 0, "distance": 1, "value": false});
            text["dependences"].as_array_mut().unwrap().push(across);
        }
    }));
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
    // The multiply takes four cycles: the exponential comes four after it, or it five after the exponential.
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
        assert!(!holds(&problem, &["same 1 2", "bound 5 3 5", "bound 3 5 4"], "-1 2 3 0", "exclusive 2 1 0"), "{why}");
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
    // The exponential waits, always; the multiply is under way for a cycle by its issue, for four by the letter.
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
    // What takes no time stalls nobody by the letter.
    let atoms = ["same 1 2", "bound 3 5 0", "bound 5 3 1"];
    assert!(!holds(&with(0, Literal), &atoms, "-1 2 3 0", "concurrency 2 1 0"));
}

#[test]
fn registers_are_read_at_home_or_handed_over() {
    let with = |options: ModelOptions, distance: i64, value: bool| {
        changed(machine(), options, |text| {
            text["dependences"][1]["distance"] = distance.into();
            text["dependences"][1]["value"] = value.into();
        })
    };
    let every = ModelOptions::default();
    // 8 cycles and 3 for the hand-off.
    let atoms = ["same 1 2", "later 1 2 1 2 11", "later 1 2 1 2 12"];
    holds_with_all(&with(every, 0, true), &atoms, "1 2", "handoff 1");
    assert!(!holds(&with(every, 0, true), &atoms, "1 3 0", "handoff 1"));
    // Of an iteration before there is none, nor where none is allowed.
    let never = ModelOptions { cross_group_registers: false, ..every };
    for problem in [with(every, 1, true), with(never, 0, true), with(never, 1, true)] {
        holds_with_all(&problem, &atoms, "1", "handoff 1");
    }
    // What is no value, or in no register, is not handed over.
    assert!(!holds(&with(every, 0, false), &atoms, "1 2 0", "handoff 1"));
    assert!(!holds(&with(every, 0, true), &["same 0 1", "later 0 1 0 1 0"], "1 2 0", "handoff 0"));
}
