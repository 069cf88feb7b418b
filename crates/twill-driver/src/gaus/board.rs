//! The best schedule so far, whoever found it, and what is proved: two threads search beside each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use twill_gaus::{LowerBound, Precedence, legal_measure};
use twill_graph::DataflowProblem;
use web_time::Instant;

/// What a search has found, for all its threads.
pub(super) struct Board<'a> {
    problem: &'a DataflowProblem,
    precedence: Precedence,
    begun: Instant,
    known: Mutex<Known>,
    /// Set when nothing better is to be found.
    pub enough: AtomicBool,
}

/// What is known.
#[derive(Default)]
pub(super) struct Known {
    /// The best objective, and its schedule.
    pub best: Option<(i128, Vec<u64>)>,
    pub bound: Option<LowerBound>,
    /// Seconds, objective, and who found it.
    pub trace: Vec<(f64, i128, String)>,
}

impl<'a> Board<'a> {
    /// An empty one. Seconds count from `begun`.
    pub fn new(problem: &'a DataflowProblem, begun: Instant) -> Self {
        let precedence = Precedence::new(&problem.graph, problem.interval);
        Self { problem, precedence, begun, known: Mutex::default(), enough: AtomicBool::new(false) }
    }

    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, at the end.
    pub fn into_known(self) -> Known {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a schedule if it is legal and better than the best.
    pub fn offer(&self, by: &str, steps: &[u64]) {
        let Some(measure) = legal_measure(self.problem, &self.precedence, steps) else { return };
        let objective = measure.objective(self.problem.objective);
        let mut known = self.known();
        if known.best.as_ref().is_none_or(|(best, _)| objective < *best) {
            known.best = Some((objective, steps.to_vec()));
            known.tell(self.begun.elapsed().as_secs_f64(), objective, by);
        }
        self.look(&known);
    }

    /// An objective that a running search has found: its schedule comes when it ends.
    pub fn tell(&self, objective: i128, by: &str) {
        let mut known = self.known();
        let better = known.trace.iter().all(|(_, before, _)| objective < *before);
        if better {
            known.tell(self.begun.elapsed().as_secs_f64(), objective, by);
        }
        if known.bound.as_ref().is_some_and(|bound| objective <= bound.value) {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps a bound.
    pub fn prove(&self, bound: LowerBound) {
        let mut known = self.known();
        known.bound = Some(bound);
        self.look(&known);
    }

    /// Raises the value of the bound.
    pub fn raise(&self, value: i128) {
        let mut known = self.known();
        let bound = known.bound.get_or_insert_with(|| LowerBound::known(value));
        bound.value = bound.value.max(value);
        self.look(&known);
    }

    /// The value of the bound, if there is one by now.
    pub fn bound(&self) -> Option<i128> {
        self.known().bound.as_ref().map(|bound| bound.value)
    }

    fn look(&self, known: &Known) {
        if let (Some((best, _)), Some(bound)) = (&known.best, &known.bound)
            && *best <= bound.value
        {
            self.enough.store(true, Ordering::Relaxed);
        }
    }
}

impl Known {
    fn tell(&mut self, seconds: f64, objective: i128, by: &str) {
        if self.trace.last().is_none_or(|(_, before, _)| objective < *before) {
            self.trace.push((seconds, objective, by.to_owned()));
        }
    }
}
