//! Usage and live storage as sums of literals, slot by slot.
//!
//! A literal that an operation is there is implied by its times and not the other way: sums are only ever bounded from
//! above.

use super::{Encoding, FIXED};
use crate::model::Use;
use crate::neighbourhood::tracks::{self, Counted};
use batsat::Lit;
use std::collections::BTreeMap;

/// The contents of a track in each slot.
pub(super) struct Counts {
    /// The usage from outside the window.
    pub base: Vec<i64>,
    /// The possible usage from the window.
    pub moving: BTreeMap<usize, Vec<(Lit, i64)>>,
    /// How it is now.
    pub now: Vec<i64>,
}

impl Counts {
    fn put(&mut self, slot: usize, literal: Lit, amount: i64, truth: Lit) {
        if literal == truth {
            self.base[slot] += amount;
        } else {
            self.moving.entry(slot).or_default().push((literal, amount));
        }
    }

    /// The peak as it is.
    pub fn peak(&self) -> i64 {
        self.now.iter().copied().max().unwrap_or(0)
    }

    /// The peak that remains without all that moves.
    pub fn floor(&self) -> i64 {
        self.base.iter().copied().max().unwrap_or(0)
    }
}

impl Encoding<'_, '_> {
    /// Counts a track whose usage is `now`.
    pub(super) fn count(&mut self, counted: Counted, now: &[i64]) -> Counts {
        let model = self.model;
        let mut counts = Counts { base: now.to_vec(), moving: BTreeMap::new(), now: now.to_vec() };
        let moves: Vec<usize> = self.domains.iter().map(|domain| domain.op).collect();
        let mut affected = moves.clone();
        if counted == Counted::Storage {
            let producers = moves.iter().flat_map(|&v| model.precedence.predecessors(v)).map(|p| p.op());
            affected.extend(producers);
            affected.sort_unstable();
            affected.dedup();
        }
        let steps = std::mem::take(&mut self.steps);
        for &v in &affected {
            for span in tracks::spans(model, counted, &steps, v) {
                tracks::add(model, &mut counts.base, span, -1);
            }
        }
        self.steps = steps;
        for v in affected {
            let (low, high) = self.range(v);
            if self.paced.is_over_after(256 * (high - low + 1) as u64) {
                break;
            }
            match counted {
                Counted::Storage => self.add_life(v, &mut counts),
                Counted::Resource(resource) => {
                    let uses = model.uses[v].iter().filter(|used| used.resource == resource);
                    uses.for_each(|&used| self.add_use(v, used, &mut counts));
                }
            }
        }
        counts
    }

    fn add_use(&mut self, v: usize, used: Use, counts: &mut Counts) {
        let (low, high) = self.range(v);
        let mut held = used.steps;
        if let Some(ii) = self.model.interval.filter(|&ii| held >= ii) {
            counts.base.iter_mut().for_each(|base| *base += held / ii * used.amount);
            held %= ii;
        }
        if held == 0 {
            return;
        }
        // Starts with which a slot is held: one stretch, or one for each lap.
        let mut starts: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
        for step in low..high + held {
            let stretch = ((step - held + 1).max(low), step.min(high));
            starts.entry(self.model.slot(step + used.offset)).or_default().push(stretch);
        }
        for (slot, stretches) in starts {
            let literals: Vec<Lit> = stretches.iter().map(|&(from, to)| self.between(v, from, to)).collect();
            let literal = match literals[..] {
                [literal] => literal,
                _ => self.any(&literals),
            };
            counts.put(slot, literal, used.amount, self.truth);
        }
    }

    /// Implied by `from ≤ s_v ≤ to`.
    pub(super) fn between(&mut self, v: usize, from: i64, to: i64) -> Lit {
        let (early, late) = (self.by(v, from - 1), self.by(v, to));
        if early == !self.truth {
            return late;
        }
        if late == self.truth {
            return !early;
        }
        if let Some(&literal) = self.between.get(&(v, from, to)) {
            return literal;
        }
        let literal = self.fresh();
        self.clause(&[!late, early, literal]);
        self.between.insert((v, from, to), literal);
        literal
    }

    /// Implied by each of these.
    fn any(&mut self, literals: &[Lit]) -> Lit {
        let any = self.fresh();
        for &literal in literals {
            self.clause(&[!literal, any]);
        }
        any
    }

    /// The value of `v`: live at a step that its start has reached and some read has not.
    fn add_life(&mut self, v: usize, counts: &mut Counts) {
        let (model, amount) = (self.model, self.model.storage[v]);
        let reads: Vec<(usize, i64)> =
            model.edges()[model.edges_of(v)].iter().map(|edge| (edge.to, edge.shift)).collect();
        if amount == 0 || reads.is_empty() {
            return;
        }
        // The last of the fixed reads.
        let fixed = reads.iter().filter(|read| self.index[read.0] == FIXED);
        let fixed = fixed.map(|&(w, shift)| self.steps[w] + shift).max();
        let moving: Vec<(usize, i64)> = reads.iter().copied().filter(|read| self.index[read.0] != FIXED).collect();
        let last = moving.iter().map(|&(w, shift)| self.range(w).1 + shift).chain(fixed).max().unwrap_or(0);
        for step in self.range(v).0..last {
            let begun = self.by(v, step);
            let pending = fixed.filter(|&read| step < read).map(|_| self.truth);
            let pending = pending.into_iter().chain(moving.iter().map(|&(w, shift)| !self.by(w, step - shift)));
            let mut pending: Vec<Lit> = pending.filter(|&l| l != !self.truth).collect();
            if begun == !self.truth || pending.is_empty() {
                continue;
            }
            if pending.contains(&self.truth) {
                pending = vec![self.truth];
            }
            let live = match pending[..] {
                [pending] if pending == self.truth => begun,
                [pending] if begun == self.truth => pending,
                _ => {
                    let live = self.fresh();
                    pending.iter().for_each(|&pending| self.clause(&[!begun, !pending, live]));
                    live
                }
            };
            counts.put(model.slot(step), live, amount, self.truth);
        }
    }
}
