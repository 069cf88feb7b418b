//! Linear constraints of the SAT solver's theory: `Σ weight · literal ≤ limit`, counted along its trail and explained
//! only when it asks.
//!
//! Weights are arbitrary (bytes of storage, costs of communication), slots are many and most never fill: counting costs
//! one addition where a totalizer would need clauses for every weight that can be reached.

use batsat::{Lit, Theory, TheoryArg, lbool};
use std::cell::Cell;
use std::rc::Rc;

/// A constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SumId(u32);

#[derive(Debug)]
struct Sum {
    /// By descending weight.
    terms: Vec<(Lit, i64)>,
    limit: i64,
    /// Weight of the terms that are true.
    reached: i64,
    queued: bool,
}

/// All constraints of a solver.
#[derive(Debug)]
pub(super) struct Sums {
    /// Holds; what conflicts by itself is put down to it.
    truth: Lit,
    sums: Vec<Sum>,
    /// Constraints in which a literal occurs, with its weight, by its index.
    occurrences: Vec<Vec<(u32, i64)>>,
    /// The solver's trail, as far as it has been counted.
    trail: Vec<Lit>,
    /// Where true literals stand on the trail, by their index.
    position: Vec<u32>,
    levels: Vec<usize>,
    queue: Vec<u32>,
    /// By variable: the constraint that implied it, and how long the trail was.
    reasons: Vec<(u32, u32)>,
    explanation: Vec<Lit>,
    /// Terms looked at so far.
    work: Rc<Cell<u64>>,
}

/// Terms that could be looked at while the solver propagates a literal.
const LITERAL: usize = 8;
const NOWHERE: u32 = u32::MAX;

impl Sums {
    /// `truth` holds in every model; `work` counts terms that are looked at.
    pub fn new(truth: Lit, work: Rc<Cell<u64>>) -> Self {
        Self {
            truth,
            sums: Vec::new(),
            occurrences: Vec::new(),
            trail: Vec::new(),
            position: Vec::new(),
            levels: Vec::new(),
            queue: Vec::new(),
            reasons: Vec::new(),
            explanation: Vec::new(),
            work,
        }
    }

    /// Adds a constraint, of literals that differ in their variables, to a solver at its root.
    pub fn add(&mut self, mut terms: Vec<(Lit, i64)>, limit: i64) -> SumId {
        terms.sort_by_key(|&(literal, weight)| (std::cmp::Reverse(weight), literal));
        let id = self.sums.len() as u32;
        let mut reached = 0;
        for &(literal, weight) in &terms {
            self.make_room(literal);
            self.occurrences[literal.idx() as usize].push((id, weight));
            reached += if self.position[literal.idx() as usize] == NOWHERE { 0 } else { weight };
        }
        self.sums.push(Sum { terms, limit, reached, queued: true });
        self.queue.push(id);
        SumId(id)
    }

    /// Lowers a limit, of a solver at its root. What was learnt holds all the more.
    pub fn tighten(&mut self, id: SumId, limit: i64) {
        let sum = &mut self.sums[id.0 as usize];
        sum.limit = sum.limit.min(limit);
        if !std::mem::replace(&mut sum.queued, true) {
            self.queue.push(id.0);
        }
    }

    /// Terms of all constraints.
    pub fn size(&self) -> usize {
        self.sums.iter().map(|sum| sum.terms.len()).sum()
    }

    fn make_room(&mut self, literal: Lit) {
        let needed = (literal.var().idx() as usize + 1) * 2;
        if self.occurrences.len() < needed {
            self.occurrences.resize(needed, Vec::new());
            self.position.resize(needed, NOWHERE);
            self.reasons.resize(needed / 2, (NOWHERE, 0));
        }
    }

    fn count(&mut self, literal: Lit) {
        self.make_room(literal);
        self.position[literal.idx() as usize] = self.trail.len() as u32;
        self.trail.push(literal);
        self.worked(LITERAL + self.occurrences[literal.idx() as usize].len());
        for &(id, weight) in &self.occurrences[literal.idx() as usize] {
            let sum = &mut self.sums[id as usize];
            sum.reached += weight;
            if !sum.queued {
                sum.queued = true;
                self.queue.push(id);
            }
        }
    }

    fn check(&mut self, solver: &mut TheoryArg) {
        for at in self.trail.len()..solver.model().len() {
            self.count(solver.model()[at]);
        }
        while let Some(&id) = self.queue.last() {
            let sum = &self.sums[id as usize];
            let slack = sum.limit - sum.reached;
            if slack < 0 {
                self.explain(id, None, NOWHERE);
                let mut clause: Vec<Lit> = self.explanation.iter().map(|&l| !l).collect();
                if clause.is_empty() {
                    clause.push(!self.truth);
                }
                self.forget_queue();
                solver.raise_conflict(&clause, false);
                return;
            }
            for &(literal, _) in sum.terms.iter().take_while(|term| term.1 > slack) {
                self.work.set(self.work.get() + 1);
                if solver.value(literal.var()) == lbool::UNDEF {
                    self.reasons[literal.var().idx() as usize] = (id, self.trail.len() as u32);
                    if !solver.propagate(!literal) {
                        return;
                    }
                }
            }
            self.sums[id as usize].queued = false;
            self.queue.pop();
        }
    }

    /// Finds true terms, heaviest first, that stood on the trail before `before` and leave no room for `implied`, or
    /// exceed the limit by themselves.
    fn explain(&mut self, id: u32, implied: Option<Lit>, before: u32) {
        let sum = &self.sums[id as usize];
        self.worked(sum.terms.len());
        let weight = implied.and_then(|l| sum.terms.iter().find(|term| term.0 == l)).map_or(0, |term| term.1);
        let (enough, mut total) = (sum.limit - weight, 0);
        let mut chosen: Vec<(Lit, i64)> = Vec::new();
        for &(literal, weight) in &sum.terms {
            if total > enough {
                break;
            }
            if self.position[literal.idx() as usize] < before {
                total += weight;
                chosen.push((literal, weight));
            }
        }
        // Lighter ones may have made an earlier one superfluous.
        chosen.retain(|&(_, weight)| {
            let superfluous = total - weight > enough;
            total -= if superfluous { weight } else { 0 };
            !superfluous
        });
        self.explanation.clear();
        self.explanation.extend(chosen.into_iter().map(|term| term.0));
    }

    fn worked(&self, terms: usize) {
        self.work.set(self.work.get() + terms as u64);
    }

    fn forget_queue(&mut self) {
        for id in self.queue.drain(..) {
            self.sums[id as usize].queued = false;
        }
    }
}

impl Theory for Sums {
    fn final_check(&mut self, solver: &mut TheoryArg) {
        self.check(solver);
    }

    fn partial_check(&mut self, solver: &mut TheoryArg) {
        self.check(solver);
    }

    fn create_level(&mut self) {
        self.levels.push(self.trail.len());
    }

    fn pop_levels(&mut self, count: usize) {
        let keep = self.levels.len().saturating_sub(count);
        let Some(&length) = self.levels.get(keep) else { return };
        self.levels.truncate(keep);
        for literal in self.trail.drain(length..) {
            let index = literal.idx() as usize;
            self.position[index] = NOWHERE;
            for &(id, weight) in &self.occurrences[index] {
                self.sums[id as usize].reached -= weight;
            }
        }
        self.forget_queue();
    }

    fn n_levels(&self) -> usize {
        self.levels.len()
    }

    fn explain_propagation(&mut self, literal: Lit) -> &[Lit] {
        let (id, before) = self.reasons[literal.var().idx() as usize];
        self.explain(id, Some(!literal), before);
        &self.explanation
    }
}
