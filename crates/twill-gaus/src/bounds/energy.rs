//! The energy bound: what must lie between two steps, whatever the schedule, divided by the steps in between.
//!
//! A stretch of `steps` that begins between `first` and `last` overlaps `[a, b)` least at one of the two ends, so at least
//! `min (overlap at first, overlap at last)`. So some step in `[a, b)` has at least
//! `⌈Σ amount · min (…) / min (b − a, II)⌉` — with an interval, steps `[a, b)` are on at most `II` slots. This is energetic
//! reasoning (Erschler, Lopez, "Energy-based approach for task scheduling", 1990; Baptiste, Le Pape, Nuijten,
//! "Constraint-Based Scheduling", 2001, ch. 3), with one step as its time table case.
//!
//! For fixed `a`, the overlap grows by one a step from `max (a, last)` on, until it has grown by
//! `min (first + steps − max (a, first), last + steps − max (a, last))`: two changes of slope, so all `b` take
//! O(|parts| + D).

use crate::control::Clock;

/// A stretch of steps that must be somewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// First step at which it can begin, at least 0.
    pub first: i64,
    /// Last step at which it can begin.
    pub last: i64,
    /// Its length.
    pub steps: i64,
    /// How much it takes.
    pub amount: i64,
}

/// Most parts and steps looked at; where there are more, not all `a` are tried, which is as right, if weaker.
const WORK: usize = 400_000_000;
/// Longest array of steps.
const LONGEST: i64 = 1 << 24;

/// The most that the argument gives for any `a < b`; stops where it exceeds `enough`, or where there is no more time for it.
pub(super) fn densest(parts: &[Part], interval: Option<u64>, enough: i128, clock: &Clock<'_>) -> i128 {
    let parts: Vec<Part> = parts.iter().copied().filter(|p| p.steps > 0 && p.amount > 0).collect();
    if parts.is_empty() {
        return 0;
    }
    let end = parts.iter().map(|p| p.last.saturating_add(p.steps)).max().unwrap_or(0);
    let rows = interval.map_or(i128::MAX, i128::from);
    // All of it, over all steps: the one argument that needs no array.
    let start = parts.iter().map(|p| p.first).min().unwrap_or(0);
    let total: i128 = parts.iter().map(|p| i128::from(p.steps) * i128::from(p.amount)).sum();
    let mut most = ceiling(total, rows.min(i128::from(end) - i128::from(start)));
    if most > enough || end - start > LONGEST {
        return most;
    }
    let mut begins: Vec<i64> = parts.iter().map(|p| p.first).collect();
    begins.sort_unstable();
    begins.dedup();
    let tries = (WORK / (parts.len() + (end - start) as usize + 1)).clamp(1, begins.len());
    let mut slope = vec![0_i64; (end - start) as usize + 1];
    for k in 0..tries {
        let a = begins[k * begins.len() / tries];
        slope[(a - start) as usize..].fill(0);
        for p in &parts {
            let (from_first, from) = (p.first + p.steps - p.first.max(a), p.last.max(a));
            let grows = from_first.min(p.last + p.steps - from);
            if grows > 0 {
                slope[(from - start) as usize] += p.amount;
                slope[(from + grows - start) as usize] -= p.amount;
            }
        }
        let (mut rate, mut energy) = (0_i64, 0_i128);
        for step in a..end {
            rate += slope[(step - start) as usize];
            energy += i128::from(rate);
            let length = rows.min(i128::from(step + 1 - a));
            if energy > most * length {
                most = ceiling(energy, length);
            }
        }
        if most > enough || clock.is_over() {
            return most;
        }
    }
    most
}

/// `⌈a / b⌉`; 0 of nothing.
pub(super) fn ceiling(a: i128, b: i128) -> i128 {
    if b <= 0 { 0 } else { a.div_euclid(b) + i128::from(a.rem_euclid(b) > 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Control;

    fn densest(parts: &[Part], interval: Option<u64>, enough: i128) -> i128 {
        super::densest(parts, interval, enough, &Clock::start(Control::default()))
    }

    #[test]
    fn windows_that_share_a_step_add_up_there() {
        let part = |first, last, steps| Part { first, last, steps, amount: 1 };
        // Three of one step in two; a fourth that can evade.
        let parts = [part(0, 1, 1), part(0, 1, 1), part(0, 1, 1), part(0, 9, 1)];
        assert_eq!(densest(&parts, None, i128::MAX), 2);
        // Two steps each, begun at 0 or 1: both hold step 1.
        assert_eq!(densest(&[part(0, 1, 2), part(0, 1, 2)], None, i128::MAX), 2);
        // On one slot all are there.
        assert_eq!(densest(&parts, Some(1), i128::MAX), 4);
        assert_eq!(densest(&[], Some(1), i128::MAX), 0);
    }
}
