//! Budgets: when to stop, and who may ask for it.

use crate::proof_log::Log;
use batsat::Callbacks;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use twill_graph::proof::Step;

/// When a search gives up, of one loop or of sibling loops together. The default never does.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Wall-clock time for the whole search. Where it ends depends on the machine, so results that
    /// were stopped by it are not reproducible; those stopped by `work` are.
    pub time: Option<Duration>,
    /// Units of work for the whole search (bounds asserted in the difference system, in large graphs
    /// several for each; about a million a second).
    pub work: Option<u64>,
    /// Set from outside (Ctrl-C) to stop at the next opportunity.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// A running budget.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    deadline: Option<Instant>,
    work: Rc<Cell<u64>>,
    /// Work at which to stop; may be lowered for a part of the search.
    limit: Rc<Cell<u64>>,
    total: u64,
    interrupt: Option<Arc<AtomicBool>>,
    /// Set while something small must be finished whatever the budget says.
    unhindered: Rc<Cell<bool>>,
}

impl Meter {
    pub(crate) fn start(budget: &Budget) -> Meter {
        let total = budget.work.unwrap_or(u64::MAX);
        Meter {
            // A deadline too far to represent is no deadline.
            deadline: budget.time.and_then(|t| Instant::now().checked_add(t)),
            work: Rc::new(Cell::new(0)),
            limit: Rc::new(Cell::new(total)),
            total,
            interrupt: budget.interrupt.clone(),
            unhindered: Rc::new(Cell::new(false)),
        }
    }

    /// A budget of half of what is left, for a part of the search; its work counts here too.
    pub(crate) fn half(&self) -> Meter {
        let now = Instant::now();
        let total = self.work.get() + self.total.saturating_sub(self.work.get()) / 2;
        Meter {
            deadline: self.deadline.map(|end| now + end.saturating_duration_since(now) / 2),
            work: Rc::clone(&self.work),
            limit: Rc::new(Cell::new(total)),
            total,
            interrupt: self.interrupt.clone(),
            unhindered: Rc::clone(&self.unhindered),
        }
    }

    /// The counter that the theory advances.
    pub(crate) fn counter(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.work)
    }

    /// Counts work that is done outside the solver.
    pub(crate) fn spend(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// What ended the search, if something did.
    pub(crate) fn stopped(&self) -> Option<&'static str> {
        if self.interrupt.as_ref().is_some_and(|i| i.load(Ordering::Relaxed)) {
            return Some("interrupt");
        }
        if self.work.get() >= self.total {
            return Some("work budget");
        }
        self.deadline.filter(|d| Instant::now() >= *d).map(|_| "time budget")
    }

    /// Whether the current part of the search should end.
    pub(crate) fn pause(&self) -> bool {
        !self.unhindered.get() && (self.work.get() >= self.limit.get() || self.stopped().is_some())
    }

    /// Runs `part`, which decides nothing and takes little, to its end.
    pub(crate) fn unhindered<T>(&self, part: impl FnOnce() -> T) -> T {
        self.unhindered.set(true);
        let result = part();
        self.unhindered.set(false);
        result
    }

    /// Runs `part` with at most `work` units of what is allowed now.
    pub(crate) fn within<T>(&self, work: u64, part: impl FnOnce() -> T) -> T {
        let before = self.limit.get();
        self.limit.set(before.min(self.work.get().saturating_add(work)));
        let result = part();
        self.limit.set(before);
        result
    }

    /// A meter for a search within this one, which may do so much work.
    pub(crate) fn part(&self, work: u64) -> Meter {
        let total = self.total.min(self.work.get().saturating_add(work));
        Meter { limit: Rc::new(Cell::new(total)), total, ..self.clone() }
    }

    /// Allows the next part of the search at most `work` units.
    pub(crate) fn allow(&self, work: Option<u64>) {
        let limit = work.map_or(u64::MAX, |w| self.work.get().saturating_add(w));
        self.limit.set(limit.min(self.total));
    }
}

/// Stops the SAT solver when its meter says so, counts conflicts, and writes down what is learnt.
#[derive(Debug)]
pub(crate) struct SolverCallbacks {
    pub(crate) meter: Meter,
    pub(crate) conflicts: u64,
    pub(crate) log: Log,
}

impl Callbacks for SolverCallbacks {
    fn on_new_clause(&mut self, clause: &[batsat::Lit], kind: batsat::ClauseKind) {
        self.log.step(clause, Step::Learn);
        if kind == batsat::ClauseKind::Learnt {
            self.conflicts += 1;
        }
    }

    fn on_delete_clause(&mut self, clause: &[batsat::Lit]) {
        self.log.step(clause, Step::Delete);
    }

    fn stop(&self) -> bool {
        self.meter.pause()
    }
}
