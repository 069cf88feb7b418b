//! Stops the SAT solver: after a given effort, which is the same on every machine, or when time is over.

use crate::control::Clock;
use batsat::{Callbacks, ClauseKind, Lit};
use std::cell::Cell;

/// Decisions that count as much as a conflict.
const DECISIONS: u64 = 64;

/// Counts what a solver does.
pub(super) struct Brake<'c> {
    clock: Clock<'c>,
    conflicts: u64,
    decisions: Cell<u64>,
    until: u64,
}

impl<'c> Brake<'c> {
    pub fn new(clock: Clock<'c>) -> Self {
        Self { clock, conflicts: 0, decisions: Cell::new(0), until: 0 }
    }

    /// Conflicts so far; many decisions count as one.
    pub fn effort(&self) -> u64 {
        self.conflicts + self.decisions.get() / DECISIONS
    }

    /// Lets the solver go on for as much as this.
    pub fn release(&mut self, effort: u64) {
        self.until = self.effort().saturating_add(effort);
    }
}

impl Callbacks for Brake<'_> {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        if kind != ClauseKind::Axiom {
            self.conflicts += 1;
        }
    }

    /// Asked at every decision.
    fn stop(&self) -> bool {
        self.decisions.set(self.decisions.get() + 1);
        self.effort() >= self.until || self.clock.is_over()
    }
}
