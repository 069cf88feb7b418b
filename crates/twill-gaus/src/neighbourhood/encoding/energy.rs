//! The work between two steps fits between them: `Σ energy · [v inside a .. b] ≤ peak · (b − a)`.
//!
//! Implied by the sums of the slots, but those see one step at a time, and refuting by them alone takes a proof for
//! every way to spread operations out. These overload checks (Erschler, Lopez 1990) see the crowd.

use super::Encoding;
use batsat::Lit;

/// Most terms of all checks of a resource; beyond, fewer steps begin and end one.
const TERMS: i64 = 1 << 21;

impl Encoding<'_, '_> {
    /// Adds the checks of a resource whose peak is `most` less what `levels` take away, and at least `floor`.
    pub(super) fn add_energy(&mut self, resource: usize, floor: i64, most: i64, levels: &[(Lit, i64)]) {
        let model = self.model;
        if model.interval.is_some() {
            return;
        }
        let users = (0..model.len()).flat_map(|v| model.uses[v].iter().map(move |&used| (v, used)));
        let users: Vec<_> = users.filter(|(_, used)| used.resource == resource).collect();
        let begins = users.iter().map(|&(v, used)| self.range(v).0 + used.offset);
        let ends = users.iter().map(|&(v, used)| self.range(v).1 + used.offset + used.steps);
        let (Some(first), Some(last)) = (begins.min(), ends.max()) else { return };
        let span = last - first;
        let mut stride = 1;
        while (span / stride) * (span / stride) / 4 * users.len() as i64 > TERMS {
            stride += 1;
        }
        for begin in (first..last).step_by(stride as usize) {
            for end in (begin + 1..=last).step_by(stride as usize) {
                let length = end - begin;
                if self.paced.is_over_after(16 * users.len() as u64) {
                    return;
                }
                let inside = users.iter().filter_map(|&(v, used)| {
                    let (low, high) = self.range(v);
                    let (from, to) = ((begin - used.offset).max(low), (end - used.steps - used.offset).min(high));
                    (from <= to).then_some((v, from, to, used.steps * used.amount))
                });
                let inside: Vec<_> = inside.collect();
                if inside.iter().map(|held| held.3).sum::<i64>() <= floor * length {
                    continue;
                }
                let mut terms: Vec<(Lit, i64)> = levels.iter().map(|&(level, units)| (level, units * length)).collect();
                for (v, from, to, energy) in inside {
                    terms.push((self.between(v, from, to), energy));
                }
                self.at_most(terms, most * length);
            }
        }
    }
}
