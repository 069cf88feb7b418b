//! Cases for tests of the checker that have no engine: problems with certificates and clauses, and what the checker says.
//!
//! They are what the targets [`certificate`](crate::certificate) and [`clause`](crate::clause) try, a few of every kind; that
//! what is accepted is true was seen by those.

use crate::certificate::{self, Other};
use crate::clause::{self, claim_of};
use crate::input;
use serde::Serialize;
use std::collections::BTreeMap;
use twill_check::{CertificateError, Evidence, verify_certificate};
use twill_graph::Problem;
use twill_graph::format::{CertificateFile, ProblemEntry};
use twill_graph::proof::{Certificate, Proof};

/// A problem, and what the checker says of some certificates and clauses.
#[derive(Serialize)]
pub struct Case {
    problem: ProblemEntry,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<CertificateCase>,
    /// A line each, as in `.why` files, with the interval before them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    atoms: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clauses: Vec<ClauseCase>,
}

/// A certificate, its proofs (`.cnf`, `.drat`, `.why`), and what the checker says.
#[derive(Serialize)]
struct CertificateCase {
    certificate: CertificateFile,
    proofs: Vec<[String; 3]>,
    verdict: String,
}

/// A clause about the atoms of the case, one of which may be another.
#[derive(Serialize)]
struct ClauseCase {
    clause: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    atom: Option<(usize, String)>,
    verdict: String,
}

/// Most characters of a certificate's proofs, so that files stay small.
const LARGEST: usize = 4000;

/// Clauses that make a problem worth keeping.
const LEAST: usize = 5;

/// Cases: this many of each kind, more clauses of such problems, from the inputs of this many seeds.
pub fn cases(seeds: u64, of_a_kind: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut seen = BTreeMap::new();
    // Problems with much to say first: they take more room than clauses.
    for least in [LEAST, 1] {
        let most = if least == 1 { of_a_kind } else { LEAST * of_a_kind };
        cases.extend((0..seeds).filter_map(|seed| clauses(seed, least, most, &mut seen)));
    }
    let mut seen = BTreeMap::new();
    cases.extend((0..seeds).filter_map(|seed| certificates(seed, of_a_kind, &mut seen)));
    cases
}

/// The checker's verdict, in words.
fn verdict(problem: &Problem, certificate: &Certificate) -> (String, String) {
    match verify_certificate(problem, certificate) {
        Ok(Evidence { below, everything, proofs, clauses, lemmas, steps }) => {
            let all = if everything { ", and everything" } else { "" };
            let said =
                format!("below {below}{all}: {proofs} proofs, {clauses} clauses, {lemmas} lemmas, {steps} steps");
            (said, "accepted".into())
        }
        Err(error) => (error.to_string(), kind(&error)),
    }
}

/// The error without its numbers.
fn kind(error: &CertificateError) -> String {
    format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// Returns whether there is room for one more of this kind.
fn is_new(seen: &mut BTreeMap<String, usize>, kind: String, most: usize) -> bool {
    let count = seen.entry(kind).or_default();
    *count += 1;
    *count <= most
}

fn clauses(seed: u64, least: usize, most: usize, seen: &mut BTreeMap<String, usize>) -> Option<Case> {
    let before = seen.clone();
    let derived = clause::derived(&input(seed, 480))?;
    let lines = |proof: &Proof| proof.meanings().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let mut base = Proof { atoms: derived.atoms, ..Proof::default() };
    base.interval = derived.proofs.first()?.interval;
    let atoms = lines(&base);
    let mut clauses = Vec::new();
    for proof in &derived.proofs {
        let mut changed = lines(proof);
        let reason = changed.pop()?;
        let atom = changed.iter().zip(&atoms).position(|(new, old)| new != old).map(|at| (at, changed[at].clone()));
        let (said, kind) = verdict(&derived.problem, &claim_of(proof));
        let word: Vec<&str> = reason.split(' ').take(2).collect();
        let about = format!("{} {:?} {kind}", word.join(" "), atom.as_ref().map(|(_, text)| text.split(' ').nth(1)));
        if is_new(seen, about, most) {
            let clause = proof.cnf().lines().last()?.to_owned();
            clauses.push(ClauseCase { clause, reason, atom, verdict: said });
        }
    }
    if clauses.len() < least {
        *seen = before;
        return None;
    }
    Some(Case { problem: ProblemEntry::new(&derived.problem), certificates: Vec::new(), atoms, clauses })
}

fn certificates(seed: u64, of_a_kind: usize, seen: &mut BTreeMap<String, usize>) -> Option<Case> {
    let (question, whole, other) = certificate::derived(&input(seed, 320))?;
    let (problem, certificate, how) = match other {
        Other::Easier(easier) => (easier?, whole, "easier"),
        Other::Altered(certificate) => (question.problem, certificate?, "altered"),
    };
    let proofs: Vec<[String; 3]> = certificate.proofs.iter().map(|p| [p.cnf(), p.drat(), p.meanings()]).collect();
    if proofs.iter().flatten().map(String::len).sum::<usize>() > LARGEST {
        return None;
    }
    let (said, kind) = verdict(&problem, &certificate);
    let file = CertificateFile::new(&problem, &certificate);
    let witness = format!("{:?}", certificate.witness);
    let witness = witness.split('(').next().unwrap_or_default();
    let about = format!("{how} {kind} {witness} {} {}", proofs.len().min(2), certificate.conflicts.len().min(1));
    is_new(seen, about, of_a_kind).then(|| Case {
        problem: ProblemEntry::new(&problem),
        certificates: vec![CertificateCase { certificate: file, proofs, verdict: said }],
        atoms: Vec::new(),
        clauses: Vec::new(),
    })
}
