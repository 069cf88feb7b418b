//! Decisions, read from bytes one after the other; the simplest of all after the last.

use arbitrary::Unstructured;

/// The remaining bytes.
pub(crate) struct Tape<'a>(Unstructured<'a>);

impl<'a> Tape<'a> {
    /// All of them.
    pub(crate) fn new(bytes: &'a [u8]) -> Tape<'a> {
        Tape(Unstructured::new(bytes))
    }

    /// From 0 to below `bound`; 0 where nothing is below.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.int_in_range(0..=bound.saturating_sub(1)).unwrap_or(0)
    }

    /// From `least` to `most`.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0.int_in_range(least..=most.max(least)).unwrap_or(least)
    }

    /// An index below `bound`; 0 where there is none.
    pub(crate) fn index(&mut self, bound: usize) -> usize {
        self.0.int_in_range(0..=bound.saturating_sub(1)).unwrap_or(0)
    }

    /// Once in N times; never when the bytes are used up.
    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) + 1 == chances && !self.is_over()
    }

    /// One of these.
    pub(crate) fn pick<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        choices.get(self.index(choices.len()))
    }

    /// Returns whether all bytes are used up.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
