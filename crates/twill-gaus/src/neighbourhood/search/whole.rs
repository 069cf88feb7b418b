//! The whole graph as a window, again and again: what proves optimality.

use super::Search;
use crate::neighbourhood::encoding::{Around, Ask, Encoding, Pointless, SatResult};

/// The whole graph as a window, which keeps what was learnt.
pub(super) enum Whole<'a, 'c> {
    /// Not begun.
    New,
    Begun(Box<Encoding<'a, 'c>>),
    /// Refused: turned off, or too large.
    Out,
}

/// Most ways to share peaks that are tried one by one.
const SPLITS: usize = 32;
/// Terms of an encoding that double the time that its work takes.
const LARGE: u64 = 1 << 19;

impl<'a> Search<'a, '_> {
    /// Goes on with the whole graph, from what it has learnt; whether there is nothing better.
    pub(super) fn try_whole(&mut self) -> bool {
        self.tried += 1;
        let before = self.effort;
        let mut whole = match std::mem::replace(&mut self.whole, Whole::Out) {
            Whole::Begun(encoding) => encoding,
            _ => {
                let model = self.model;
                let around = Around {
                    model,
                    costs: self.costs,
                    steps: &self.best,
                    usage: &self.usage_of(&self.best),
                    value: self.best_value,
                };
                match Encoding::new(around, &self.chooser.whole(), Ask::Objective, self.clock) {
                    Ok(mut encoding) => {
                        encoding.remember(&self.best);
                        Box::new(encoding)
                    }
                    Err(Pointless::Refuted) => return true,
                    Err(Pointless::TooLarge) => return false,
                }
            }
        };
        let (begun, mut refuted) = (whole.effort(), false);
        let until = begun + self.options.window_conflicts.max(self.whole_effort / 2);
        while whole.effort() < until && !self.clock.is_over() && !refuted {
            whole.demand(self.best_value - 1);
            let splits = whole.splits(self.best_value - 1, SPLITS);
            let (mut better, mut open) = (false, 0);
            for (at, split) in splits.iter().enumerate() {
                let share = until.saturating_sub(whole.effort()) / (splits.len() - at) as u64;
                match whole.solve_split(split, share) {
                    SatResult::Sat(steps) => {
                        self.improved += 1;
                        self.campaign = None;
                        self.move_to(steps);
                        self.keep_best();
                        better = true;
                        break;
                    }
                    SatResult::Unsat => {}
                    SatResult::Unknown => open += 1,
                }
            }
            refuted = !better && open == 0;
            if !better {
                break;
            }
        }
        // Large encodings miss the cache.
        let spent = whole.effort() - if before == 0 { 0 } else { begun };
        let spent = spent * (1 + whole.size() / LARGE);
        self.effort += spent;
        self.whole_effort += spent;
        self.whole = Whole::Begun(whole);
        refuted
    }
}
