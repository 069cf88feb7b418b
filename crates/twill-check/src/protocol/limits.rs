//! How much work a check may take.

/// How much work a check may take. Beyond it the answer is
/// [`ProtocolError::Undecided`](super::ProtocolError::Undecided), never a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States that an explicit search of one case may visit.
    pub states: usize,
    /// Events of all processes together in one case; at most 60000.
    pub events: usize,
    /// Combinations of trip counts and tiles.
    pub cases: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: 300_000, events: 60_000, cases: 20_000 }
    }
}
