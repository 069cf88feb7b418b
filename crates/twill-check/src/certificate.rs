//! Checks certificates: that every interval below some bound has no schedule (`docs/solvers.md`).
//!
//! Nothing of the solver is used. A bound is worked out again from its witness. A proof by search is a
//! list of clauses and a derivation: each clause must be an instance of a constraint of `docs/model.md`,
//! built here anew from the problem, or a lemma of arithmetic, which is added up; the derivation must lead
//! from them to the empty clause by unit propagation alone.
//!
//! # What is trusted
//! This module, the statements of `docs/model.md`, and its two theorems: that feasibility is monotone in the
//! interval where every reservation starts with its operation, and that nothing new is possible above the sum `S`.

mod atoms;
mod bounds;
mod clauses;
mod difference;
mod items;
mod overfull;
mod propagation;
mod symmetry;

use atoms::Atoms;
use propagation::Propagation;
use thiserror::Error;
use twill_graph::proof::{Certificate, Proof, ProofStep, Reason};
use twill_graph::{Cycles, Liveness, Problem, StageWindow};

/// Why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertificateError {
    /// A model variant that certificates do not cover.
    #[error("certificates say nothing about `{option}`")]
    Unsupported {
        /// The option.
        option: &'static str,
    },
    /// The witness does not prove the bound.
    #[error("the witness does not prove that every interval below {bound} cycles is impossible: {why}")]
    Bound {
        /// The claim.
        bound: Cycles,
        /// The statement that it proves.
        why: String,
    },
    /// An interval is neither below the bound nor rejected.
    #[error("nothing rejects the interval of {interval} cycles")]
    Missing {
        /// The interval.
        interval: Cycles,
    },
    /// An operation does not overlap its own next iteration.
    #[error("no operation with index {operation} is out of reach at {interval} cycles by itself")]
    Conflict {
        /// The interval.
        interval: Cycles,
        /// Index of the operation.
        operation: usize,
    },
    /// An interval whose multiples might not be computed exactly.
    #[error("a proof at {interval} cycles: certificates are for intervals from 1 to {most}", most = LARGEST_INTERVAL)]
    Interval {
        /// The interval.
        interval: i64,
    },
    /// An atom means nothing in this problem.
    #[error("proof at {interval} cycles: atom {atom} means nothing in this problem")]
    Atom {
        /// The interval.
        interval: i64,
        /// Number of the atom, from 1.
        atom: usize,
    },
    /// A clause that does not follow from the reason given for it.
    #[error("proof at {interval} cycles: clause {clause} does not follow from its reason ({reason:?})")]
    Clause {
        /// The interval.
        interval: i64,
        /// Position of the clause, from 1.
        clause: usize,
        /// The reason.
        reason: Reason,
    },
    /// A literal of an atom that does not exist.
    #[error("proof at {interval} cycles: {part} {position} speaks of an atom that does not exist")]
    Literal {
        /// The interval.
        interval: i64,
        /// `clause` or `step`.
        part: &'static str,
        /// Position, from 1.
        position: usize,
    },
    /// A step that does not follow by unit propagation.
    #[error("proof at {interval} cycles: step {step} of the derivation does not follow by unit propagation")]
    Step {
        /// The interval.
        interval: i64,
        /// Position of the step, from 1.
        step: usize,
    },
    /// The derivation stops before a contradiction.
    #[error("proof at {interval} cycles: the derivation does not reach the empty clause")]
    Open {
        /// The interval.
        interval: i64,
    },
}

/// With at most 2^20 copies, slots of a ring and iterations of a distance (`atoms.rs` and `LoopGraph` refuse
/// more), every product stays far within 64 bits.
const LARGEST_INTERVAL: i64 = 1 << 40;

/// The statement that a certificate proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Every interval below this one has no schedule.
    pub below: Cycles,
    /// No interval has a schedule.
    pub everything: bool,
    /// Proofs by search.
    pub proofs: usize,
    /// Their clauses: instances of constraints.
    pub clauses: usize,
    /// Their clauses: lemmas of arithmetic (positive cycles and sums).
    pub lemmas: usize,
    /// Steps of their derivations.
    pub steps: usize,
}

/// Checks that a certificate proves what it claims of a problem.
///
/// # Errors
/// The first thing that does not follow.
pub fn verify_certificate(problem: &Problem, certificate: &Certificate) -> Result<Evidence, CertificateError> {
    let options = problem.options();
    if options.liveness != Liveness::Folded {
        return Err(CertificateError::Unsupported { option: "--liveness paper" });
    }
    if options.stage_window != StageWindow::Complete {
        return Err(CertificateError::Unsupported { option: "--stage-window paper" });
    }
    bounds::check(problem, certificate.bound, &certificate.witness)?;
    let mut evidence =
        Evidence { below: certificate.below, everything: false, proofs: 0, clauses: 0, lemmas: 0, steps: 0 };
    let mut rejected = Vec::new();
    for &(interval, op) in &certificate.conflicts {
        if interval < Cycles(1) || !bounds::is_out_of_reach(problem, op, interval.0) {
            return Err(CertificateError::Conflict { interval, operation: op.index() });
        }
        rejected.push(interval.0);
    }
    for proof in &certificate.proofs {
        check_proof(problem, proof, &mut evidence)?;
        rejected.push(proof.interval);
    }
    rejected.sort_unstable();
    // Feasibility is monotone in the interval: one rejection covers all smaller ones.
    let monotone = bounds::is_monotone(problem);
    let mut reached = certificate.bound.0;
    for interval in rejected {
        if monotone || interval == reached {
            reached = reached.max(interval.saturating_add(1));
        }
    }
    if reached < certificate.below.0 {
        return Err(CertificateError::Missing { interval: Cycles(reached) });
    }
    evidence.everything = certificate.infeasible && reached > bounds::largest_interval(problem);
    Ok(evidence)
}

fn check_proof(problem: &Problem, proof: &Proof, evidence: &mut Evidence) -> Result<(), CertificateError> {
    let interval = proof.interval;
    if !(1..=LARGEST_INTERVAL).contains(&interval) {
        return Err(CertificateError::Interval { interval });
    }
    let atoms = Atoms::new(problem, proof)?;
    let mut propagation = Propagation::new(proof.atoms.len());
    let exists = |clause: &[i32]| clause.iter().all(|l| (1..=proof.atoms.len()).contains(&(l.unsigned_abs() as usize)));
    for (at, (clause, &reason)) in proof.clauses.iter().enumerate() {
        if !exists(clause) {
            return Err(CertificateError::Literal { interval, part: "clause", position: at + 1 });
        }
        let holds = match reason {
            Reason::Difference => difference::is_lemma(&atoms, clause),
            Reason::Overfull { .. }
            | Reason::OverfullRegisters { .. }
            | Reason::OverfullRings
            | Reason::RegisterFile => overfull::is_lemma(&atoms, clause, reason),
            _ => clauses::is_instance(&atoms, clause, reason),
        };
        if !holds {
            return Err(CertificateError::Clause { interval, clause: at + 1, reason });
        }
        match reason {
            Reason::Difference | Reason::Overfull { .. } | Reason::OverfullRegisters { .. } => evidence.lemmas += 1,
            _ => evidence.clauses += 1,
        }
        propagation.add(clause);
    }
    for (at, (clause, step)) in proof.steps.iter().enumerate() {
        if !exists(clause) {
            return Err(CertificateError::Literal { interval, part: "step", position: at + 1 });
        }
        match step {
            ProofStep::Delete => propagation.delete(clause),
            ProofStep::Learn if propagation.follows(clause) => propagation.add(clause),
            ProofStep::Learn => return Err(CertificateError::Step { interval, step: at + 1 }),
        }
        evidence.steps += 1;
    }
    evidence.proofs += 1;
    if propagation.is_contradictory() { Ok(()) } else { Err(CertificateError::Open { interval }) }
}
