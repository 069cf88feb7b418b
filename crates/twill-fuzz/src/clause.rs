//! Target: the clauses of certificates, one at a time.
//!
//! A proof that nothing exists is about no schedule, so a false clause in it may go unseen. Here clauses are taken from
//! proofs, changed by a little, and put to the checker for an interval that has a schedule: what the checker accepts must
//! be true of that schedule, by what the atoms mean ([`meaning`]). Clauses that pick one of several equal schedules are
//! left out.

mod meaning;

use crate::certificate::easier;
use crate::clause::meaning::Meaning;
use crate::optimum::Question;
use crate::sample;
use crate::tape::Tape;
use twill_check::{CertificateError, verify_certificate};
use twill_exact::{Budget, SearchOptions, certify, schedule};
use twill_graph::proof::{Atom, BoundWitness, Certificate, Clauses, Literal, Proof, Reason};
use twill_graph::{Cycles, Problem, Schedule};

/// The outcome of the clauses of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The checker rejected this many.
    pub rejected: u64,
    /// It accepted this many, all of them true.
    pub accepted: u64,
}

/// Clauses that are tried of one proof.
const CLAUSES: usize = 60;

/// Clauses of a problem's proofs, some changed by a little, and an easier problem that has a schedule.
pub(crate) struct Derived {
    /// The easier problem.
    pub(crate) problem: Problem,
    /// Its schedule.
    schedule: Schedule,
    /// The source of the clauses; only its atoms are used.
    pub(crate) atoms: Vec<Atom>,
    /// Proofs of one clause each.
    pub(crate) proofs: Vec<Proof>,
}

/// The question that the bytes encode.
pub(crate) fn derived(bytes: &[u8]) -> Option<Derived> {
    let mut tape = Tape::new(bytes);
    let question = Question::new(sample::problem(&mut tape)?);
    let certificate = certify(&question.problem, &question.by_engine(), &Budget::default()).ok()?;
    if certificate.proofs.is_empty() {
        return None;
    }
    let same = tape.one_in(3);
    let problem = if same { question.problem } else { easier(&mut tape, &question.problem)? };
    let options = SearchOptions { largest_interval: Some(Cycles(2 * question.largest)), ..SearchOptions::default() };
    let report = schedule(&problem, &options, &mut |_| {});
    let schedule = report.outcome.schedule()?.clone();
    let proof = tape.pick(&certificate.proofs)?;
    let mut proofs = Vec::new();
    for _ in 0..CLAUSES.min(proof.clauses.len()) {
        let at = tape.index(proof.clauses.len());
        let Some((clause, reason)) = proof.clauses.iter().nth(at) else { continue };
        proofs.extend(changed(&mut tape, schedule.interval.0, &proof.atoms, clause, *reason));
    }
    Some(Derived { problem, schedule, atoms: proof.atoms.clone(), proofs })
}

/// Puts clauses of a problem's proofs to the checker, about an easier problem that has a schedule.
///
/// # Panics
/// When it accepts one that is not true of the schedule.
pub fn check(bytes: &[u8]) -> Judged {
    let mut judged = Judged::default();
    let Some(derived) = derived(bytes) else { return judged };
    let meaning = Meaning::new(&derived.problem, &derived.schedule);
    for one in derived.proofs.iter().filter(|one| !one.clauses.iter().any(|(_, reason)| picks(*reason))) {
        judge(&derived.problem, &meaning, one, &mut judged);
    }
    judged
}

/// Returns whether a clause picks one of several schedules that are as good.
fn picks(reason: Reason) -> bool {
    matches!(reason, Reason::GroupOrder { .. } | Reason::UsedOrder { .. } | Reason::SubTileOrder { .. })
}

/// A certificate that claims nothing, with one proof.
pub(crate) fn claim_of(proof: &Proof) -> Certificate {
    Certificate {
        below: Cycles(1),
        infeasible: false,
        bound: Cycles(1),
        witness: BoundWitness::Trivial,
        conflicts: Vec::new(),
        proofs: vec![proof.clone()],
    }
}

fn judge(problem: &Problem, meaning: &Meaning, one: &Proof, judged: &mut Judged) {
    match verify_certificate(problem, &claim_of(one)) {
        // The clause stands, and nothing follows from it; or it is a contradiction by itself.
        Err(CertificateError::Open { .. }) | Ok(_) => {
            for (clause, reason) in one.clauses.iter() {
                let holds = clause.iter().any(|&l| meaning.holds(&one.atoms, l));
                let atoms = || clause.iter().map(|l| (*l, one.atoms.get(l.unsigned_abs() as usize - 1)));
                let atoms = || atoms().collect::<Vec<_>>();
                assert!(holds, "{reason:?} of {:?} is not true: {meaning:#?}", atoms());
            }
            judged.accepted += 1;
        }
        Err(_) => judged.rejected += 1,
    }
}

/// One clause, and perhaps something different about it.
fn changed(tape: &mut Tape, interval: i64, atoms: &[Atom], clause: &[Literal], reason: Reason) -> Option<Proof> {
    let (mut atoms, mut clause) = (atoms.to_vec(), clause.to_vec());
    let which = tape.index(clause.len());
    let change = tape.below(6);
    match change {
        0 | 1 if !clause.is_empty() => drop(clause.remove(which)),
        2 | 3 if !clause.is_empty() => {
            let by = if tape.one_in(2) { 1 } else { -1 };
            match &mut atoms[clause[which].unsigned_abs() as usize - 1] {
                Atom::Bound { least, .. } | Atom::Later { least, .. } => *least += by,
                Atom::Alive { copies: count, .. } | Atom::Ring { slots: count, .. } => *count += by,
                Atom::Registers { least, .. } => *least = least.saturating_add_signed(8 * by as i32),
                _ => clause[which] = -clause[which],
            }
        }
        _ => {}
    }
    let mut clauses = Clauses::default();
    clauses.push(clause, reason);
    let proof = Proof { interval, atoms, clauses, steps: Clauses::default() };
    if change != 4 {
        return Some(proof);
    }
    // Another number in the reason.
    let meanings = proof.meanings();
    let (head, last) = meanings.trim_end().rsplit_once('\n')?;
    let mut words: Vec<String> = last.split(' ').map(str::to_owned).collect();
    let which = 2 + tape.index(words.len().saturating_sub(2));
    let number: i64 = words.get(which)?.parse().ok()?;
    words[which] = (number + tape.between(-1, 1)).to_string();
    Proof::read("fuzz", &proof.cnf(), "", &format!("{head}\n{}\n", words.join(" "))).ok()
}
