//! Vector clocks: the order of events.

/// For every chain of events, how many of it are before (and with) an event.
pub(super) type Clock = Vec<u32>;

/// An event: its chain, and the place in it from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) chain: usize,
    pub(super) index: u32,
}

impl Epoch {
    /// It is before the event of a clock, or is that event.
    pub(super) fn before(self, clock: &[u32]) -> bool {
        clock[self.chain] >= self.index
    }
}

/// The past of one of two events.
pub(super) fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
