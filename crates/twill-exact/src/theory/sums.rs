//! Pseudo-Boolean sums: `Σ weight · literal ≤ limit`, counted along the trail.

use batsat::Lit;
use std::collections::HashMap;
use twill_graph::proof::Reason;

/// One sum. Terms stand by descending weight.
#[derive(Debug)]
struct Sum {
    terms: Vec<(Lit, u64)>,
    limit: u64,
    /// Where it comes from; nothing where no proof is written.
    origin: Option<Origin>,
    /// Weight of the terms that are true.
    reached: u64,
    queued: bool,
}

/// Where a sum comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Literals that it takes for granted.
    pub(crate) given: Vec<Lit>,
    /// Why it holds.
    pub(crate) reason: Reason,
}

/// All sums of a solver.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    sums: Vec<Sum>,
    /// Sums in which a literal occurs, by its index.
    occurrences: Vec<Vec<(u32, u64)>>,
    trail: Vec<(u32, u64)>,
    levels: Vec<usize>,
    queue: Vec<u32>,
    reasons: HashMap<Lit, (u32, Vec<Lit>)>,
}

/// A sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SumId(u32);

/// The demand of a sum.
pub(crate) enum Demand {
    /// These literals are true and too heavy together in a sum.
    Conflict(SumId, Vec<Lit>),
    /// This literal must hold.
    Imply(Lit),
}

impl Sums {
    /// Adds a sum none of whose literals is assigned yet.
    pub(crate) fn add(&mut self, mut terms: Vec<(Lit, u64)>, limit: u64, origin: Option<Origin>) {
        terms.sort_by_key(|&(literal, weight)| (std::cmp::Reverse(weight), literal));
        let id = self.sums.len() as u32;
        for &(literal, weight) in &terms {
            let index = literal.idx() as usize;
            if self.occurrences.len() <= index {
                self.occurrences.resize(index + 1, Vec::new());
            }
            self.occurrences[index].push((id, weight));
        }
        self.sums.push(Sum { terms, limit, origin, reached: 0, queued: false });
    }

    pub(crate) fn push_level(&mut self) {
        self.levels.push(self.trail.len());
    }

    pub(crate) fn pop_levels(&mut self, count: usize) {
        let keep = self.levels.len().saturating_sub(count);
        let Some(&length) = self.levels.get(keep) else { return };
        self.levels.truncate(keep);
        for (id, weight) in self.trail.drain(length..) {
            self.sums[id as usize].reached -= weight;
        }
        self.forget_queue();
    }

    fn forget_queue(&mut self) {
        for id in self.queue.drain(..) {
            self.sums[id as usize].queued = false;
        }
    }

    /// Takes note of a literal that became true.
    pub(crate) fn count(&mut self, literal: Lit) {
        let Some(occurrences) = self.occurrences.get(literal.idx() as usize) else { return };
        for &(id, weight) in occurrences {
            let sum = &mut self.sums[id as usize];
            sum.reached += weight;
            self.trail.push((id, weight));
            if !sum.queued {
                sum.queued = true;
                self.queue.push(id);
            }
        }
    }

    /// The next thing that the counted sums demand. `value` tells literals' values.
    pub(crate) fn next(&mut self, value: impl Fn(Lit) -> Option<bool>) -> Option<Demand> {
        while let Some(&id) = self.queue.last() {
            let sum = &self.sums[id as usize];
            if sum.reached > sum.limit {
                let conflict = heaviest(&sum.terms, sum.limit, None, &value);
                self.forget_queue();
                return Some(Demand::Conflict(SumId(id), conflict));
            }
            let slack = sum.limit - sum.reached;
            let heavy = sum.terms.iter().take_while(|t| t.1 > slack);
            let open = heavy.into_iter().find(|t| value(t.0).is_none());
            let Some(&(literal, weight)) = open else {
                self.sums[id as usize].queued = false;
                self.queue.pop();
                continue;
            };
            let reason = heaviest(&sum.terms, sum.limit - weight, Some(literal), &value);
            self.reasons.insert(!literal, (id, reason));
            return Some(Demand::Imply(!literal));
        }
        None
    }

    /// Literals that made [`Demand::Imply`] of this one.
    pub(crate) fn reason(&self, literal: Lit) -> Option<(SumId, &[Lit])> {
        self.reasons.get(&literal).map(|(id, reason)| (SumId(*id), reason.as_slice()))
    }

    /// Where a sum comes from.
    pub(crate) fn origin(&self, sum: SumId) -> Option<&Origin> {
        self.sums[sum.0 as usize].origin.as_ref()
    }
}

/// True terms, heaviest first, as many as it takes to exceed a limit.
fn heaviest(terms: &[(Lit, u64)], limit: u64, except: Option<Lit>, value: impl Fn(Lit) -> Option<bool>) -> Vec<Lit> {
    let mut sum = 0;
    let mut chosen: Vec<(Lit, u64)> = Vec::new();
    for &(literal, weight) in terms {
        if sum > limit {
            break;
        }
        if value(literal) == Some(true) && Some(literal) != except {
            sum += weight;
            chosen.push((literal, weight));
        }
    }
    // Lighter ones may have made an earlier one superfluous.
    for at in (0..chosen.len()).rev() {
        if sum - chosen[at].1 > limit {
            sum -= chosen[at].1;
            chosen.remove(at);
        }
    }
    chosen.into_iter().map(|c| c.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use batsat::Var;

    fn literal(index: u32) -> Lit {
        Lit::new(Var::unsafe_from_idx(index), true)
    }

    /// Counts the literals and lists what follows.
    fn follow(sums: &mut Sums, truths: &mut Vec<Lit>, falses: &mut Vec<Lit>, new: Lit) -> Vec<Result<Lit, Vec<Lit>>> {
        truths.push(new);
        sums.count(new);
        let mut demands = Vec::new();
        loop {
            let value = |l: Lit| {
                if truths.contains(&l) {
                    Some(true)
                } else if falses.contains(&l) {
                    Some(false)
                } else {
                    None
                }
            };
            match sums.next(value) {
                None => return demands,
                Some(Demand::Conflict(_, core)) => {
                    demands.push(Err(core));
                    return demands;
                }
                Some(Demand::Imply(implied)) => {
                    falses.push(!implied);
                    demands.push(Ok(implied));
                }
            }
        }
    }

    #[test]
    fn a_sum_excludes_what_no_longer_fits_and_says_why() {
        let [a, b, c, d] = [0, 1, 2, 3].map(literal);
        let mut sums = Sums::default();
        sums.add(vec![(a, 4), (b, 3), (c, 2), (d, 1)], 6, None);
        let (mut truths, mut falses) = (Vec::new(), Vec::new());
        sums.push_level();
        assert!(follow(&mut sums, &mut truths, &mut falses, c).is_empty());
        // 2 + 3 leaves 1: only `d` still fits.
        assert_eq!(follow(&mut sums, &mut truths, &mut falses, b), [Ok(!a)]);
        assert_eq!(sums.reason(!a).unwrap().1, [b].as_slice(), "3 alone leaves no room for 4");
        // Undone, `a` fits again, and then `b` does not.
        sums.pop_levels(1);
        let (mut truths, mut falses) = (Vec::new(), Vec::new());
        sums.push_level();
        assert_eq!(follow(&mut sums, &mut truths, &mut falses, a), [Ok(!b)]);
        assert_eq!(follow(&mut sums, &mut truths, &mut falses, c), [Ok(!d)]);
        // A literal that was forced elsewhere nevertheless is a conflict, with a smallest core.
        assert_eq!(follow(&mut sums, &mut truths, &mut falses, d), [Err(vec![a, c, d])]);
    }
}
