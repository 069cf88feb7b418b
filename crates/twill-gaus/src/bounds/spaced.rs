//! Where operations take several steps, what fits between them is lost, and [energy](super::energy) does not see it.
//!
//! Take steps `x, x + s, …, x + (m − 1)·s`. A stretch of at least `s` steps that begins at `x + (m − 1)·s` or before and ends
//! at `x` or after covers one of them. So some of these `m` steps has at least `⌈Σ amount / m⌉`, over the stretches of which
//! the whole window is so (own; a dual feasible function of Lueker 1983, Fekete and Schepers 2001, in the time of a
//! cumulative resource). With an interval, the steps are on different slots while `(m − 1)·s < II`.

use super::energy::{Part, ceiling};
use crate::control::Clock;

/// Most lengths tried.
const LENGTHS: usize = 8;
/// Most parts and steps looked at.
const WORK: usize = 100_000_000;

/// The most that the argument gives; stops where it exceeds `enough`, or where there is no more time for it.
pub(super) fn spaced(parts: &[Part], interval: Option<u64>, enough: i128, clock: &Clock<'_>) -> i128 {
    let mut lengths: Vec<i64> = parts.iter().map(|p| p.steps).filter(|&steps| steps > 1).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let longest = interval.map_or(i64::MAX, |ii| ii.min(i64::MAX as u64) as i64);
    let tried = lengths.len().min(LENGTHS);
    let mut most = 0;
    for s in (0..tried).map(|k| lengths[k * lengths.len() / tried]) {
        let long: Vec<Part> = parts.iter().copied().filter(|p| p.steps >= s && p.amount > 0).collect();
        // The first step at its last chance to be covered.
        let mut begins: Vec<i64> = long.iter().map(|p| p.first + p.steps - 1).collect();
        begins.sort_unstable();
        begins.dedup();
        let end = long.iter().map(|p| p.last).max().unwrap_or(0);
        let span = ((end - begins.first().copied().unwrap_or(0)).max(0) / s + 2) as usize;
        if span > WORK {
            continue;
        }
        let tries = (WORK / LENGTHS / (long.len() + span)).clamp(1, begins.len());
        let mut amounts = vec![0_i64; span];
        for x in (0..tries).map(|k| begins[k * begins.len() / tries]) {
            amounts.fill(0);
            for p in long.iter().filter(|p| p.first + p.steps > x) {
                // The last of the steps that it asks for, by number.
                let needed = (p.last - x).max(0);
                amounts[(needed / s + i64::from(needed % s > 0)) as usize] += p.amount;
            }
            let mut sum = 0_i128;
            for (last, amount) in amounts.iter().enumerate().take_while(|(last, _)| (*last as i64) * s < longest) {
                sum += i128::from(*amount);
                let steps = last as i128 + 1;
                if sum > most * steps {
                    most = ceiling(sum, steps);
                }
            }
            if most > enough || clock.is_over() {
                return most;
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Control;

    fn spaced(parts: &[Part], interval: Option<u64>, enough: i128) -> i128 {
        super::spaced(parts, interval, enough, &Clock::start(Control::default()))
    }

    #[test]
    fn two_of_two_steps_do_not_follow_each_other_in_three() {
        let part = |last| Part { first: 0, last, steps: 2, amount: 1 };
        assert_eq!(spaced(&[part(1), part(1)], None, i128::MAX), 2);
        assert_eq!(spaced(&[part(2), part(2)], None, i128::MAX), 1);
        // Steps 1 and 3 are different slots of three, but not of two.
        let three = [part(2), part(2), part(2)];
        assert_eq!((spaced(&three, Some(3), i128::MAX), spaced(&three, Some(2), i128::MAX)), (2, 0));
    }
}
