//! Sums over what is alive at once: `Σ weight · #{copies alive} ≤ capacity` at every cycle.
//!
//! The sum can only rise where something starts, so it is enough to look there. A candidate that
//! breaks it yields a *cover*: a smallest set of copies that are alive together and too heavy. The
//! clause says that one of them must not be.

use crate::encoding::{Anchor, Candidate, Encoding, Stages};
use batsat::Lit;
use std::collections::HashMap;
use twill_graph::OpId;

/// A point in time relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) anchor: Anchor,
    pub(crate) offset: i64,
}

/// A condition on the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// The two run on different groups.
    Apart(OpId, OpId),
}

impl When {
    fn holds(self, candidate: &Candidate) -> bool {
        match self {
            When::Always => true,
            When::Apart(a, b) => candidate.groups[a.index()] != candidate.groups[b.index()],
        }
    }

    fn literal(self, e: &mut Encoding) -> Lit {
        match self {
            When::Always => e.engine.truth(),
            When::Apart(a, b) => !e.same_group(a, b),
        }
    }
}

/// Something that takes room from its start to the latest of its ends.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The operation whose group holds it.
    pub(crate) owner: OpId,
    pub(crate) weight: u64,
    pub(crate) start: Place,
    pub(crate) ends: Vec<(Place, When)>,
    /// Whether it exists at all.
    pub(crate) when: When,
    /// It recurs every `I` cycles (the steady state); otherwise it is one copy of a straight line.
    pub(crate) repeats: bool,
}

/// Items that share a capacity.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) items: Vec<Item>,
    pub(crate) capacity: u64,
    alive: HashMap<(usize, i64, usize), Lit>,
}

/// Copies that are alive together: item, and iteration relative to that of `event`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cover {
    /// The member that starts last; all others are alive then.
    pub(crate) event: usize,
    pub(crate) members: Vec<(usize, i64)>,
}

impl Place {
    fn at(self, candidate: &Candidate) -> i64 {
        self.offset
            + match self.anchor {
                Anchor::Issue(op) => candidate.times[op.index()],
                Anchor::Length => candidate.length,
            }
    }
}

impl Pool {
    pub(crate) fn new(items: Vec<Item>, capacity: u64) -> Pool {
        Pool { items, capacity, alive: HashMap::new() }
    }

    fn end(item: &Item, candidate: &Candidate) -> i64 {
        let ends = item.ends.iter().filter(|(_, when)| when.holds(candidate)).map(|(p, _)| p.at(candidate));
        ends.max().unwrap_or(i64::MIN)
    }

    /// Items that exist in a candidate: index, start and end.
    fn present(&self, candidate: &Candidate, chosen: &impl Fn(OpId) -> bool) -> Vec<(usize, i64, i64)> {
        self.items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.weight > 0 && chosen(item.owner) && item.when.holds(candidate))
            .map(|(i, item)| (i, item.start.at(candidate), Self::end(item, candidate)))
            .filter(|(_, start, end)| start < end)
            .collect()
    }

    /// Copies alive at a time, as item and iteration.
    fn alive_at(&self, present: &[(usize, i64, i64)], time: i64, interval: i64) -> Vec<(usize, i64)> {
        let mut alive = Vec::new();
        for &(i, start, end) in present {
            if !self.items[i].repeats {
                if start <= time && time < end {
                    alive.push((i, 0));
                }
                continue;
            }
            let newest = (time - start).div_euclid(interval);
            let oldest = (time - end).div_euclid(interval) + 1;
            alive.extend((oldest..=newest).map(|k| (i, k)));
        }
        alive
    }

    fn weight(&self, members: &[(usize, i64)]) -> u64 {
        members.iter().map(|&(i, _)| self.items[i].weight).sum()
    }

    /// The largest sum over items whose owner is `chosen`, and the copies that make it.
    pub(crate) fn peak(&self, e: &Encoding, candidate: &Candidate, chosen: impl Fn(OpId) -> bool) -> u64 {
        let present = self.present(candidate, &chosen);
        let interval = e.question.interval;
        let at = |start| self.weight(&self.alive_at(&present, start, interval));
        present.iter().map(|&(_, start, _)| at(start)).max().unwrap_or(0)
    }

    /// Covers of every event at which the items of `chosen` owners, with `base`, exceed `capacity`.
    pub(crate) fn covers(
        &self,
        e: &Encoding,
        candidate: &Candidate,
        chosen: impl Fn(OpId) -> bool,
        capacity: u64,
        base: u64,
    ) -> Vec<Cover> {
        let present = self.present(candidate, &chosen);
        let interval = e.question.interval;
        let room = capacity.saturating_sub(base);
        let mut covers: Vec<Cover> = Vec::new();
        for &(_, start, _) in &present {
            let mut members = self.alive_at(&present, start, interval);
            if base + self.weight(&members) <= capacity {
                continue;
            }
            // Heaviest first, as few as suffice; then drop those that turn out unneeded.
            members.sort_by_key(|&(i, k)| (std::cmp::Reverse(self.items[i].weight), i, k));
            let mut sum = 0;
            let needed = members.iter().take_while(|&&(i, _)| {
                let more = sum <= room;
                sum += if more { self.items[i].weight } else { 0 };
                more
            });
            let mut members: Vec<(usize, i64)> = needed.copied().collect();
            for at in (0..members.len()).rev() {
                let weight = self.items[members[at].0].weight;
                if members.len() > 1 && sum - weight > room {
                    sum -= weight;
                    members.remove(at);
                }
            }
            let begin = |&(i, k): &(usize, i64)| self.items[i].start.at(candidate) + k * interval;
            let Some(&(event, at)) = members.iter().max_by_key(|m| (begin(m), m.0)) else { continue };
            for m in &mut members {
                m.1 -= at;
            }
            let cover = Cover { event, members };
            if !covers.contains(&cover) {
                covers.push(cover);
            }
        }
        covers
    }

    /// Literals of which one must hold: that not all members of the cover are alive together. Group
    /// membership is not part of it.
    pub(crate) fn clause(&mut self, e: &mut Encoding, cover: &Cover) -> Vec<Lit> {
        let mut clause = Vec::new();
        let event = self.items[cover.event].start;
        for &(i, k) in &cover.members {
            clause.push(!self.items[i].when.literal(e));
            if e.question.stages == Stages::Any {
                let copies = cover.members.iter().filter(|m| m.0 == i).count();
                clause.push(!self.copies_alive(e, i, i64::try_from(copies).unwrap_or(i64::MAX), cover.event));
                continue;
            }
            let start = self.items[i].start;
            let shift = k * e.question.interval;
            if (i, k) != (cover.event, 0) {
                clause.push(!e.at_least(start.anchor, event.anchor, start.offset + shift - event.offset));
            }
            clause.push(!self.alive(e, i, k, cover.event));
        }
        clause.sort_unstable();
        clause.dedup();
        clause
    }

    /// The literal that at least `copies` copies of item `i` are alive in the slot in which item
    /// `event` starts, whichever iterations they are of. Said of slots and of the item's own life
    /// only, so that it does not matter how many stages lie between unrelated operations.
    ///
    /// With `x` the way from the item's slot to the event's and `f = ⌊x / I⌋`, the youngest copy is
    /// `x − fI` old, so that many are alive iff `life > x − fI + (copies − 1) I`.
    fn copies_alive(&mut self, e: &mut Encoding, i: usize, copies: i64, event: usize) -> Lit {
        if let Some(&known) = self.alive.get(&(i, copies, event)) {
            return known;
        }
        let item = self.items[i].clone();
        let at = self.items[event].start;
        let interval = e.question.interval;
        // In this form everything hangs on operations: see `Anchor::Length`.
        let op = |place: Place| match place.anchor {
            Anchor::Issue(op) => op,
            Anchor::Length => item.owner,
        };
        let (from, to) = (op(item.start), op(at));
        let offset = at.offset - item.start.offset;
        let alive = e.engine.fresh();
        let (low, high) = ((offset - interval + 1).div_euclid(interval), (offset + interval - 1).div_euclid(interval));
        for turns in low..=high {
            let reached = e.slot_at_least(from, to, turns * interval - offset);
            let passed = e.slot_at_least(from, to, (turns + 1) * interval - offset);
            for &(end, when) in &item.ends {
                let least = 1 - end.offset + at.offset + (copies - 1 - turns) * interval;
                let long = e.stages_and_slots((from, op(end)), (to, op(end)), least);
                let when = when.literal(e);
                e.engine.clause([!reached, passed, !long, !when, alive]);
            }
        }
        self.alive.insert((i, copies, event), alive);
        alive
    }

    /// The literal that copy `k` of item `i` has not ended when item `event` starts.
    fn alive(&mut self, e: &mut Encoding, i: usize, k: i64, event: usize) -> Lit {
        if let Some(&known) = self.alive.get(&(i, k, event)) {
            return known;
        }
        let item = self.items[i].clone();
        let at = self.items[event].start;
        let shift = k * e.question.interval;
        let mut ends = Vec::new();
        for (end, when) in &item.ends {
            // end + shift > event, that is end.anchor − event.anchor ≥ event.offset − end.offset − shift + 1
            let later = e.at_least(at.anchor, end.anchor, at.offset - end.offset - shift + 1);
            ends.push((later, when.literal(e)));
        }
        let truth = e.engine.truth();
        let literal = match ends.as_slice() {
            [(later, when)] if *when == truth => *later,
            _ => {
                let alive = e.engine.fresh();
                for (later, when) in ends {
                    e.engine.clause([!later, !when, alive]);
                }
                alive
            }
        };
        self.alive.insert((i, k, event), literal);
        literal
    }
}
