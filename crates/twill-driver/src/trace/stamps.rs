//! The time stamps of a buffer.

use super::{OperationMarks, TraceError, TracedKernel};

/// Bytes of a time stamp.
const BYTES: usize = 8;

/// What was recorded in one launch or several.
pub(super) struct Stamps<'a> {
    kernel: &'a TracedKernel,
    all: Vec<u64>,
}

impl<'a> Stamps<'a> {
    /// Of a buffer: 64-bit numbers, the least byte first, one launch after the other.
    pub(super) fn new(kernel: &'a TracedKernel, buffer: &[u8], file: &str) -> Result<Stamps<'a>, TraceError> {
        let each = BYTES.saturating_mul(kernel.iterations).saturating_mul(kernel.timestamps.len());
        if each == 0 || buffer.is_empty() || !buffer.len().is_multiple_of(each) {
            return Err(TraceError::Size { file: file.to_owned(), found: buffer.len(), each });
        }
        let (numbers, _) = buffer.as_chunks::<BYTES>();
        Ok(Stamps { kernel, all: numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect() })
    }

    /// The launches.
    pub(super) fn launches(&self) -> impl Iterator<Item = Launch<'_>> {
        let timestamps = self.kernel.timestamps.len();
        self.all.chunks(self.kernel.iterations * timestamps).map(move |stamps| Launch { stamps, timestamps })
    }
}

/// What was recorded in one launch.
#[derive(Clone, Copy)]
pub(super) struct Launch<'a> {
    stamps: &'a [u64],
    timestamps: usize,
}

impl Launch<'_> {
    /// The time at a timestamp of an iteration; none if the kernel did not come there.
    fn at(&self, (row, timestamp): (usize, usize)) -> Option<u64> {
        self.stamps.get(row * self.timestamps + timestamp).copied().filter(|stamp| *stamp != 0)
    }

    /// Cycles from one timestamp to another.
    pub(super) fn between(&self, from: (usize, usize), to: (usize, usize)) -> Option<i64> {
        // The clock's difference is right also where it begins anew.
        Some(self.at(to)?.wrapping_sub(self.at(from)?).cast_signed())
    }

    /// The rows of iterations in the steady state, one after the other. Rows are of the last iterations of a loop, so those of
    /// the epilogue are among them, and those of the prologue where the loop has no more. `issue` is a timestamp that every iteration
    /// comes to.
    pub(super) fn steady(&self, issue: usize, stages: usize) -> Vec<usize> {
        let rows = self.stamps.len() / self.timestamps.max(1);
        let Some(some) = (0..rows).find(|row| self.at((*row, issue)).is_some()) else { return Vec::new() };
        let since = |row| self.between((some, issue), (row, issue));
        let mut recorded: Vec<(i64, usize)> = (0..rows).filter_map(|row| Some((since(row)?, row))).collect();
        recorded.sort_unstable();
        let last = recorded.len().saturating_sub(stages.saturating_sub(1));
        recorded.get(stages..last).unwrap_or_default().iter().map(|(_, row)| *row).collect()
    }

    /// Start and end of an operation in an iteration, in cycles since another timestamp of iteration `since`: it ends when the first group
    /// sees that, and at once where none does.
    pub(super) fn span(&self, since: usize, aligned: usize, (row, o): (usize, &OperationMarks)) -> Option<(i64, i64)> {
        let from = self.between((since, aligned), (row, o.issue))?;
        let ends = o.ends.iter().filter_map(|end| self.between((since, aligned), (row, *end)));
        Some((from, ends.min().unwrap_or(from)))
    }
}
