//! Stops the SAT solver: after a given effort, which is the same on every machine, or when time is over.

use crate::control::Clock;
use batsat::{Callbacks, ClauseKind, Lit};
use std::cell::Cell;
use std::rc::Rc;

/// Terms looked at, or decisions, that count as much as a conflict.
const WORK: u64 = 4096;
/// Terms looked at for a decision.
const DECISION: u64 = 16;
/// Terms looked at for a literal of a clause that is learnt.
const LEARNT: u64 = 16;

/// Counts what a solver does.
pub(super) struct Brake<'c> {
    clock: Clock<'c>,
    conflicts: u64,
    /// Terms of sums that were looked at, which [`super::sums::Sums`] counts, too.
    work: Rc<Cell<u64>>,
    until: u64,
}

impl<'c> Brake<'c> {
    pub fn new(clock: Clock<'c>, work: Rc<Cell<u64>>) -> Self {
        Self { clock, conflicts: 0, work, until: 0 }
    }

    /// Conflicts so far; other work counts as conflicts, too, as it takes time.
    pub fn effort(&self) -> u64 {
        self.conflicts + self.work.get() / WORK
    }

    /// Lets the solver go on for as much as this.
    pub fn release(&mut self, effort: u64) {
        self.until = self.effort().saturating_add(effort);
    }
}

impl Callbacks for Brake<'_> {
    fn on_new_clause(&mut self, clause: &[Lit], kind: ClauseKind) {
        if kind != ClauseKind::Axiom {
            self.conflicts += 1;
            self.work.set(self.work.get() + LEARNT * clause.len() as u64);
        }
    }

    /// Asked at every decision.
    fn stop(&self) -> bool {
        self.work.set(self.work.get() + DECISION);
        self.effort() >= self.until || self.clock.is_over()
    }
}
