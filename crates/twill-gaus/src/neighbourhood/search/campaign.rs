//! Lowering a peak to a target, slot by slot, over several windows.

use super::{Outcome, SMALLEST, Search, peak};
use crate::neighbourhood::encoding::{Ask, Encoding, SatResult};
use crate::neighbourhood::windows::WindowKind;

/// A peak that is being lowered.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    track: usize,
    /// By track: the target of this one, and how far the others may rise.
    caps: Vec<i64>,
    /// Windows in a row that did not help.
    failed: u32,
    /// The final limit on the cost of communication.
    allowance: i64,
}

/// Windows in a row that a campaign fails with.
const PATIENCE: u32 = 12;
/// Moves sideways that are tried.
const SIDEWAYS: usize = 4;

impl Search<'_, '_> {
    /// Fewer slots above the target of a campaign.
    pub(super) fn try_peak(&mut self) {
        let Some(mut campaign) = self.campaign.take().or_else(|| self.begin()) else {
            // All peaks are as low as can be.
            self.try_objective();
            return;
        };
        let (usage, target) = (&self.usage[campaign.track], campaign.caps[campaign.track]);
        let hot: Vec<usize> = (0..usage.len()).filter(|&slot| usage[slot] > target).collect();
        let slot = hot[self.random.index(hot.len())];
        let communication = self.communication();
        // This slot gets twice its share of the budget.
        let left = campaign.allowance - communication;
        let allowance = communication + left.min(left / hot.len() as i64 * 2 + 1);
        let ask = Ask::Fewer { track: campaign.track, caps: &campaign.caps, allowance };
        let outcome = self.try_window(ask, slot);
        if outcome != Outcome::Better {
            self.move_sideways(ask, slot);
        }
        campaign.failed = if outcome == Outcome::Better { 0 } else { campaign.failed + 1 };
        let stride = &mut self.strides[campaign.track];
        if peak(&self.usage[campaign.track]) <= target {
            *stride = stride.saturating_mul(2);
            self.settle();
        } else if campaign.failed >= PATIENCE {
            *stride = (*stride / 4).max(1);
            self.settle();
        } else {
            self.campaign = Some(campaign);
        }
    }

    /// After a campaign: back to the best, unless this is as good.
    fn settle(&mut self) {
        if self.value > self.best_value {
            self.move_to(self.best.clone());
        } else {
            self.keep_best();
        }
    }

    /// Chooses a peak that is not as low as can be. Every third time another may rise for it, if by less.
    fn begin(&mut self) -> Option<Campaign> {
        let tracks = &self.costs.tracks;
        let mut caps: Vec<i64> = self.usage.iter().map(|usage| peak(usage)).collect();
        let open: Vec<usize> =
            (0..tracks.len()).filter(|&k| tracks[k].weight > 0 && caps[k] > tracks[k].least).collect();
        if open.is_empty() {
            return None;
        }
        let track = open[self.random.index(open.len())];
        let (now, mut stride) = (caps[track], self.strides[track]);
        let mut saved = tracks[track].weight;
        if tracks.len() > 1 && self.random.index(3) == 0 {
            let other = (track + 1 + self.random.index(tracks.len() - 1)) % tracks.len();
            stride = stride.max(2);
            if tracks[other].weight > 0 {
                caps[other] = caps[other].saturating_add(stride - 1).min(tracks[other].limit.unwrap_or(i64::MAX));
            }
        } else {
            saved *= now - (now - stride).max(tracks[track].least);
        }
        caps[track] = (now - stride).max(tracks[track].least);
        let allowance = self.communication() + saved - 1;
        Some(Campaign { track, caps, failed: 0, allowance })
    }

    /// Moves some operation elsewhere and others as it takes, at no loss: what refuted a window may not refute the next.
    fn move_sideways(&mut self, ask: Ask<'_>, slot: usize) {
        let kind = WindowKind::ALL[self.random.index(WindowKind::ALL.len())];
        let counted = match ask {
            Ask::Fewer { track, .. } => Some(self.costs.tracks[track].counted),
            Ask::Objective => None,
        };
        let size = (self.options.window / 2).max(SMALLEST);
        let window = self.chooser.around(kind, size, &self.steps, counted, slot, &mut self.random);
        let Ok(mut encoding) = Encoding::new(self.around(), &window, ask, self.clock) else { return };
        encoding.remember(&self.steps);
        for _ in 0..SIDEWAYS {
            let v = window.ops[self.random.index(window.ops.len())];
            let (low, high) = encoding.range(v);
            let other = low + self.random.index((high - low).max(1) as usize) as i64;
            let step = other + i64::from(other >= self.steps[v]);
            if step > high {
                continue;
            }
            let answer = encoding.solve_with(v, step, self.options.window_conflicts / 8);
            if let SatResult::Sat(steps) = answer {
                self.effort += encoding.effort();
                self.move_to(steps);
                self.keep_best();
                return;
            }
        }
        self.effort += encoding.effort();
    }
}
