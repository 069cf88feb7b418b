//! The barriers of groups.

use twill_codegen::ir::{Barriers, WarpProgram};
use twill_graph::saturate;

/// An `mbarrier`: it completes a phase when all have arrived, and a wait knows one bit of the phase.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    expected: u32,
    arrived: u32,
    completed: u64,
}

impl Barrier {
    pub fn all(array: &Barriers) -> Vec<Barrier> {
        let expected = saturate::<u32>(array.arrivals.len()).max(1);
        (0..array.slots).map(|_| Barrier { expected, arrived: 0, completed: 0 }).collect()
    }

    pub fn arrive(&mut self) {
        self.arrived += 1;
        if self.arrived == self.expected {
            self.arrived = 0;
            self.completed += 1;
        }
    }

    /// Returns whether the phase of this parity is complete (`mbarrier.try_wait.parity`).
    pub fn is_complete(&self, parity: bool) -> bool {
        (self.completed % 2 == 1) != parity
    }
}

/// A named barrier: it opens when all participating groups have arrived.
#[derive(Clone, Debug)]
pub(super) struct Named {
    participants: u32,
    arrived: u32,
    opened: u64,
}

impl Named {
    pub fn all(program: &WarpProgram) -> Vec<Named> {
        program.named_barriers.iter().map(|(_, n)| Named { participants: *n, arrived: 0, opened: 0 }).collect()
    }

    /// A group arrives; returns how often the barrier has to have opened until it may go on.
    pub fn arrive(&mut self) -> u64 {
        let ticket = self.opened + 1;
        self.arrived += 1;
        if self.arrived >= self.participants {
            self.arrived = 0;
            self.opened += 1;
        }
        ticket
    }

    pub fn has_opened(&self, ticket: u64) -> bool {
        self.opened >= ticket
    }
}
