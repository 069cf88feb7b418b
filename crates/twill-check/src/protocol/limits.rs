//! Budgets of a check.

/// How much work a check may take. Beyond it the answer is
/// [`ProtocolError::Undecided`](super::ProtocolError::Undecided), never a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States that explicit searches may visit, in all cases together.
    pub states: usize,
    /// Events of all processes together in one case; at most 60000.
    pub events: usize,
    /// Combinations of trip counts and tiles.
    pub cases: usize,
    /// Trip counts beyond those that stand for all. More than 0 tests that they do.
    pub further: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: 300_000, events: 60_000, cases: 20_000, further: 0 }
    }
}
