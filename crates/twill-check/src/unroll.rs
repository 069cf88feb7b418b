//! The loop, run: overlapped copies of everything that lasts, and their sums over time.
//!
//! # How many copies
//!
//! Let everything that is to be replayed lie in `[0, B)` in iteration 0; copy `i` then lies in
//! `[iI, iI + B)`. Take the window `[base, base + I)` with `base = ⌈B / I⌉ · I`. Copy −1 ends by
//! `B − I < base`, so it and all before it would miss the window, and copies after `⌈B / I⌉` start
//! after it. The copies `0 ..= ⌈B / I⌉` therefore put into the window whatever a loop without
//! beginning or end would, values carried in from earlier iterations included: it is the steady
//! state. Every cycle before it (ramp-up) holds a part of what the cycle of the same slot in the
//! window holds, and so does every cycle after it. All of them are swept.
//!
//! # More than [`LITERAL_COPIES`]
//!
//! Lives of a million intervals are not laid out in full. Moving all copies of one thing by whole
//! intervals does not change the window, and what lasts `q` intervals longer has `q` copies more in
//! every cycle of it. So each thing is moved to begin in `[0, I)`, and from what lasts longer than
//! three intervals whole intervals are taken off and counted as always there. Two intervals and a
//! part remain, so that who overlaps whom, itself included, does not change. Five copies suffice
//! then. The ramp-up is no longer literal, but still a part of the window.

use crate::placed::{Placed, amount, cycles};
use crate::{Held, Holder, Holders, Moment};
use std::collections::BTreeMap;
use twill_graph::OpId;

/// Most copies that are laid out as they are.
pub(crate) const LITERAL_COPIES: i128 = 64;
/// Most things, copies of one iteration counted apart, that are laid out as they are.
const LITERAL_INSTANCES: i128 = 1 << 20;
/// Most holders that a message names.
const NAMED_HOLDERS: usize = 16;

/// Something that `op` of iteration 0 holds in `[start, end)`; `start ≥ 0`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub op: OpId,
    pub held: Held,
    pub start: i128,
    pub end: i128,
    pub amount: u64,
}

/// A [`Span`] of one iteration, in cycles from the first issue of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    /// Its place among the spans.
    pub span: usize,
    pub start: i128,
    pub end: i128,
}

/// A run of the loop.
pub(crate) struct Run {
    spans: Vec<Span>,
    pub instances: Vec<Instance>,
    /// Copies of each span that are there always.
    always: Vec<i128>,
    interval: i128,
    /// True if cycles are those of the real loop.
    literal: bool,
}

/// The cycle in which the most is held.
pub(crate) struct Peak {
    pub total: i128,
    pub cycle: i128,
}

impl Run {
    /// Lays out the copies of `spans` until the steady state has been reached.
    pub fn unroll(mut spans: Vec<Span>, interval: i128) -> Run {
        let mut always = vec![0; spans.len()];
        let mut copies = copies(&spans, interval);
        let literal = copies <= LITERAL_COPIES && copies.saturating_mul(spans.len() as i128) <= LITERAL_INSTANCES;
        if !literal {
            for (span, always) in spans.iter_mut().zip(&mut always) {
                let lasts = (span.end - span.start).max(0);
                *always = (lasts / interval - 2).max(0);
                span.start = span.start.rem_euclid(interval);
                span.end = span.start + lasts - *always * interval;
            }
            copies = self::copies(&spans, interval);
        }
        let mut instances = Vec::new();
        for iteration in 0..copies {
            let shift = iteration * interval;
            instances.extend(spans.iter().enumerate().map(|(span, s)| Instance {
                span,
                start: s.start + shift,
                end: s.end + shift,
            }));
        }
        Run { spans, instances, always, interval, literal }
    }

    /// A run whose copies differ from iteration to iteration; the cycles are those of the loop.
    pub fn of(spans: Vec<Span>, instances: Vec<Instance>, interval: i128) -> Run {
        Run { always: vec![0; spans.len()], spans, instances, interval, literal: true }
    }

    pub fn span(&self, instance: &Instance) -> &Span {
        &self.spans[instance.span]
    }

    /// The first of the cycles in which the amounts held sum up to the most; `None` when nothing
    /// ever is held.
    pub fn peak(&self) -> Option<Peak> {
        let mut changes: Vec<(i128, i128)> = Vec::with_capacity(2 * self.instances.len());
        for i in self.instances.iter().filter(|i| i.start < i.end) {
            let amount = i128::from(self.span(i).amount);
            changes.extend([(i.start, amount), (i.end, -amount)]);
        }
        changes.sort_unstable();
        let always = self.spans.iter().zip(&self.always).fold(0i128, |sum, (span, copies)| {
            sum.saturating_add(copies.saturating_mul(span.amount.into())).min(i128::MAX / 2)
        });
        let (mut held, mut peak) = (always, None::<Peak>);
        for now in changes.chunk_by(|a, b| a.0 == b.0) {
            held += now.iter().map(|(_, change)| change).sum::<i128>();
            if peak.as_ref().is_none_or(|p| p.total < held) {
                peak = now.first().map(|(cycle, _)| Peak { total: held, cycle: *cycle });
            }
        }
        peak
    }

    /// The holders in `cycle`, the largest first.
    pub fn holders(&self, placed: &Placed, cycle: i128) -> Holders {
        let mut copies: BTreeMap<(OpId, Held), (i128, i128)> = BTreeMap::new();
        let mut add = |span: &Span, count: i128| {
            let entry = copies.entry((span.op, span.held)).or_default();
            entry.0 += count;
            entry.1 = entry.1.saturating_add(count.saturating_mul(span.amount.into()));
        };
        for i in self.instances.iter().filter(|i| i.start <= cycle && cycle < i.end) {
            add(self.span(i), 1);
        }
        for (span, count) in self.spans.iter().zip(&self.always).filter(|(_, count)| **count > 0) {
            add(span, *count);
        }
        let mut holders: Vec<Holder> = copies
            .into_iter()
            .map(|((op, held), (copies, sum))| Holder {
                operation: placed.name(op),
                held,
                copies: amount(copies),
                amount: amount(sum),
            })
            .collect();
        holders.sort_by_key(|h| std::cmp::Reverse(h.amount));
        holders.truncate(NAMED_HOLDERS);
        Holders(holders)
    }

    /// `cycle` of this run, for messages.
    pub fn moment(&self, cycle: i128) -> Moment {
        Moment { slot: cycles(cycle.rem_euclid(self.interval)), cycle: self.literal.then(|| cycles(cycle)) }
    }
}

fn copies(spans: &[Span], interval: i128) -> i128 {
    let last = spans.iter().map(|s| s.end.max(s.start)).max().unwrap_or(0);
    last.div_euclid(interval) + i128::from(last.rem_euclid(interval) != 0) + 1
}

/// The most copies of one thing that exist at once when each lasts for `[start, end)`.
pub(crate) fn most_at_once(op: OpId, start: i128, end: i128, interval: i128) -> i128 {
    // Only the length matters; a ring's first slot may be needed before cycle 0.
    let span = Span { op, held: Held::Result, start: 0, end: end - start, amount: 1 };
    Run::unroll(vec![span], interval).peak().map_or(0, |peak| peak.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i128, end: i128, amount: u64) -> Span {
        Span { op: OpId::new(0), held: Held::Result, start, end, amount }
    }

    /// docs/model.md: `#{k ∈ ℤ : start ≤ r + kI < end}`, summed and maximised.
    fn folded(spans: &[Span], interval: i128) -> i128 {
        (0..interval)
            .map(|r| {
                spans
                    .iter()
                    .map(|s| (s.start..s.end).filter(|x| x % interval == r).count() as i128 * i128::from(s.amount))
                    .sum()
            })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn the_peak_is_the_folded_count_whether_literal_or_not() {
        for interval in 1..9 {
            for (a, b) in (0..30).flat_map(|a| (0..30).map(move |b| (a, b))) {
                let near = vec![span(a, a + b, 3), span(b, b + 7, 5), span(2, a, 1)];
                let run = Run::unroll(near.clone(), interval);
                assert!(run.literal);
                assert_eq!(run.peak().map_or(0, |p| p.total), folded(&near, interval), "{near:?} {interval}");
                // The same, so late that it cannot be laid out.
                let late = near.iter().map(|s| {
                    let late = 1000 * interval * i128::from(s.amount);
                    Span { start: s.start + late, end: s.end + late, ..*s }
                });
                let run = Run::unroll(late.collect(), interval);
                assert!(!run.literal && run.instances.len() <= 15);
                assert_eq!(run.peak().map_or(0, |p| p.total), folded(&near, interval), "late {near:?} {interval}");
            }
        }
    }

    #[test]
    fn very_long_lives_are_counted_without_being_laid_out() {
        let run = Run::unroll(vec![span(5, 5 + 10 * 1_000_000 + 1, 2)], 10);
        assert_eq!(run.peak().map(|p| (p.total, p.cycle % 10)), Some((2 * 1_000_001, 5)));
        assert_eq!(most_at_once(OpId::new(0), -(1 << 90), 1 << 90, 1), 1 << 91);
        assert!(Run::unroll(vec![span(0, 1 << 90, u64::MAX); 3], 1).peak().unwrap().total > 1 << 120);
    }
}
