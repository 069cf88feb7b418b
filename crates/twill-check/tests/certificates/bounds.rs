//! Bounds, conflicts, and consequences of one rejected interval for others.

use crate::support::{OPEN, changed, empty, machine, problem, problem_on, proof, said};
use crate::verdict;
use serde_json::{Value, json};
use twill_graph::proof::{BoundWitness, Certificate};
use twill_graph::{Bytes, ComputePool, ConcurrencyWindow, Cycles, ModelOptions, OpId, Problem, Resources, UnitId};

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
    // The MMA takes its unit for four cycles, the exponential its group for five.
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
    // `S`: operations twice, with transfers (2·10 + 6, 2·8 + 8, 2·5 + 5), then dependences with handoffs and holds (8,
    // 8 + 3 + 5).
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
    // Five cycles, and one in which the MMA that waits for its load is issued, on two groups.
    of(&BoundWitness::GroupWork, 3);
    // On one. Without the wait, or where its window is empty, it takes no cycle; on another group neither, nor for its own
    // result of the iteration before.
    let one = Resources { compute_groups: ComputePool { maximum: 1, ..machine().compute_groups }, ..machine() };
    let literal = ModelOptions { concurrency_window: ConcurrencyWindow::Literal, ..ModelOptions::default() };
    let runs_on = |text: &mut Value| text["dependences"][0]["blocking"] = json!(false);
    let waits_for_itself = |text: &mut Value| {
        runs_on(text);
        let own =
            json!({"from": "multiply", "to": "multiply", "delay": 1, "distance": 1, "blocking": true, "value": true});
        text["dependences"].as_array_mut().unwrap().push(own);
    };
    let is_short = |text: &mut Value| {
        text["operations"][1]["cycles"] = json!(0);
        text["operations"][1]["units"] = json!([]);
    };
    for (problem, proves) in [
        (problem_on(one.clone()), 6),
        (changed(one.clone(), literal, |_| {}), 6),
        (changed(one.clone(), ModelOptions::default(), runs_on), 5),
        (changed(one.clone(), ModelOptions::default(), waits_for_itself), 5),
        (changed(one.clone(), ModelOptions::default(), is_short), 6),
        (changed(one.clone(), literal, is_short), 5),
        (changed(one, ModelOptions::default(), |text| text["operations"][1]["variable_latency"] = json!(true)), 5),
    ] {
        assert_eq!(bound(&problem, BoundWitness::GroupWork, proves), accepted(proves));
        let more = refused(proves + 1, &format!("it proves {proves}"));
        assert_eq!(bound(&problem, BoundWitness::GroupWork, proves + 1), more);
    }
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
