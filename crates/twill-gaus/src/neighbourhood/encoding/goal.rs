//! The objective, as one sum to minimise.

use super::counted::Counts;
use super::{Around, Encoding, Pointless};
use crate::neighbourhood::cones;
use crate::neighbourhood::tracks::{Counted, Track};
use batsat::Lit;

/// Most levels of a peak that have a literal each; beyond, they are counted in binary.
const UNARY: i64 = 128;

impl Encoding<'_, '_> {
    /// [`super::Ask::Objective`]: the goal is the objective.
    pub(super) fn smaller(
        &mut self,
        around: Around<'_, '_>,
        counted: Vec<Counts>,
        whole: bool,
    ) -> Result<(), Pointless> {
        let costs = self.costs;
        let (mut terms, mut floor) = self.communication();
        let latest = costs.latency.then(|| self.makespan(&mut terms));
        floor += latest.unwrap_or(0);
        let floors: Vec<i64> = costs.tracks.iter().zip(&counted).map(|(t, c)| t.least.max(c.floor())).collect();
        floor += costs.tracks.iter().zip(&floors).map(|(track, floor)| track.weight * floor).sum::<i64>();
        let room = around.value - floor;
        if room < 1 {
            return Err(Pointless::Refuted);
        }
        self.constant = floor;
        for ((&track, counts), floor) in costs.tracks.iter().zip(counted).zip(floors) {
            match track {
                Track { weight: 0, limit, .. } => self.cap(&counts, limit.unwrap_or(i64::MAX), &[]),
                Track { weight, limit, .. } => {
                    let most = (floor + room / weight).min(limit.unwrap_or(i64::MAX));
                    let levels = self.levels(most - floor);
                    // The part of the peak that levels do not remove has a cost.
                    terms.extend(levels.iter().map(|&(level, units)| (!level, weight * units)));
                    let units: i64 = levels.iter().map(|level| level.1).sum();
                    self.constant -= weight * (units - (most - floor));
                    self.cap(&counts, most, &levels);
                    if let (true, Counted::Resource(resource)) = (whole, track.counted) {
                        self.add_energy(resource, floor, most, &levels);
                    }
                    self.levels.push(levels);
                    self.least.push(floor);
                }
            }
        }
        self.set_goal(terms, around.value);
        Ok(())
    }

    /// [`super::Ask::Fewer`]: the goal is the number of slots above the target.
    pub(super) fn fewer(
        &mut self,
        counted: Vec<Counts>,
        track: usize,
        caps: &[i64],
        allowance: i64,
    ) -> Result<(), Pointless> {
        let target = caps[track];
        let (costs, above) = self.communication();
        if costs.is_empty() && above > allowance {
            return Err(Pointless::Refuted);
        }
        self.at_most(costs, allowance - above);
        let mut terms = Vec::new();
        for (at, counts) in counted.into_iter().enumerate() {
            let Track { weight, limit, .. } = self.costs.tracks[at];
            let peak = counts.peak();
            match limit {
                _ if at == track => {
                    let hot: Vec<usize> = counts.moving.keys().copied().filter(|&s| counts.now[s] > target).collect();
                    if hot.iter().all(|&slot| counts.base[slot] > target) {
                        return Err(Pointless::Refuted);
                    }
                    let mut lowered = Vec::new();
                    for slot in hot {
                        let level = self.fresh();
                        terms.push((!level, 1));
                        lowered.push((slot, level));
                    }
                    self.lower(&counts, peak, target, &lowered);
                }
                Some(limit) if weight == 0 => self.cap(&counts, limit, &[]),
                _ => self.cap(&counts, peak.max(caps[at]), &[]),
            }
        }
        let now = terms.len() as i64;
        self.set_goal(terms, now);
        Ok(())
    }

    /// All ways to share what peaks may be in all, `most` at most with the weights that they have: a bound for each, as
    /// many as there are, or a single one that bounds none where there would be more than `limit`.
    pub fn splits(&self, most: i64, limit: usize) -> Vec<Vec<i64>> {
        let weights: Vec<i64> = self.costs.tracks.iter().map(|track| track.weight).filter(|&w| w > 0).collect();
        let unary = |levels: &Vec<(Lit, i64)>| !levels.is_empty() && levels.iter().all(|level| level.1 == 1);
        let equal = weights.windows(2).all(|pair| pair[0] == pair[1]);
        let simple = self.costs.alpha == 0 && !self.costs.latency && equal && self.levels.iter().all(unary);
        let none = vec![Vec::new()];
        if self.levels.is_empty() || !simple {
            return none;
        }
        let room = most / weights[0] - self.least.iter().sum::<i64>();
        let mut splits = vec![(Vec::new(), room)];
        for (at, &least) in self.least.iter().enumerate() {
            let last = at + 1 == self.least.len();
            let shares = |(split, room): (Vec<i64>, i64)| {
                let from = if last { room } else { 0 };
                let with = move |share: i64| {
                    (split.iter().copied().chain([least + share]).collect::<Vec<i64>>(), room - share)
                };
                (from..=room).map(with).collect::<Vec<_>>()
            };
            splits = splits.into_iter().flat_map(shares).collect();
            if splits.len() > limit {
                return none;
            }
        }
        splits.into_iter().map(|split| split.0).collect()
    }

    /// Literals that bound the peaks so.
    pub(super) fn bounded(&self, split: &[i64]) -> Vec<Lit> {
        let least = self.levels.iter().zip(&self.least);
        let bounded = least.zip(split).filter_map(|((levels, &least), &most)| {
            // The first of them lowers the greatest peak by one.
            let lowered = least + levels.len() as i64 - most;
            if lowered > 0 { levels.get(lowered as usize - 1).map(|level| level.0) } else { None }
        });
        bounded.collect()
    }

    /// Adds what follows from a split for the windows of operations.
    pub(super) fn narrow(&mut self, split: &[i64]) {
        let mut caps: Vec<Option<i64>> = self.model.limits.clone();
        let costly = self.costs.tracks.iter().filter(|track| track.weight > 0);
        for (track, &most) in costly.zip(split) {
            if let Counted::Resource(resource) = track.counted {
                caps[resource] = Some(most.min(caps[resource].unwrap_or(i64::MAX)));
            }
        }
        let unless: Vec<Lit> = self.bounded(split).into_iter().map(|l| !l).collect();
        let Some(windows) = cones::windows(self.model, &caps) else {
            self.clause(&unless);
            return;
        };
        for (v, (low, high)) in windows.into_iter().enumerate() {
            for bound in [!self.by(v, low - 1), self.by(v, high)] {
                let clause: Vec<Lit> = unless.iter().copied().chain([bound]).collect();
                self.clause(&clause);
            }
        }
    }

    fn set_goal(&mut self, terms: Vec<(Lit, i64)>, now: i64) {
        let (terms, constant) = super::merge(terms, self.truth);
        self.constant += constant;
        self.now = now;
        if now < self.constant {
            self.refuted = true;
        } else {
            self.goal = Some(self.sums.add(terms, now - self.constant));
        }
    }

    /// Communication of the whole schedule: terms and what is constant of it.
    fn communication(&self) -> (Vec<(Lit, i64)>, i64) {
        let (costs, model) = (self.costs, self.model);
        let (mut terms, mut constant) = (Vec::new(), 0);
        if costs.alpha == 0 {
            return (terms, constant);
        }
        for v in 0..model.len() {
            constant += costs.alpha * costs.later[v] * self.steps[v];
            for edge in &model.edges()[model.edges_of(v)] {
                constant += costs.alpha * edge.communication as i64 * edge.shift;
            }
        }
        for domain in &self.domains {
            let cost = costs.alpha * costs.later[domain.op];
            let cheapest = if cost > 0 { domain.low } else { domain.high };
            constant += cost * (cheapest - self.steps[domain.op]);
            let dear = |&l: &Lit| if cost > 0 { (!l, cost) } else { (l, -cost) };
            terms.extend(domain.order.iter().filter(|_| cost != 0).map(dear));
        }
        (terms, constant)
    }

    /// Adds a literal for each step beyond the least latency; the least.
    fn makespan(&mut self, terms: &mut Vec<(Lit, i64)>) -> i64 {
        let model = self.model;
        let finish = |v: usize, step: i64| step + model.latencies[v];
        let now = (0..model.len()).map(|v| finish(v, self.steps[v])).max().unwrap_or(0);
        let least = (0..model.len()).map(|v| finish(v, self.range(v).0)).max().unwrap_or(0);
        let ends: Vec<Lit> = (least..now).map(|_| self.fresh()).collect();
        for pair in ends.windows(2) {
            self.clause(&[!pair[0], pair[1]]);
        }
        for (end, &by) in (least..now).zip(&ends) {
            for at in 0..self.domains.len() {
                let v = self.domains[at].op;
                if finish(v, self.domains[at].high) > end {
                    self.clause(&[!by, self.by(v, end - model.latencies[v])]);
                }
            }
        }
        terms.extend(ends.iter().map(|&by| (!by, 1)));
        least
    }

    /// Literals each of which lowers a peak by this many units; together by `range` if all hold.
    fn levels(&mut self, range: i64) -> Vec<(Lit, i64)> {
        if range <= UNARY {
            let levels: Vec<(Lit, i64)> = (0..range).map(|_| (self.fresh(), 1)).collect();
            for pair in levels.windows(2) {
                self.clause(&[!pair[1].0, pair[0].0]);
            }
            return levels;
        }
        let bits = i64::BITS - range.leading_zeros();
        let levels: Vec<(Lit, i64)> = (0..bits).map(|bit| (self.fresh(), 1 << bit)).collect();
        self.at_most(levels.clone(), range);
        levels
    }

    /// Usage and levels are at most `most` in every slot.
    fn cap(&mut self, counts: &Counts, most: i64, levels: &[(Lit, i64)]) {
        for (&slot, terms) in &counts.moving {
            if self.paced.is_over_after(32 * terms.len() as u64) {
                return;
            }
            let terms = terms.iter().chain(levels).copied().collect();
            self.at_most(terms, most.saturating_sub(counts.base[slot]));
        }
    }

    /// Usage is at most `target` where it is now and where a level says so, and elsewhere at most `peak`.
    fn lower(&mut self, counts: &Counts, peak: i64, target: i64, lowered: &[(usize, Lit)]) {
        for (&slot, terms) in &counts.moving {
            let level = lowered.iter().find(|level| level.0 == slot);
            let mut terms = terms.clone();
            terms.extend(level.map(|&(_, level)| (level, peak - target)));
            let most = if level.is_some() { peak } else { target };
            self.at_most(terms, most - counts.base[slot]);
        }
    }
}
