//! The theory of the SAT solver: rows of the modulo reservation table hold no more than their resource has, and
//! every operation finds a row.

use super::domains::Domain;
use super::hall::Matching;
use crate::theory::{Demand, Sums};
use batsat::{Lit, Theory, TheoryArg, lbool};
use std::cell::Cell;
use std::rc::Rc;

pub(crate) struct SlotTheory {
    pub(crate) domains: Vec<Domain>,
    pub(crate) sums: Sums,
    pub(crate) matchings: Vec<Matching>,
    truth: Lit,
    seen: usize,
    levels: Vec<usize>,
    explanation: Vec<Lit>,
    work: Rc<Cell<u64>>,
}

impl SlotTheory {
    pub(crate) fn new(truth: Lit, work: Rc<Cell<u64>>) -> SlotTheory {
        SlotTheory {
            domains: Vec::new(),
            sums: Sums::default(),
            matchings: Vec::new(),
            truth,
            seen: 0,
            levels: Vec::new(),
            explanation: Vec::new(),
            work,
        }
    }

    fn check(&mut self, solver: &mut TheoryArg) {
        let new = solver.model().len() - self.seen;
        self.work.set(self.work.get() + new as u64);
        for &literal in &solver.model()[self.seen..] {
            self.sums.count(literal);
        }
        self.seen = solver.model().len();
        let mut implied = false;
        while let Some(demand) = self.sums.next(|literal| value(solver, literal)) {
            match demand {
                Demand::Conflict(_, core) => return self.refuse(core, solver),
                Demand::Imply(literal) => {
                    implied = true;
                    if !solver.propagate(literal) {
                        return;
                    }
                }
            }
        }
        // Consequences of the last implications come first.
        if implied || new == 0 {
            return;
        }
        for k in 0..self.matchings.len() {
            let conflict = self.matchings[k].conflict(&self.domains, &|literal| value(solver, literal));
            if let Some(core) = conflict {
                return self.refuse(core, solver);
            }
        }
    }

    fn refuse(&self, core: Vec<Lit>, solver: &mut TheoryArg) {
        let mut clause: Vec<Lit> = core.into_iter().filter(|&l| l != self.truth).map(|l| !l).collect();
        if clause.is_empty() {
            clause.push(!self.truth);
        }
        solver.raise_conflict(&clause, false);
    }
}

fn value(solver: &TheoryArg, literal: Lit) -> Option<bool> {
    let value = solver.value(literal.var());
    (value != lbool::UNDEF).then(|| (value == lbool::TRUE) == literal.sign())
}

impl Theory for SlotTheory {
    fn final_check(&mut self, solver: &mut TheoryArg) {
        self.check(solver);
    }

    fn create_level(&mut self) {
        self.sums.push_level();
        self.levels.push(self.seen);
    }

    fn pop_levels(&mut self, count: usize) {
        self.sums.pop_levels(count);
        let keep = self.levels.len().saturating_sub(count);
        if let Some(&seen) = self.levels.get(keep) {
            self.seen = seen;
            self.levels.truncate(keep);
        }
    }

    fn n_levels(&self) -> usize {
        self.levels.len()
    }

    fn partial_check(&mut self, solver: &mut TheoryArg) {
        self.check(solver);
    }

    fn explain_propagation(&mut self, literal: Lit) -> &[Lit] {
        self.explanation = self.sums.reason(literal).map(|(_, reason)| reason.to_vec()).unwrap_or_default();
        &self.explanation
    }
}
