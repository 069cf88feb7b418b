//! Proofs in few words, about a load, an MMA and an exponential.

use crate::verdict;
use serde_json::{Value, json};
use twill_graph::format::GraphFile;
use twill_graph::proof::{BoundWitness, Certificate, Proof};
use twill_graph::{Cycles, ModelOptions, Problem, Resources};

/// Group 0 loads, groups 1 and 2 compute.
pub fn machine() -> Resources {
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

/// A load (0), an MMA (1) and an exponential (2), one after the other.
pub fn problem() -> Problem {
    problem_on(machine())
}

/// The same elsewhere.
pub fn problem_on(machine: Resources) -> Problem {
    changed(machine, ModelOptions::default(), |_| {})
}

/// The same with something else in its graph.
pub fn changed(machine: Resources, options: ModelOptions, change: impl Fn(&mut Value)) -> Problem {
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
pub fn empty() -> Certificate {
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
pub fn proof(interval: i64, atoms: &[&str], clauses: &[(&str, &str)], steps: &str) -> Proof {
    let lines = |word: &str, each: Vec<&str>| each.iter().map(|line| format!("{word} {line}\n")).collect::<String>();
    let reasons = clauses.iter().map(|(_, reason)| *reason).collect();
    let why =
        format!("twill-proof 1\ninterval {interval}\n") + &lines("atom", atoms.to_vec()) + &lines("clause", reasons);
    let cnf: String = clauses.iter().map(|(clause, _)| format!("{clause}\n")).collect();
    let cnf = format!("p cnf {} {}\n{cnf}", atoms.len(), clauses.len());
    Proof::read("hand", &cnf, steps, &why).unwrap()
}

/// The message about it.
pub fn said(problem: &Problem, interval: i64, atoms: &[&str], clauses: &[(&str, &str)], steps: &str) -> String {
    verdict(problem, &Certificate { proofs: vec![proof(interval, atoms, clauses, steps)], ..empty() })
}

pub const OPEN: &str = "the derivation does not reach the empty clause";

/// Returns whether a clause of these atoms holds for a reason.
pub fn holds(problem: &Problem, atoms: &[&str], clause: &str, reason: &str) -> bool {
    let said = said(problem, 10, atoms, &[(clause, reason)], "");
    let wrong = "proof at 10 cycles: clause 1 does not follow from its reason";
    assert!(said.ends_with(OPEN) || said.starts_with(wrong) || said.starts_with("below 1:"), "{said}");
    !said.starts_with(wrong)
}

/// The clause holds for the reason, and without any of its literals it does not.
pub fn holds_with_all(problem: &Problem, atoms: &[&str], clause: &str, reason: &str) {
    assert!(holds(problem, atoms, &format!("{clause} 0"), reason), "{clause} of {atoms:?}: {reason}");
    let literals: Vec<&str> = clause.split(' ').collect();
    for without in 0..literals.len() {
        let mut fewer = literals.clone();
        fewer[without] = "";
        let fewer = fewer.join(" ") + " 0";
        assert!(!holds(problem, atoms, &fewer, reason), "{fewer} of {atoms:?}: {reason}");
    }
}
