//! A log of the solver's steps that can be checked: meanings of variables, clauses with
//! their reasons, lemmas of the theory, and what was learnt.

use batsat::Lit;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use twill_graph::OpId;
use twill_graph::proof::{Atom, Literal, Point, Proof, ProofStep, Reason};

use crate::theory::{Bound, Node};

/// A log that the engine, the theory and the solver's callbacks write to; nothing where no proof is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Option<Rc<RefCell<Record>>>);

#[derive(Debug)]
struct Record {
    proof: Proof,
    operations: usize,
    /// Lemmas already written: the theory gives the same reason many times.
    lemmas: HashSet<Vec<Literal>>,
}

fn literal(l: Lit) -> Literal {
    let number = l.var().idx() as Literal + 1;
    if l.sign() { number } else { -number }
}

impl Log {
    /// A log of the question at `interval` about a graph with N operations.
    pub(crate) fn start(interval: i64, operations: usize) -> Log {
        let proof = Proof { interval, ..Proof::default() };
        Log(Some(Rc::new(RefCell::new(Record { proof, operations, lemmas: HashSet::new() }))))
    }

    /// Returns whether anything is written.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn write(&self, what: impl FnOnce(&mut Record)) {
        if let Some(record) = &self.0 {
            what(&mut record.borrow_mut());
        }
    }

    /// The next variable and what it means.
    pub(crate) fn atom(&self, variable: Lit, meaning: impl FnOnce() -> Atom) {
        self.write(|r| {
            debug_assert_eq!(variable.var().idx() as usize, r.proof.atoms.len());
            r.proof.atoms.push(meaning());
        });
    }

    /// The next variable, which stands for a conjunction.
    pub(crate) fn all(&self, variable: Lit, literals: &[Lit]) {
        self.atom(variable, || Atom::All(literals.iter().map(|&l| literal(l)).collect()));
    }

    /// The next variable, which stands for a bound.
    pub(crate) fn bound(&self, variable: Lit, bound: Bound) {
        self.write(|r| {
            let point = |node: Node| match node.index() {
                0 => Point::Origin,
                i if i <= r.operations => Point::Slot(OpId::new(i - 1)),
                i => Point::Stage(OpId::new(i - 1 - r.operations)),
            };
            debug_assert_eq!(variable.var().idx() as usize, r.proof.atoms.len());
            r.proof.atoms.push(Atom::Bound { from: point(bound.from), to: point(bound.to), least: bound.least });
        });
    }

    /// The definition of an atom.
    pub(crate) fn definition(of: Lit) -> Reason {
        Reason::Definition { atom: of.var().idx() as Literal + 1 }
    }

    /// A clause that holds.
    pub(crate) fn clause(&self, clause: &[Lit], reason: Reason) {
        self.write(|r| r.proof.clauses.push(clause.iter().map(|&l| literal(l)), reason));
    }

    /// A clause that the theory gives, unless it is written already.
    pub(crate) fn lemma(&self, clause: impl IntoIterator<Item = Lit>, reason: Reason) {
        self.write(|r| {
            let mut clause: Vec<Literal> = clause.into_iter().map(literal).collect();
            clause.sort_unstable();
            clause.dedup();
            if r.lemmas.insert(clause.clone()) {
                r.proof.clauses.push(clause, reason);
            }
        });
    }

    /// A clause that follows by unit propagation, or is dropped.
    pub(crate) fn step(&self, clause: &[Lit], step: ProofStep) {
        self.write(|r| r.proof.steps.push(clause.iter().map(|&l| literal(l)), step));
    }

    /// The proof, once the solver has said "unsatisfiable".
    pub(crate) fn finish(&self) -> Option<Proof> {
        let record = self.0.as_ref()?;
        let mut proof = std::mem::take(&mut record.borrow_mut().proof);
        proof.steps.push([], ProofStep::Learn);
        Some(proof)
    }
}
