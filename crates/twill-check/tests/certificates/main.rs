//! Certificates and single clauses, right and nearly right, and the checker's verdict on each.
//!
//! `cases.json` is made by `cargo run --release -p twill-fuzz --example cases`, with the engine's proofs; that what is accepted
//! there is true was seen by brute force. A change of the checker that changes a verdict has to be explained.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod claims;
mod clauses;
mod derivations;
mod sub_tiles;
mod sums;
mod support;

use serde::Deserialize;
use support::empty;
use twill_check::{Evidence, verify_certificate};
use twill_graph::Problem;
use twill_graph::format::{CertificateFile, ProblemEntry};
use twill_graph::proof::{Certificate, Proof};

#[derive(Deserialize)]
struct Case {
    problem: ProblemEntry,
    #[serde(default)]
    certificates: Vec<CertificateCase>,
    #[serde(default)]
    atoms: Vec<String>,
    #[serde(default)]
    clauses: Vec<ClauseCase>,
}

#[derive(Deserialize)]
struct CertificateCase {
    certificate: CertificateFile,
    proofs: Vec<[String; 3]>,
    verdict: String,
}

#[derive(Deserialize)]
struct ClauseCase {
    clause: String,
    reason: String,
    atom: Option<(usize, String)>,
    verdict: String,
}

fn cases() -> Vec<(Case, Problem)> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases.json")).unwrap();
    let problem = |case: &Case| {
        let ProblemEntry { graph, resources, options } = case.problem.clone();
        Problem::new(graph.graph().unwrap(), resources, options).unwrap()
    };
    cases.into_iter().map(|case| (problem(&case), case)).map(|(problem, case)| (case, problem)).collect()
}

fn verdict(problem: &Problem, certificate: &Certificate) -> String {
    match verify_certificate(problem, certificate) {
        Ok(Evidence { below, everything, proofs, clauses, lemmas, steps }) => {
            let all = if everything { ", and everything" } else { "" };
            format!("below {below}{all}: {proofs} proofs, {clauses} clauses, {lemmas} lemmas, {steps} steps")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn certificates_are_judged_as_before() {
    let mut accepted = 0;
    let cases = cases();
    for (case, problem) in &cases {
        for CertificateCase { certificate, proofs, verdict: expected } in &case.certificates {
            let read = |[cnf, drat, why]: &[String; 3]| Proof::read("case", cnf, drat, why).unwrap();
            let proofs = proofs.iter().map(read).collect();
            let certificate = Certificate { proofs, ..certificate.certificate(problem).unwrap() };
            assert_eq!(verdict(problem, &certificate), *expected, "{}", certificate_text(&certificate));
            accepted += usize::from(expected.starts_with("below"));
        }
    }
    let all: usize = cases.iter().map(|(case, _)| case.certificates.len()).sum();
    assert!(accepted > 10 && all > 2 * accepted, "{accepted} of {all} are accepted");
}

#[test]
fn clauses_are_judged_as_before() {
    let (mut accepted, mut all) = (0, 0);
    for (case, problem) in cases() {
        for tried in &case.clauses {
            let mut atoms = case.atoms.clone();
            if let Some((at, text)) = &tried.atom {
                atoms[*at].clone_from(text);
            }
            let why = format!("twill-proof 1\n{}\n{}\n", atoms.join("\n"), tried.reason);
            let cnf = format!("p cnf {} 1\n{}\n", atoms.len() - 1, tried.clause);
            let proof = Proof::read("case", &cnf, "", &why).unwrap();
            let certificate = Certificate { proofs: vec![proof], ..empty() };
            let said = verdict(&problem, &certificate);
            assert_eq!(said, tried.verdict, "{} {}: {atoms:#?}", tried.clause, tried.reason);
            // The clause stands; that nothing follows from it alone is what is said then.
            accepted += usize::from(!said.contains("clause 1 does not follow") && !said.contains("means nothing"));
            all += 1;
        }
    }
    assert!(accepted > 50 && all > accepted + 50, "{accepted} of {all} are accepted");
}

fn certificate_text(certificate: &Certificate) -> String {
    certificate.proofs.iter().map(|p| p.meanings() + &p.cnf() + &p.drat()).collect()
}
