//! Times of classes as literals: an order encoding, and the slots that follow from it.

use batsat::Lit;

/// A class's time in the SAT solver.
pub(crate) struct Domain {
    pub(crate) least: i64,
    pub(crate) largest: i64,
    pub(crate) interval: i64,
    truth: Lit,
    /// `t ≥ least + 1`, `t ≥ least + 2`, …
    order: Vec<Lit>,
    /// `t mod I = (least + k) mod I`, for each slot that is in reach.
    slots: Vec<Lit>,
}

impl Domain {
    pub(crate) fn new(interval: i64, least: i64, truth: Lit, order: Vec<Lit>, slots: Vec<Lit>) -> Domain {
        let largest = least + order.len() as i64;
        Domain { least, largest, interval, truth, order, slots }
    }

    /// The literal for `t ≥ time`.
    pub(crate) fn at_least(&self, time: i64) -> Lit {
        if time <= self.least {
            self.truth
        } else if time > self.largest {
            !self.truth
        } else {
            self.order[(time - self.least - 1) as usize]
        }
    }

    /// The literal for `t mod I = slot`; `None` if that is out of reach.
    pub(crate) fn slot(&self, slot: i64) -> Option<Lit> {
        self.slots.get((slot - self.least).rem_euclid(self.interval) as usize).copied()
    }

    /// Slots in reach, with their literals.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (i64, Lit)> {
        let slot = |k: usize| (self.least + k as i64).rem_euclid(self.interval);
        self.slots.iter().enumerate().map(move |(k, &literal)| (slot(k), literal))
    }

    /// Least and largest time that the literals leave.
    pub(crate) fn bounds(&self, value: impl Fn(Lit) -> Option<bool>) -> (i64, i64) {
        let below = self.order.partition_point(|&l| value(l) == Some(true));
        let open = self.order[below..].partition_point(|&l| value(l) != Some(false));
        (self.least + below as i64, self.least + (below + open) as i64)
    }
}
