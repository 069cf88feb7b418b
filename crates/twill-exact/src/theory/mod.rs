//! The theory of the SAT solver: literals that stand for bounds of difference logic, and sums of
//! literals.

mod difference;
mod sums;

pub(crate) use difference::{Bound, DifferenceSystem, NO_PATH, Node};

use crate::proof_log::Log;
use batsat::{Lit, Theory, TheoryArg, lbool};
use difference::Improvement;
use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use sums::SumId;
pub(crate) use sums::{Demand, Origin, Sums};
use twill_graph::proof::Reason;

/// Pairs of nodes to look at in one unit of work: those of small graphs.
const UNIT: u64 = 1024;

/// Literals with their bounds, and the bounds in force along the solver's trail.
#[derive(Debug)]
pub(crate) struct DifferenceTheory {
    pub(crate) system: DifferenceSystem,
    pub(crate) sums: Sums,
    nodes: usize,
    /// Bound that a literal stands for, by the literal's index.
    bounds: Vec<Option<Bound>>,
    /// For every pair of nodes the literals that a longer path makes true, by ascending bound.
    watchers: Vec<Vec<(i64, Lit)>>,
    seen: usize,
    levels: Vec<usize>,
    implied: Vec<Lit>,
    improvements: Vec<Improvement>,
    explanation: Vec<Lit>,
    /// Literals that were last implied by a sum, not by a bound.
    by_sum: HashSet<Lit>,
    /// Bounds asserted so far, weighed by what they cost: the unit in which work is measured.
    work: Rc<Cell<u64>>,
    log: Log,
}

impl DifferenceTheory {
    pub(crate) fn new(system: DifferenceSystem, nodes: usize, work: Rc<Cell<u64>>, log: Log) -> Self {
        DifferenceTheory {
            system,
            sums: Sums::default(),
            nodes,
            bounds: Vec::new(),
            watchers: vec![Vec::new(); nodes * nodes],
            seen: 0,
            levels: Vec::new(),
            implied: Vec::new(),
            improvements: Vec::new(),
            explanation: Vec::new(),
            by_sum: HashSet::new(),
            work,
            log,
        }
    }

    /// Makes `literal` stand for `bound`, and its negation for the opposite.
    pub(crate) fn bind(&mut self, literal: Lit, bound: Bound) {
        for (literal, bound) in [(literal, bound), (!literal, bound.negated())] {
            let index = literal.idx() as usize;
            if self.bounds.len() <= index {
                self.bounds.resize(index + 1, None);
            }
            self.bounds[index] = Some(bound);
            let watchers = &mut self.watchers[bound.from.index() * self.nodes + bound.to.index()];
            let at = watchers.partition_point(|(least, _)| *least < bound.least);
            watchers.insert(at, (bound.least, literal));
        }
    }

    fn bound(&self, literal: Lit) -> Option<Bound> {
        self.bounds.get(literal.idx() as usize).copied().flatten()
    }

    /// Takes in new literals of the trail, and passes on what follows from them.
    fn propagate(&mut self, solver: &mut TheoryArg) {
        self.implied.clear();
        while self.seen < solver.model().len() {
            let literal = solver.model()[self.seen];
            self.seen += 1;
            self.sums.count(literal);
            let Some(bound) = self.bound(literal) else { continue };
            self.improvements.clear();
            let asserted = self.system.assert(bound, literal, &mut self.improvements);
            self.work.set(self.work.get() + 1 + self.system.effort() / UNIT);
            if let Err(core) = asserted {
                let clause = negated(core);
                self.log.lemma(clause.iter().copied(), Reason::Difference);
                solver.raise_conflict(&clause, false);
                return;
            }
            for i in &self.improvements {
                let watchers = &self.watchers[i.from.index() * self.nodes + i.to.index()];
                let first = watchers.partition_point(|(least, _)| *least <= i.before);
                self.implied.extend(watchers[first..].iter().take_while(|(least, _)| *least <= i.after).map(|w| w.1));
            }
        }
        for k in 0..self.implied.len() {
            let literal = self.implied[k];
            match value(solver, literal) {
                Some(true) => {}
                None => {
                    self.by_sum.remove(&literal);
                    self.log_fact(literal);
                    if !solver.propagate(literal) {
                        return;
                    }
                }
                Some(false) => {
                    let mut clause = negated(self.bound_reasons(literal));
                    clause.push(literal);
                    self.log.lemma(clause.iter().copied(), Reason::Difference);
                    solver.raise_conflict(&clause, false);
                    return;
                }
            }
        }
        while let Some(demand) = self.sums.next(|literal| value(solver, literal)) {
            match demand {
                Demand::Conflict(sum, core) => {
                    let clause = negated(core);
                    self.log_sum(sum, &clause);
                    solver.raise_conflict(&clause, false);
                    return;
                }
                // Only open literals are implied.
                Demand::Imply(literal) => {
                    self.by_sum.insert(literal);
                    self.log_fact(literal);
                    if !solver.propagate(literal) {
                        return;
                    }
                }
            }
        }
    }

    /// Writes down what a sum says.
    fn log_sum(&self, sum: SumId, clause: &[Lit]) {
        if let Some(origin) = self.sums.origin(sum) {
            let given = origin.given.iter().map(|&l| !l);
            self.log.lemma(clause.iter().copied().chain(given), origin.reason);
        }
    }

    /// Writes down why a literal holds for good: the solver never asks about those.
    fn log_fact(&mut self, literal: Lit) {
        if self.levels.is_empty() && self.log.is_on() {
            self.explain_propagation(literal);
        }
    }

    fn bound_reasons(&self, literal: Lit) -> Vec<Lit> {
        let mut core = Vec::new();
        if let Some(b) = self.bound(literal) {
            self.system.explain(b.from, b.to, b.least, &mut core);
        }
        core.sort_unstable();
        core.dedup();
        core
    }
}

fn value(solver: &TheoryArg, literal: Lit) -> Option<bool> {
    let value = solver.value(literal.var());
    (value != lbool::UNDEF).then(|| (value == lbool::TRUE) == literal.sign())
}

fn negated(mut core: Vec<Lit>) -> Vec<Lit> {
    core.sort_unstable();
    core.dedup();
    core.into_iter().map(|l| !l).collect()
}

impl Theory for DifferenceTheory {
    fn final_check(&mut self, solver: &mut TheoryArg) {
        self.propagate(solver);
    }

    fn create_level(&mut self) {
        self.system.push_level();
        self.sums.push_level();
        self.levels.push(self.seen);
    }

    fn pop_levels(&mut self, count: usize) {
        self.system.pop_levels(count);
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
        self.propagate(solver);
    }

    fn explain_propagation(&mut self, literal: Lit) -> &[Lit] {
        self.explanation = match self.sums.reason(literal).filter(|_| self.by_sum.contains(&literal)) {
            Some((sum, reason)) => {
                if self.log.is_on() {
                    let clause: Vec<Lit> = reason.iter().map(|&l| !l).chain([literal]).collect();
                    self.log_sum(sum, &clause);
                }
                reason.to_vec()
            }
            None => {
                let reasons = self.bound_reasons(literal);
                self.log.lemma(reasons.iter().map(|&l| !l).chain([literal]), Reason::Difference);
                reasons
            }
        };
        &self.explanation
    }
}
