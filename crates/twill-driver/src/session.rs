//! How hard is searched, what is remembered, and who is told.

use crate::{Cache, Observer};
use std::sync::atomic::Ordering;
use twill_exact::{Budget, SearchOptions};

/// What a search is carried out with.
pub struct Session<'a> {
    /// Effort and budgets.
    pub search: SearchOptions,
    /// Where proven results are kept, if anywhere.
    pub cache: Option<Cache>,
    /// Who is told how far it is.
    pub observer: &'a mut dyn Observer,
}

impl<'a> Session<'a> {
    /// A session without a cache.
    pub fn new(search: SearchOptions, observer: &'a mut dyn Observer) -> Session<'a> {
        Session { search, cache: None, observer }
    }

    /// The same with another effort.
    pub(crate) fn with<'b>(&'b mut self, search: SearchOptions) -> Session<'b> {
        Session { search, cache: self.cache.clone(), observer: &mut *self.observer }
    }

    /// What an answer depends on in addition to the question: where a search was stopped decides which of several equally good
    /// schedules it has.
    pub(crate) fn depends(&self) -> impl serde::Serialize + use<> {
        let SearchOptions { budget, largest_interval, largest_intervals, objective_work, seed: _, pipeline: _ } =
            &self.search;
        let largest = (*largest_interval, largest_intervals.clone());
        (budget.time, budget.work, budget.memory.map(|memory| memory.bytes), largest, *objective_work)
    }

    /// The same with half of the time that is left: the other half is for what follows.
    pub(crate) fn with_half(&mut self) -> Session<'_> {
        let (Budget { time, until, .. }, now) = (&self.search.budget, self.search.budget.clock.now());
        let until = until.map(|until| now + until.saturating_duration_since(now) / 2);
        // What is remembered depends on the limit, not on the moment.
        let budget = Budget { time: time.map(|time| time / 2), until, ..self.search.budget.clone() };
        self.with(SearchOptions { budget, ..self.search.clone() })
    }

    /// Whether the time for all searches is over, or somebody asked to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.search.budget.until.is_some_and(|until| self.search.budget.clock.now() >= until)
    }

    /// Whether somebody asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.search.budget.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
